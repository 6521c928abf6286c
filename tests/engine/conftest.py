"""The same I/O path for both loops: files in memory behind a Python object and behind a table of C callbacks."""

from __future__ import annotations

import ctypes as c
import errno
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from gdsfw.backend import Buffer, FileHandle, IOPath, Target
from gdsfw.engine import native
from gdsfw.engine import native_abi as abi
from gdsfw.engine.python_loop import PythonLoop
from gdsfw.errors import BackendError, Domain

if TYPE_CHECKING:
    from gdsfw.engine.spec import Loop, LoopResult, LoopSpec

BUFFER_BYTES = 512 << 10
FILE_CODE_BASE = 5000


@dataclass
class Store:
    """Files in memory. It remembers every call and does what was planted for the n-th one.

    Args:
        faults: by number of the read or write: an exception to raise, or a function from size to the count returned.
        flush_faults: by number of the flush: an exception to raise.
        on_move, on_flush: called at the beginning of each.
    """

    files: list[bytearray]
    faults: Mapping[int, Exception | Callable[[int], int]] = field(default_factory=dict)
    flush_faults: Mapping[int, Exception] = field(default_factory=dict)
    calls: list[tuple[str, int, int, int]] = field(default_factory=list)
    flushes: int = 0
    moves: int = 0
    on_move: Callable[[int], object] = lambda number: None
    on_flush: Callable[[], object] = lambda: None

    def move(self, operation: str, file: int, size: int, offset: int, view: memoryview) -> int:
        self.calls.append((operation, file, offset, size))
        number, self.moves = self.moves, self.moves + 1
        self.on_move(number)
        fault = self.faults.get(number)
        if isinstance(fault, Exception):
            raise fault
        count: int = size if fault is None else fault(size)
        data = self.files[file]
        moved = min(count, size)
        if operation == "read":
            moved = max(0, min(moved, len(data) - offset))
            view[:moved] = data[offset : offset + moved]
        else:
            data[offset : offset + moved] = view[:moved]
        return count if count > size or count < 0 else moved

    def flush(self, file: int, data_only: bool) -> None:
        self.calls.append(("fdatasync" if data_only else "fsync", file, 0, 0))
        self.on_flush()
        number, self.flushes = self.flushes, self.flushes + 1
        if number in self.flush_faults:
            raise self.flush_faults[number]


class StoreIO:
    """A store as a Python path."""

    def __init__(self, store: Store, handles: list[FileHandle], view: memoryview) -> None:
        self._store = store
        self._index = {id(handle): index for index, handle in enumerate(handles)}
        self._view = view

    def read(self, file: FileHandle, size: int, file_offset: int, buffer_offset: int) -> int:
        return self._store.move("read", self._index[id(file)], size, file_offset, self._view[buffer_offset:])

    def write(self, file: FileHandle, size: int, file_offset: int, buffer_offset: int) -> int:
        return self._store.move("write", self._index[id(file)], size, file_offset, self._view[buffer_offset:])

    def flush(self, file: FileHandle, data_only: bool) -> None:
        self._store.flush(self._index[id(file)], data_only)


def result_code(function: Callable[[], int | None]) -> int:
    """What a C function returns for what the Python one did."""
    try:
        return function() or 0
    except OSError as error:
        c.set_errno(error.errno or errno.EIO)
        return -1
    except BackendError as error:
        c.set_errno(0)
        return -error.code


def table_of(store: Store, view: memoryview, max_transfer: int = 0) -> native.NativeTable:
    """A store as a table of C callbacks; files are known by their index."""

    def mover(operation: str) -> Any:
        def move(file: int, base: int, size: int, offset: int, buffer_offset: int) -> int:
            return result_code(lambda: store.move(operation, file, size, offset, view[buffer_offset:]))

        return abi.IO_FN(move)

    return native.NativeTable(
        flags=abi.HOST_VISIBLE | abi.CAN_READ | abi.CAN_WRITE,
        file_code_base=FILE_CODE_BASE,
        max_transfer=max_transfer,
        read=mover("read"),
        write=mover("write"),
        flush=abi.FLUSH_FN(lambda ctx, file, data_only: result_code(lambda: store.flush(file, bool(data_only)))),
    )


@dataclass
class Run:
    """What a loop did to a store."""

    result: LoopResult
    calls: list[tuple[str, int, int, int]]
    files: list[bytes]
    buffer: bytes


class Twins:
    """Makes and runs loops over stores, by the name of the way: see WAYS."""

    WAYS = ("native", "python", "table")

    def loop(self, way: str, spec: LoopSpec, store: Store, *, max_transfer: int = 0) -> tuple[Loop, bytearray]:
        """A loop over a store and the memory of its buffer."""
        memory = bytearray(BUFFER_BYTES)
        view = memoryview(memory)
        buffer = Buffer(c.addressof((c.c_uint8 * len(memory)).from_buffer(memory)), len(memory), host_view=view)
        handles = [FileHandle(Target(f"file{i}", i, len(data))) for i, data in enumerate(store.files)]
        if way == "python":
            io = StoreIO(store, handles, view)
            if max_transfer:
                io.max_transfer = max_transfer  # type: ignore[attr-defined]
            return PythonLoop(spec, IOPath("store", handles, python=io), buffer), memory
        table = table_of(store, view, max_transfer)
        path = IOPath("store", handles, native=table, file_values=range(len(handles)))
        return (native.NativeLoop if way == "native" else PythonLoop)(spec, path, buffer), memory

    def run(self, way: str, spec: LoopSpec, store: Store, *, max_transfer: int = 0) -> Run:
        """Run a spec over a store."""
        loop, memory = self.loop(way, spec, store, max_transfer=max_transfer)
        result = loop.run()
        return Run(result, store.calls, [bytes(data) for data in store.files], bytes(memory))

    @staticmethod
    def accounts(result: LoopResult) -> dict[str, Any]:
        """All of a result that does not depend on the clock."""
        directions = {
            name: (d.ios, d.bytes, d.short_ios, d.errors, d.clat.count, d.lat.count, d.slat.count)
            for name, d in (("read", result.read), ("write", result.write))
        }
        names = ("ended_by", "errors", "error_count", "verify", "total_ios", "total_bytes", "flushes", "written")
        return directions | {name: getattr(result, name) for name in (*names, "depth_histogram")}

    store = Store
    errno = staticmethod(lambda code: OSError(code, os.strerror(code)))
    gpu = staticmethod(lambda code: BackendError("read", Domain.GPU, code))
    file = staticmethod(lambda code: BackendError("read", Domain.FILE, FILE_CODE_BASE + code))


@pytest.fixture(params=Twins.WAYS)
def way(request: pytest.FixtureRequest) -> str:
    """C loop over callbacks, Python loop over an object, Python loop over the callbacks as calls."""
    usable, reason = native.available()
    if request.param != "python" and not usable:
        pytest.skip(reason)
    return str(request.param)


@pytest.fixture(scope="session")
def twins() -> Twins:
    return Twins()
