"""Every way a run can end: exit code, message, partial results, nothing of the user's touched."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time

import pytest
from helpers.running import Gdsfw
from helpers.site import Site

LONG = {"name": "long", "rw": "randread", "size": "1MiB", "runtime": "60s", "numjobs": 2}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_run_and_keeps_partial_results(gdsfw: Gdsfw, number: signal.Signals) -> None:
    process = gdsfw.start_measuring(LONG, {**LONG, "name": "later"})
    process.send_signal(number)
    ended = gdsfw.ended(process)
    assert ended.code == 130, ended.stderr
    assert ended.result is not None
    assert ended.result["status"] == "interrupted"
    assert [job["name"] for job in ended.jobs] == ["long"]
    assert ended.jobs[0]["read"]["ios"] > 0
    assert ended.jobs[0]["ended_by"] == "stop"
    assert any("1 of 2 jobs were not run" in note for note in ended.result["notes"])


def test_a_second_signal_leaves_at_once(gdsfw: Gdsfw) -> None:
    process = gdsfw.start_measuring(LONG)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    assert gdsfw.ended(process).code == 130


def test_an_interrupted_layout_leaves_no_partial_file(gdsfw: Gdsfw) -> None:
    process = gdsfw.start(gdsfw.write({"name": "big", "rw": "read", "size": "2GiB", "block_size": "1MiB"}))
    path = gdsfw.folder / "data/big.0.0"
    deadline = time.monotonic() + 30
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    ended = gdsfw.ended(process)
    assert ended.code == 130, ended.stderr
    assert not path.exists()


def test_a_file_size_limit_is_named_and_ends_with_1_or_3(gdsfw: Gdsfw) -> None:
    """EFBIG: the kernel refuses to make the file that long."""
    path = gdsfw.write({"name": "w", "rw": "write", "size": "4MiB", "block_size": "64KiB"})

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    done = subprocess.run(
        gdsfw.command(path), cwd=gdsfw.folder, capture_output=True, text=True, preexec_fn=limit, check=False
    )
    assert done.returncode == 3, done.stderr
    assert "no room for 4194304 bytes (File too large)" in done.stdout + done.stderr


def test_a_truncated_file_is_an_error_with_place_and_name(gdsfw: Gdsfw) -> None:
    """Somebody truncates the file while it is read."""
    job = {"name": "r", "rw": "randread", "size": "8MiB", "runtime": "30s", "direct": False}
    process = gdsfw.start_measuring(job)
    os.truncate(gdsfw.folder / "data/r.0.0", 4096)
    ended = gdsfw.ended(process)
    assert ended.code == 1, ended.stderr
    (error, *_) = ended.jobs[0]["errors"]
    assert error["operation"] == "read"
    assert error["name"] == "ENODATA"
    assert error["bytes"] == 4096
    assert error["file"].endswith("r.0.0")
    assert ended.jobs[0]["read"]["ios"] > 0


def test_errors_are_counted_and_carried_on_through_when_asked(gdsfw: Gdsfw) -> None:
    job = {
        "name": "r", "rw": "randread", "size": "8MiB", "runtime": "2s", "direct": False, "continue_on_error": True,
    }  # fmt: skip
    process = gdsfw.start_measuring(job)
    os.truncate(gdsfw.folder / "data/r.0.0", 1 << 20)
    ended = gdsfw.ended(process)
    (result,) = ended.jobs
    assert result["error_count"] > 0
    assert result["ended_by"] == "runtime"
    assert result["read"]["errors"] == result["error_count"]


def test_one_failing_job_does_not_keep_the_next_from_running(gdsfw: Gdsfw) -> None:
    absent = {"name": "absent", "rw": "read", "filename": str(gdsfw.folder / "absent"), "size": "4KiB"}
    ended = gdsfw.run(absent, {"name": "w", "rw": "write", "size": "64KiB"}, code=3)
    assert [job["status"] for job in ended.jobs] == ["unavailable", "done"]


def test_quiet_still_says_what_failed(gdsfw: Gdsfw) -> None:
    absent = {"name": "absent", "rw": "read", "filename": str(gdsfw.folder / "absent"), "size": "4KiB"}
    ended = gdsfw.ended(gdsfw.start(gdsfw.write(absent), "--quiet"))
    assert ended.code == 3
    assert ended.stdout == ""
    assert "no such file" in ended.stderr


def test_nobody_reading_stdout_is_no_traceback(gdsfw: Gdsfw) -> None:
    path = gdsfw.write({"name": "n", "backend": "noop", "rw": "read", "size": "1MiB"})
    process = subprocess.Popen(
        [sys.executable, "-m", "gdsfw", "run", str(path), "--json"],
        cwd=gdsfw.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert "Traceback" not in process.stderr.read()
    process.stderr.close()
    process.wait(30)


STUCK = """
import os, threading
from gdsfw import hookimpl, host_memory
from gdsfw.backend import BackendInfo, FileHandle, IOPath, IOPathInfo

class Stuck:
    calls = 0
    def read(self, file, size, file_offset, buffer_offset):
        Stuck.calls += 1
        if Stuck.calls > 5:
            threading.Event().wait()
        return size
    def write(self, file, size, file_offset, buffer_offset):
        return size

@hookimpl
def gdsfw_backend():
    return BackendInfo("stuck", "Hangs", "1", (IOPathInfo("stuck", native=False),), namespace="own")
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
    if request is not None and worker.index == 7:
        raise OSError(5, "planned")
    return IOPath("stuck", files, python=Stuck())
"""


def test_a_stuck_call_is_reported_and_the_process_leaves(gdsfw: Gdsfw, site: Site) -> None:
    site.distribution("gdsfw-stuck", STUCK, entry_points={"stuck": "gdsfw_stuck"})
    path = gdsfw.write({"name": "s", "backend": "stuck", "rw": "read", "size": "1MiB", "io_timeout": "500ms"})
    ended = gdsfw.ended(gdsfw.start(path, PYTHONPATH=str(site.folder)), timeout=30)
    assert ended.code == 1, ended.stderr
    (error, *_) = ended.jobs[0]["errors"]
    assert "has been in flight" in error["message"]
    assert "read of 4096 bytes at offset 20480" in error["message"]


def test_a_worker_that_fails_to_start_takes_the_others_with_it(gdsfw: Gdsfw, site: Site) -> None:
    site.distribution("gdsfw-stuck", STUCK, entry_points={"stuck": "gdsfw_stuck"})
    path = gdsfw.write({"name": "s", "backend": "stuck", "rw": "write", "size": "16KiB", "numjobs": 8})
    ended = gdsfw.ended(gdsfw.start(path, PYTHONPATH=str(site.folder)), timeout=30)
    assert ended.code == 3, ended.stderr
    assert "planned" in ended.jobs[0]["errors"][0]["message"]
    assert ended.jobs[0]["write"]["ios"] == 0


UNFLUSHABLE = """
from gdsfw import hookimpl, host_memory
from gdsfw.backend import BackendInfo, FileHandle, IOPath, IOPathInfo

class Unflushable:
    def read(self, file, size, file_offset, buffer_offset):
        return size
    def write(self, file, size, file_offset, buffer_offset):
        return size
    def flush(self, file, data_only):
        raise OSError(5, "Input/output error")

@hookimpl
def gdsfw_backend():
    return BackendInfo("unflushable", "Fails", "1", (IOPathInfo("plain", native=False),), namespace="own")
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
    return IOPath("plain", files, python=Unflushable())
"""


def test_a_flush_that_fails_at_the_end_fails_the_job(gdsfw: Gdsfw, site: Site) -> None:
    site.distribution("gdsfw-unflushable", UNFLUSHABLE, entry_points={"unflushable": "gdsfw_unflushable"})
    job = {"name": "s", "backend": "unflushable", "rw": "write", "size": "64KiB"}
    for extra, reason in (({}, "error"), ({"continue_on_error": True}, "io_size"), ({"end_fsync": False}, "io_size")):
        path = gdsfw.write({**job, **extra})
        ended = gdsfw.ended(gdsfw.start(path, PYTHONPATH=str(site.folder)))
        (result,) = ended.jobs
        fails = "end_fsync" not in extra
        assert ended.code == (reason == "error"), ended.stderr
        assert (result["ended_by"], result["error_count"]) == (reason, int(fails))
        assert [(error["operation"], error["name"]) for error in result["errors"]] == [("flush", "EIO")] * fails
