"""Every way a run can end, brought about for real where a machine allows it: what docs/reference/endings.md lists."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from helpers.running import Ended, Gdsfw
from helpers.site import Site

PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 24, 1, 2  # linux/prctl.h, linux/capability.h

READ = {"name": "read", "rw": "randread", "size": "8MiB", "direct": False}
LONG = {**READ, "runtime": "30s"}
WRITE = {"name": "write", "rw": "write", "size": "8MiB", "block_size": "64KiB", "direct": False}

#: A backend with names of its own whose I/O object the test supplies.
BACKEND = """
import os, threading
from gdsfw import hookimpl, host_memory
from gdsfw.backend import BackendInfo, FileHandle, IOPath, IOPathInfo

class IO:
    calls = 0
    def read(self, file, size, file_offset, buffer_offset):
        return self.next(size)
    def write(self, file, size, file_offset, buffer_offset):
        return self.next(size)
    def next(self, size):
        IO.calls += 1
        if IO.calls > 5:
            {fault}
        return size

@hookimpl
def gdsfw_backend():
    return BackendInfo("faulty", "Fails", "1", (IOPathInfo("plain", native=False),), namespace="own")
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
def gdsfw_io(worker, files):
    if worker.index == 3:
        raise OSError(12, "Cannot allocate memory")
    return IOPath("plain", files, python=IO())
"""


@dataclass
class Setting:
    """What an ending is brought about in."""

    gdsfw: Gdsfw
    site: Site

    @property
    def data(self) -> Path:
        """The folder of the jobs' files, which exists."""
        folder = self.gdsfw.folder / "data"
        folder.mkdir(exist_ok=True)
        return folder

    def ended(self, *jobs: dict[str, object], limit: Callable[[], None] | None = None) -> Ended:
        """Run these jobs, with limits of the process set first."""
        command = self.gdsfw.command(self.gdsfw.write(*jobs))
        process = subprocess.Popen(
            command,
            cwd=self.gdsfw.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=limit,
            env={**os.environ, "NO_COLOR": "1", "PYTHONPATH": str(self.site.folder)},
        )
        return self.gdsfw.ended(process)

    def faulty(self, fault: str, **job: object) -> Ended:
        """Run a job on a backend that does `fault` from the sixth call on."""
        source = BACKEND.replace("{fault}", fault)
        self.site.distribution("gdsfw-faulty", source, entry_points={"faulty": "gdsfw_faulty"})
        return self.ended(
            {"name": "job", "backend": "faulty", "rw": "write", "size": "1MiB", "end_fsync": False, **job}
        )


@contextmanager
def tmpfs(folder: Path, options: str) -> Iterator[Path]:
    """A file system of its own on a folder."""
    folder.mkdir(exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", options, "gdsfw-test", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting a tmpfs needs root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def done(s: Setting) -> Ended:
    return s.ended({**WRITE, "verify": True}, {**READ, "files_from": "write", "verify": True, "size": "8MiB"})


def wrong_workload(s: Setting) -> Ended:
    return s.ended({**READ, "iodepht": 4})


def no_room(s: Setting) -> Ended:
    with tmpfs(s.data, "size=4m"):
        return s.ended(WRITE)


def no_room_unchecked(s: Setting) -> Ended:
    with tmpfs(s.data, "size=4m"):
        return s.ended({**WRITE, "skip_space_check": True})


def no_room_later(s: Setting) -> Ended:
    """A sparse file takes its space when it is written."""
    with tmpfs(s.data, "size=4m") as folder:
        (folder / "sparse").touch()
        os.truncate(folder / "sparse", 8 << 20)
        job = {**WRITE, "filename": "sparse", "allow_overwrite": True, "skip_space_check": True, "verify": False}
        return s.ended(job)


def file_too_large(s: Setting) -> Ended:
    (s.data / "sparse").touch()
    os.truncate(s.data / "sparse", 8 << 20)

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    return s.ended({**WRITE, "filename": "sparse", "allow_overwrite": True}, limit=limit)


def device_error(s: Setting) -> Ended:
    """The file behind a loop device is cut: the blocks behind its new end cannot be read."""
    if os.geteuid() != 0 or not shutil.which("losetup"):
        pytest.skip("loop devices need root and losetup")
    image = s.data / "image"
    image.write_bytes(bytes(8 << 20))
    attached = subprocess.run(["losetup", "--find", "--show", str(image)], capture_output=True, text=True, check=False)
    if attached.returncode:
        pytest.skip("no loop device can be attached")
    device = attached.stdout.strip()
    try:
        os.truncate(image, 1 << 20)
        return s.ended({**READ, "rw": "read", "filename": device, "direct": True, "block_size": "64KiB"})
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)


def over_quota(s: Setting) -> Ended:
    return s.faulty('raise OSError(122, "Disk quota exceeded")')


def carried_on(s: Setting) -> Ended:
    return s.faulty('raise OSError(122, "Disk quota exceeded")', continue_on_error=True)


def no_permission(s: Setting) -> Ended:
    """Root without the right to pass over permissions is refused like anybody else."""
    (s.data / "secret").write_bytes(bytes(8 << 20))
    (s.data / "secret").chmod(0)

    def limit() -> None:
        if os.geteuid() == 0:
            for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
                ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, capability)

    return s.ended({**READ, "filename": "secret"}, limit=limit)


def missing_file(s: Setting) -> Ended:
    return s.ended({**READ, "filename": "absent"})


def truncated_file(s: Setting) -> Ended:
    process = s.gdsfw.start_measuring(LONG)
    os.truncate(s.data / "read.0.0", 4096)
    return s.gdsfw.ended(process)


def read_only(s: Setting) -> Ended:
    with tmpfs(s.data, "ro"):
        return s.ended(WRITE)


def users_file(s: Setting) -> Ended:
    (s.data / "precious").write_bytes(b"mine")
    ended = s.ended({**WRITE, "filename": "precious"})
    assert (s.data / "precious").read_bytes() == b"mine"
    return ended


def wrong_data(s: Setting) -> Ended:
    s.gdsfw.run({**WRITE, "verify": True})
    with (s.data / "write.0.0").open("r+b") as file:
        file.seek(1_234_567)
        byte = file.read(1)
        file.seek(1_234_567)
        file.write(bytes([byte[0] ^ 1]))
    return s.ended({**READ, "filename": "write.0.0", "verify": True})


def stuck(s: Setting) -> Ended:
    return s.faulty("threading.Event().wait()", io_timeout="300ms")


def dying_worker(s: Setting) -> Ended:
    return s.faulty("pass", numjobs=4)


def interrupted(s: Setting, number: int = signal.SIGINT) -> Ended:
    process = s.gdsfw.start_measuring(LONG)
    process.send_signal(number)
    return s.gdsfw.ended(process)


def terminated(s: Setting) -> Ended:
    return interrupted(s, signal.SIGTERM)


def interrupted_twice(s: Setting) -> Ended:
    process = s.gdsfw.start_measuring(LONG)
    (s.gdsfw.folder / "result.json").unlink()  # of the run that laid the file out
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    return s.gdsfw.ended(process)


def nobody_reads(s: Setting) -> Ended:
    """`gdsfw run ... | head -0`."""
    command = s.gdsfw.command(s.gdsfw.write({"name": "n", "backend": "noop", "rw": "read", "size": "1MiB"}))
    process = subprocess.Popen(command, cwd=s.gdsfw.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    process.wait(30)
    return Ended(process.returncode, "", said, json.loads((s.gdsfw.folder / "result.json").read_text()))


def no_room_for_the_result(s: Setting) -> Ended:
    with tmpfs(s.data, "size=64k") as folder:
        (folder / "full").write_bytes(bytes(64 << 10))
        path = s.gdsfw.write({"name": "n", "backend": "noop", "rw": "read", "size": "1MiB"})
        kept = s.gdsfw.folder / "tmp"
        kept.mkdir()
        process = s.gdsfw.start(path, "-o", str(folder / "result.json"), TMPDIR=str(kept))
        ended = s.gdsfw.ended(process)
        (rescued,) = kept.iterdir()
        return Ended(ended.code, ended.stdout, ended.stderr, json.loads(rescued.read_text()))


@dataclass(frozen=True)
class Ending:
    """One row of the table.

    Args:
        how: what brings it about.
        code: the exit code.
        status: of the run's result; None where there is none.
        keeps: what is left, in words.
    """

    name: str
    how: str
    bring_about: Callable[[Setting], Ended]
    code: int
    status: str | None
    keeps: str


WHOLE, PARTIAL, NOTHING = "result of all jobs", "result with what was measured until then", "nothing: no I/O was done"

ENDINGS = [
    Ending("done", "all went well", done, 0, "done", WHOLE),
    Ending("wrong workload", "a key that does not exist", wrong_workload, 2, None, NOTHING),
    Ending("does not fit", "the plan needs more than is free", no_room, 2, None, NOTHING),
    Ending("ENOSPC at the start", "the same with `skip_space_check`", no_room_unchecked, 3, "unavailable", WHOLE),
    Ending("ENOSPC", "a sparse file on a file system that fills up", no_room_later, 1, "failed", PARTIAL),
    Ending("EFBIG", "a file size limit (`ulimit -f`)", file_too_large, 1, "failed", PARTIAL),
    Ending("EIO", "a device that cannot read a block", device_error, 1, "failed", PARTIAL),
    Ending("EDQUOT", "a quota (here: a backend that says so)", over_quota, 1, "failed", PARTIAL),
    Ending(
        "carried on", "the same with `continue_on_error`", carried_on, 0, "done", "result of all jobs, errors counted"
    ),
    Ending("EACCES", "no permission", no_permission, 3, "unavailable", WHOLE),
    Ending("ENOENT", "a file that is not there", missing_file, 3, "unavailable", WHOLE),
    Ending("ENODATA", "a file that somebody truncates", truncated_file, 1, "failed", PARTIAL),
    Ending("EROFS", "a read-only file system", read_only, 3, "unavailable", WHOLE),
    Ending("the user's file", "a write job on a file that gdsfw did not make", users_file, 4, "refused", WHOLE),
    Ending("wrong data", "a flipped bit, `verify: true`", wrong_data, 1, "failed", PARTIAL),
    Ending("stuck", "a call that does not return within `io_timeout`", stuck, 1, "failed", PARTIAL),
    Ending("dying worker", "one worker of four fails to start", dying_worker, 3, "unavailable", WHOLE),
    Ending("SIGINT", "Ctrl-C", interrupted, 130, "interrupted", PARTIAL),
    Ending("SIGTERM", "`kill`", terminated, 130, "interrupted", PARTIAL),
    Ending(
        "SIGINT twice", "Ctrl-C again before it has ended", interrupted_twice, 130, None, "nothing: it leaves at once"
    ),
    Ending("SIGPIPE", "nobody reads stdout", nobody_reads, 141, "done", WHOLE),
    Ending("no room for the result", "`-o` on a full disk", no_room_for_the_result, 0, "done", "result in $TMPDIR"),
]
