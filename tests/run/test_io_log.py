"""The I/O log as a user gets it: one header, a line for each I/O, and nobody's file appended to."""

from __future__ import annotations

import csv
import resource
import subprocess
from pathlib import Path
from typing import Any

import pytest
from helpers.running import Gdsfw
from helpers.site import Site

HEADER = "time_ns,operation,file,offset,bytes,latency_ns,domain,code"
JOB: dict[str, Any] = {"name": "n", "backend": "noop", "rw": "read", "size": "1MiB", "io_log": "io.csv"}

PLAIN = """
from gdsfw import hookimpl, host_memory
from gdsfw.backend import BackendInfo, FileHandle, IOPath, IOPathInfo

class Plain:
    def read(self, file, size, file_offset, buffer_offset):
        return size

@hookimpl
def gdsfw_backend():
    return BackendInfo("plain", "Python", "1", (IOPathInfo("plain", native=False),), namespace="own")
@hookimpl
def gdsfw_open_file(target, mode):
    return FileHandle(target, writable=True)
@hookimpl
def gdsfw_close_file():
    pass
@hookimpl
def gdsfw_alloc(nbytes, memory, alignment):
    return host_memory.allocate(nbytes, memory, alignment)
@hookimpl
def gdsfw_free(buffer):
    host_memory.free(buffer)
@hookimpl
def gdsfw_io(worker, files, request):
    return IOPath("plain", files, python=Plain())
"""


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("backend", ["noop", "plain"])
def test_a_line_for_each_io_of_every_worker_under_one_header(gdsfw: Gdsfw, site: Site, backend: str) -> None:
    site.distribution("gdsfw-plain", PLAIN, entry_points={"plain": "gdsfw_plain"})
    path = gdsfw.write({**JOB, "backend": backend, "numjobs": 3})
    ended = gdsfw.ended(gdsfw.start(path, PYTHONPATH=str(site.folder)))
    assert ended.code == 0, ended.stderr
    assert ended.jobs[0]["loop"] == ("native" if backend == "noop" else "python")
    text = (gdsfw.folder / "io.csv").read_text()
    assert text.startswith(HEADER + "\n")
    assert text.count(HEADER) == 1
    found = rows(gdsfw.folder / "io.csv")
    assert len(found) == ended.jobs[0]["read"]["ios"] == 3 * 256
    assert {(row["operation"], row["bytes"], row["code"]) for row in found} == {("read", "4096", "0")}


def test_a_later_job_and_a_later_run_append(gdsfw: Gdsfw) -> None:
    for _ in range(2):
        gdsfw.run(JOB, {**JOB, "name": "m"})
    assert (gdsfw.folder / "io.csv").read_text().count(HEADER) == 1
    assert len(rows(gdsfw.folder / "io.csv")) == 4 * 256


@pytest.mark.parametrize("content", ["years of work\n", HEADER[:-1], HEADER + "x\n", "\xff\xfe"])
def test_a_users_file_is_not_appended_to(gdsfw: Gdsfw, content: str) -> None:
    path = gdsfw.folder / "io.csv"
    path.write_bytes(content.encode("latin-1"))
    ended = gdsfw.run({**JOB, "backend": "posix"}, code=2)
    assert "is no I/O log of gdsfw" in ended.jobs[0]["errors"][0]["message"]
    assert path.read_bytes() == content.encode("latin-1")
    assert not (gdsfw.folder / "data/n.0.0").exists()


@pytest.mark.parametrize("place", ["/dev/null", "."])
def test_what_is_no_regular_file_is_refused(gdsfw: Gdsfw, place: str) -> None:
    ended = gdsfw.run({**JOB, "io_log": place}, code=2)
    assert "not a regular file" in ended.jobs[0]["errors"][0]["message"]


def test_an_empty_file_is_taken_and_a_cut_line_ended(gdsfw: Gdsfw) -> None:
    path = gdsfw.folder / "io.csv"
    path.touch()
    gdsfw.run(JOB)
    path.write_text(path.read_text() + "123,read,0")
    gdsfw.run(JOB)
    lines = path.read_text().splitlines()
    assert (lines[0], lines[257], len(lines)) == (HEADER, "123,read,0", 1 + 256 + 1 + 256)


def test_a_folder_that_is_not_there_is_named(gdsfw: Gdsfw) -> None:
    ended = gdsfw.run({**JOB, "io_log": "absent/io.csv"}, code=3)
    assert "io_log absent/io.csv: No such file" in ended.jobs[0]["errors"][0]["message"]


@pytest.mark.parametrize("backend", ["noop", "plain"])
def test_a_log_that_cannot_be_written_on_is_noted_and_the_job_goes_on(gdsfw: Gdsfw, site: Site, backend: str) -> None:
    site.distribution("gdsfw-plain", PLAIN, entry_points={"plain": "gdsfw_plain"})
    path = gdsfw.write({**JOB, "backend": backend, "size": "8MiB"})

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))

    done = subprocess.run(
        [*gdsfw.command(path), "--json"],
        cwd=gdsfw.folder,
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(site.folder)},
        preexec_fn=limit,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "io_log is incomplete: File too large" in done.stdout
    assert (gdsfw.folder / "io.csv").read_text().startswith(HEADER + "\n")
