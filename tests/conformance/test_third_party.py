"""A stranger's backend, installed as its own distribution: it is listed, runs the quickstart and passes the kit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RAMDISK = ROOT / "examples/backends/gdsfw-ramdisk"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that pip installed the distribution into."""
    folder = tmp_path_factory.mktemp("site")
    # Where the build tool is there already, pip need not fetch it.
    isolation = ["--no-build-isolation"] if find_spec("hatchling") else []
    how = ["--quiet", "--no-deps", *isolation, "--target", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", "install", *how, str(RAMDISK)], check=True, capture_output=True)
    return folder


def python(*arguments: object, folder: Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(folder)},
    )


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
    source = (RAMDISK / "src/gdsfw_ramdisk/__init__.py").read_text()
    modules = {line.split()[1] for line in source.splitlines() if line.startswith("from gdsfw")}
    assert modules <= {"gdsfw", "gdsfw.backend", "gdsfw.errors"}
