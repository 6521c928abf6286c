"""What is the Python loop's own; what it shares with the C loop is in test_both_loops.py and its neighbours."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import gdsfw
import pluggy
import pytest
from gdsfw.backend import Buffer, FileHandle, IOPath, Target
from gdsfw.engine.python_loop import PythonLoop
from gdsfw.engine.spec import BlockSizes, EndedBy, LoopError, LoopFile, LoopSpec
from gdsfw.errors import Domain, UsageError

BLOCK = 4096
SPEC = LoopSpec(
    rw="read",
    random=False,
    read_blocks=BlockSizes(((BLOCK, 1),)),
    write_blocks=BlockSizes(((BLOCK, 1),)),
    block_align=0,
    files=(LoopFile(0, 0, 16 * BLOCK),),
    seed=1,
)


class Path16:
    """A path without flush that counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def read(self, file: FileHandle, size: int, file_offset: int, buffer_offset: int) -> int:
        self.calls += 1
        self.on_call()
        return size

    write = read

    def on_call(self) -> None:
        """Planted by a test."""


def make(spec: LoopSpec, io: Any) -> PythonLoop:
    buffer = Buffer(0, BLOCK, host_view=memoryview(bytearray(BLOCK)))
    return PythonLoop(spec, IOPath("mine", [FileHandle(Target("f", 0, 0))], python=io), buffer)


def test_an_os_error_without_a_number_counts_as_eio() -> None:
    class Vague(Path16):
        def on_call(self) -> None:
            raise OSError("something went wrong")

    assert make(SPEC, Vague()).run().errors == (LoopError("read", 0, 0, BLOCK, Domain.ERRNO, errno.EIO),)


@pytest.mark.parametrize("flushes", [{"fsync_every": 1}, {"fdatasync_every": 1}, {"end_fsync": True}])
def test_a_path_without_flush_is_refused_where_one_is_needed(flushes: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="no method flush"):
        make(replace(SPEC, rw="write", **flushes), Path16())
    assert make(replace(SPEC, **flushes), Path16()).run().ended_by is EndedBy.IO_SIZE


def test_a_signal_handler_may_stop_the_loop() -> None:
    io = Path16()
    loop = make(replace(SPEC, runtime_ns=3600 * 10**9), io)
    before = signal.signal(signal.SIGUSR1, lambda number, frame: loop.stop())
    try:
        io.on_call = lambda: os.kill(os.getpid(), signal.SIGUSR1) if io.calls == 9 else None  # type: ignore[method-assign]
        result = loop.run()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert result.ended_by is EndedBy.STOP
    assert result.read.ios >= 9


def test_the_log_is_complete_when_a_defect_of_the_path_ends_the_loop(tmp_path: Path) -> None:
    io = Path16()

    def break_down() -> None:
        if io.calls == 4:
            raise ZeroDivisionError

    io.on_call = break_down  # type: ignore[method-assign]
    log = tmp_path / "log"
    log.touch()
    with pytest.raises(ZeroDivisionError):
        make(replace(SPEC, io_log_path=str(log)), io).run()
    assert len(log.read_text().splitlines()) == 3


def test_workers_that_share_a_log_keep_each_others_lines_whole(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.touch()
    spec = replace(SPEC, io_log_path=str(log), loops=200)
    loops = [make(spec, Path16()) for _ in range(2)]
    threads = [threading.Thread(target=loop.run) for loop in loops]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = log.read_text().splitlines()
    assert len(lines) == 2 * 16 * 200
    assert all(line.count(",") == 7 for line in lines)


def test_a_full_disk_under_the_log_does_not_end_the_io() -> None:
    result = make(replace(SPEC, io_log_path="/dev/full", loops=500), Path16()).run()
    assert (result.ended_by, result.error_count) == (EndedBy.IO_SIZE, 0)


def test_cpu_time_is_measured() -> None:
    result = make(replace(SPEC, loops=50), Path16()).run()
    assert result.cpu_ns > 0


def test_the_loop_works_where_the_c_engine_is_missing(tmp_path: Path) -> None:
    package = Path(gdsfw.__file__).parent
    shutil.copytree(package, tmp_path / "gdsfw", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    script = tmp_path / "script.py"
    script.write_text(WITHOUT_ENGINE)
    # -S: no .pth files are followed, so that the copy without the library is the one that is imported.
    paths = [str(tmp_path), str(Path(pluggy.__file__).parents[1])]
    environment = {"PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-S", str(script), str(tmp_path / "data")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout == "False\n0 65536\n16 65536 65536 0\n1\n"


WITHOUT_ENGINE = """
import os, sys
from dataclasses import replace
from gdsfw.backend import Buffer, FileHandle, IOPath, Target
from gdsfw.engine import native
from gdsfw.engine.python_loop import PythonLoop
from gdsfw.engine.spec import BlockSizes, LoopFile, LoopSpec, Verify

view = memoryview(bytearray(4096))

class IO:
    def read(self, file, size, file_offset, buffer_offset):
        return os.preadv(file.fd, [view[:size]], file_offset)

    def write(self, file, size, file_offset, buffer_offset):
        return os.pwritev(file.fd, [view[:size]], file_offset)

blocks = BlockSizes(((4096, 1),))
spec = LoopSpec(rw="write", random=True, read_blocks=blocks, write_blocks=blocks, block_align=0,
                files=(LoopFile(1, 0, 65536, 5),), seed=3, write_fill="pattern", verify=Verify())
handle = FileHandle(Target(sys.argv[1], 1, 0), fd=os.open(sys.argv[1], os.O_RDWR | os.O_CREAT))
path = IOPath("os", [handle], python=IO())
print(native.available()[0])
written = PythonLoop(spec, path, Buffer(0, 4096, host_view=view)).run()
print(written.error_count, written.write.bytes)
read = replace(spec, rw="read")
result = PythonLoop(read, path, Buffer(0, 4096, host_view=view)).run()
print(result.read.ios, result.verify.checked_bytes, result.verify.expected_bytes, result.verify.bad_blocks)
os.pwrite(handle.fd, b"x", 100)
print(PythonLoop(read, path, Buffer(0, 4096, host_view=view)).run().verify.bad_blocks)
"""
