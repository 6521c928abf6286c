"""A stranger's backend: installed as its own distribution, it runs the quickstart and passes the kit; broken, it fails
in the test that says what is wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RAMDISK = ROOT / "examples/backends/gdsfw-ramdisk"
SOURCE = (RAMDISK / "src/gdsfw_ramdisk/__init__.py").read_text()


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that pip installed the distribution into."""
    folder = tmp_path_factory.mktemp("site")
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder, RAMDISK],
        check=True,
        capture_output=True,
    )
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
    assert "ramdisk" in done.stdout


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
    code = [line for line in SOURCE.splitlines() if line.strip() and not line.strip().startswith(("#", '"""'))]
    assert len(code) < 80


#: What is broken, how (a piece of the source and what takes its place), and the test that must find it.
FAULTS = {
    "a count that is too large": (
        "        return len(piece)\n",
        "        return size\n",
        "test_the_end_of_a_file_is_a_short_count_and_then_none",
    ),
    "the file offset is ignored": (
        "memoryview(file.state)[file_offset : file_offset + size]",
        "memoryview(file.state)[0:size]",
        "test_offsets_of_the_file",
    ),
    "the buffer offset is ignored": (
        "        self.view[buffer_offset : buffer_offset + len(piece)] = piece\n",
        "        self.view[0 : len(piece)] = piece\n",
        "test_offsets_of_the_buffer",
    ),
    "an error is swallowed": (
        "            raise OSError(errno.EBADF, os.strerror(errno.EBADF))\n",
        "            return size\n",
        "test_writing_to_a_file_that_was_opened_for_reading_fails",
    ),
    "a write that moves nothing": (
        "        file.state[file_offset : file_offset + size] = self.view[buffer_offset : buffer_offset + size]\n",
        "",
        "test_blocks_of_any_size",
    ),
    "gdsfw_io returns None": (
        '    return IOPath("memory", files, python=RamIO(buffer.host_view))\n',
        "    return None\n",
        "test_a_session_opens_and_closes_twice",
    ),
    "a descriptor leaks": (
        "def gdsfw_close_file():\n    pass\n",
        'def gdsfw_close_file():\n    FILES.setdefault("leak", []).append(open("/dev/null"))\n',
        "test_five_hundred_cycles_leave_nothing_open",
    ),
    "one buffer for all workers": (
        "    return host_memory.allocate(nbytes, memory, alignment)\n",
        "    return globals().setdefault('ONE', host_memory.allocate(32 << 20, memory, alignment))\n",
        "test_two_workers_buffers_do_not_overlap",
    ),
    "a missing file is made up": (
        'if mode == "r" or not target.create:',
        "if False:",
        "test_a_missing_file_cannot_be_opened_for_reading",
    ),
    "a path of another name": (
        'return IOPath("memory", files',
        'return IOPath("other", files',
        "test_every_path_opens_and_closes",
    ),
    "all names are one file": (
        "    data = FILES[target.name]\n",
        "    data = FILES.setdefault('one', FILES[target.name])\n",
        "test_two_names_are_two_files",
    ),
    "a flush that is not there": (
        '    def flush(self, file, data_only):\n        """Memory needs no flush."""\n',
        "",
        "test_a_flush_keeps_the_data",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_backend_is_caught_by_the_right_test(tmp_path: Path, fault: str) -> None:
    right, wrong, caught_by = FAULTS[fault]
    assert right in SOURCE
    (tmp_path / "broken.py").write_text(SOURCE.replace(right, wrong))
    suite = (RAMDISK / "tests/test_conformance.py").read_text().replace("gdsfw_ramdisk", "broken")
    suite = suite.replace('Subject("ramdisk", ', 'Subject("ramdisk", module=broken, ')
    (tmp_path / "test_broken.py").write_text(suite)
    names = f"{caught_by} or test_it_describes_itself"
    done = python(
        "pytest", "-q", "-p", "no:cacheprovider", "-rf", "-k", names, "test_broken.py", folder=tmp_path, cwd=tmp_path
    )
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
    assert failed, done.stdout
    assert all(caught_by in line for line in failed)
