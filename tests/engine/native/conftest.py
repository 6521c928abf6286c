from __future__ import annotations

import ctypes as c
import errno
import mmap
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from gdsfw.backend import Buffer, FileHandle, IOPath, Target
from gdsfw.engine import native
from gdsfw.engine import native_table as abi
from gdsfw.engine.native import FdFile, NativeLoop, NativeTable
from gdsfw.engine.spec import BlockSizes, LoopFile, LoopResult, LoopSpec

KIB = 1024
usable, reason = native.available()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if not usable and here in item.path.parents:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def library() -> c.CDLL:
    return native.engine().library


@pytest.fixture
def buffer() -> Iterator[Buffer]:
    """One MiB of page-aligned host memory."""
    memory = mmap.mmap(-1, 1024 * KIB)
    held = (c.c_uint8 * len(memory)).from_buffer(memory)
    view = memoryview(memory)
    yield Buffer(c.addressof(held), len(memory), host_view=view)
    view.release()
    del held
    memory.close()


def _spec(length: int = 256 * KIB, **changes: Any) -> LoopSpec:
    block = changes.pop("block", 4 * KIB)
    sizes = block if isinstance(block, BlockSizes) else BlockSizes(((block, 1),))
    values: dict[str, Any] = {
        "rw": "read",
        "random": False,
        "read_blocks": sizes,
        "write_blocks": sizes,
        "block_align": 0,
        "files": (LoopFile(7, 0, length, pattern_seed=11),),
        "seed": 3,
        "slot_stride": 64 * KIB,
    }
    return LoopSpec(**(values | changes))


@pytest.fixture
def make_spec() -> Callable[..., LoopSpec]:
    """A LoopSpec from what differs: sequential 4 KiB reads of one file of 256 KiB unless said otherwise."""
    return _spec


@pytest.fixture
def open_path() -> Iterator[Callable[..., IOPath]]:
    """Open files for psync (or another table for descriptors)."""
    descriptors: list[int] = []

    def make(*paths: Path, table: NativeTable | None = None, name: str = "psync", iodepth: int = 1) -> IOPath:
        handles, values = [], []
        for path in paths:
            fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            descriptors.append(fd)
            handles.append(FileHandle(Target(str(path), 7, 0), fd=fd))
            values.append(FdFile(fd, -1, 1, 0))
        native_table = native.psync_table() if table is None else table
        addresses = [c.addressof(value) for value in values]
        return IOPath(name, handles, native=native_table, file_values=addresses, keep=values, iodepth=iodepth)

    yield make
    for fd in descriptors:
        os.close(fd)


@dataclass
class Scripted:
    """A table whose moves are answered by a Python function: (direction, size, offset) -> result.

    Raise OSError for -1 with errno. `calls` lists (direction, size, offset).
    """

    answer: Callable[[str, int, int], int]
    calls: list[tuple[str, int, int]] = field(default_factory=list)
    flags: int = abi.CAN_READ | abi.CAN_WRITE
    max_transfer: int = 0
    file_code_base: int = 0
    on_flush: Callable[[bool], int] = lambda data_only: 0

    def table(self) -> NativeTable:
        def mover(direction: str) -> Any:
            def move(file: int, base: int, size: int, offset: int, buffer_offset: int) -> int:
                self.calls.append((direction, size, offset))
                return self._result(lambda: self.answer(direction, size, offset))

            return abi.IO_FN(move)

        return NativeTable(
            flags=self.flags,
            max_transfer=self.max_transfer,
            file_code_base=self.file_code_base,
            read=mover("read"),
            write=mover("write"),
            flush=abi.FLUSH_FN(lambda ctx, file, data_only: self._flush(bool(data_only))),
        )

    def _flush(self, data_only: bool) -> int:
        self.calls.append(("fdatasync" if data_only else "fsync", 0, 0))
        return self._result(lambda: self.on_flush(data_only))

    @staticmethod
    def _result(function: Callable[[], int]) -> int:
        try:
            return function()
        except OSError as error:
            c.set_errno(error.errno or errno.EIO)
            return -1

    def path(self, files: int = 1) -> IOPath:
        handles = [FileHandle(Target(f"file{i}", i, 0)) for i in range(files)]
        return IOPath("scripted", handles, native=self.table(), file_values=[10 + i for i in range(files)])


@pytest.fixture
def scripted() -> type[Scripted]:
    return Scripted


@pytest.fixture
def run(buffer: Buffer) -> Callable[[LoopSpec, IOPath], LoopResult]:
    """Run a spec over a path with the test's buffer."""

    def go(spec: LoopSpec, path: IOPath) -> LoopResult:
        return NativeLoop(spec, path, buffer).run()

    return go


@pytest.fixture
def noop_path() -> Callable[..., IOPath]:
    def make(files: int = 1) -> IOPath:
        handles = [FileHandle(Target(f"file{i}", i, 0)) for i in range(files)]
        return IOPath("noop", handles, native=native.noop_table(), file_values=[1] * files)

    return make
