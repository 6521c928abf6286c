"""A stranger's backend, installed as its own distribution: it is listed, runs the quickstart and passes the kit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers.installing import install, modules_of_gdsfw, python

ROOT = Path(__file__).parents[2]
RAMDISK = ROOT / "examples/backends/gdsfw-ramdisk"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that pip installed the distribution into."""
    folder = tmp_path_factory.mktemp("site")
    install(RAMDISK, folder)
    return folder


def test_it_is_listed_after_pip_install(installed: Path, tmp_path: Path) -> None:
    done = python("gdsfw", "backends", "--json", folder=installed, cwd=tmp_path)
    (entry,) = [entry for entry in json.loads(done.stdout)["backends"] if entry["name"] == "ramdisk"]
    assert entry["usable"]


def test_it_runs_the_quickstart(installed: Path, tmp_path: Path) -> None:
    quickstart = ROOT / "examples/quickstart.yaml"
    done = python("gdsfw", "run", quickstart, "--backend", "ramdisk", "--json", folder=installed, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    jobs = json.loads(done.stdout)["jobs"]
    assert [job["loop"] for job in jobs] == ["python"] * 3
    assert all(job["verify"]["bad_blocks"] == 0 and job["verify"]["checked_bytes"] > 0 for job in jobs[1:])
    assert list(tmp_path.iterdir()) == []


def test_its_own_suite_passes_the_kit(installed: Path, tmp_path: Path) -> None:
    done = python("pytest", "-q", "-p", "no:cacheprovider", RAMDISK / "tests", folder=installed, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "passed" in done.stdout


def test_it_is_small() -> None:
    source = (RAMDISK / "src/gdsfw_ramdisk/__init__.py").read_text()
    code = [line for line in source.splitlines() if line.strip() and not line.strip().startswith(("#", '"""'))]
    assert len(code) < 80


def test_it_asks_core_for_public_interfaces_only() -> None:
    assert modules_of_gdsfw(RAMDISK / "src") <= {"gdsfw", "gdsfw.backend", "gdsfw.errors"}
