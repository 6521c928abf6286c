"""The example backend for object stores, installed as its own distribution: its suite, with the kit, passes here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers.installing import install, modules_of_gdsfw, python

ROOT = Path(__file__).parents[2]
FSSPEC = ROOT / "examples/backends/gdsfw-fsspec"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that pip installed the distribution into."""
    folder = tmp_path_factory.mktemp("site")
    install(FSSPEC, folder)
    return folder


def test_it_is_listed_after_pip_install(installed: Path, tmp_path: Path) -> None:
    done = python("gdsfw", "backends", "--json", folder=installed, cwd=tmp_path)
    (entry,) = [entry for entry in json.loads(done.stdout)["backends"] if entry["name"] == "fsspec"]
    assert entry["usable"]


def test_it_runs_the_quickstart_in_memory(installed: Path, tmp_path: Path) -> None:
    quickstart = ROOT / "examples/quickstart.yaml"
    done = python("gdsfw", "run", quickstart, "--backend", "fsspec", "--json", folder=installed, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    jobs = json.loads(done.stdout)["jobs"]
    assert all(job["verify"]["bad_blocks"] == 0 and job["verify"]["checked_bytes"] > 0 for job in jobs[1:])
    assert {line for job in jobs for line in job["transport"]["evidence"]} == {
        "memory:// by MemoryFileSystem: in this process's memory"
    }
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("part", sorted((FSSPEC / "tests").glob("test_*.py")), ids=lambda path: path.stem)
def test_its_own_suite_passes(installed: Path, tmp_path: Path, part: Path) -> None:
    done = python("pytest", "-q", "-rs", "-p", "no:cacheprovider", part, folder=installed, cwd=tmp_path)
    if done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED and "SKIPPED" in done.stdout:
        pytest.skip(done.stdout)  # no S3 server here
    assert done.returncode == 0, done.stdout
    assert "passed" in done.stdout


def test_it_asks_core_for_public_interfaces_only() -> None:
    assert modules_of_gdsfw(FSSPEC / "src") <= {"gdsfw", "gdsfw.backend", "gdsfw.errors", "gdsfw.host"}
