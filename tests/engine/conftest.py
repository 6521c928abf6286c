"""The same I/O path for both loops: files in memory behind a Python object and behind a table of C callbacks."""

from __future__ import annotations

import ctypes as c
import errno
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from gdsfw.backend import BlockData, Buffer, FileHandle, IOPath, Pattern, PatternMismatch, Target
from gdsfw.engine import native
from gdsfw.engine import native_table as abi
from gdsfw.engine.pattern import python_fill, python_verify
from gdsfw.engine.python_loop import PythonLoop
from gdsfw.errors import BackendError, Domain
from helpers.made import made

if TYPE_CHECKING:
    from pathlib import Path

    from gdsfw.engine.spec import Loop, LoopResult, LoopSpec

BUFFER_BYTES = 512 << 10
FILE_CODE_BASE = 5000


def lost(size: int) -> int:
    """A fault: storage says that it wrote, and did not."""
    return size


@dataclass
class Store:
    """Files in memory. It remembers every call and does what was planted for the n-th one.

    Args:
        faults: by number of the read or write: an exception to raise, or a function from size to the count returned.
        flush_faults: by number of the flush: an exception to raise.
        memory_faults: by name of a function of memory that the host cannot touch: an exception to raise.
        on_move, on_flush: called at the beginning of each.
    """

    files: list[bytearray]
    faults: Mapping[int, Exception | Callable[[int], int]] = field(default_factory=dict)
    flush_faults: Mapping[int, Exception] = field(default_factory=dict)
    calls: list[tuple[str, int, int, int]] = field(default_factory=list)
    memory_faults: Mapping[str, Exception] = field(default_factory=dict)
    memory_calls: list[str] = field(default_factory=list)
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
        if fault is lost:
            return size
        count: int = size if fault is None else fault(size)
        data = self.files[file]
        moved = min(count, size)
        if operation == "read":
            moved = max(0, min(moved, len(data) - offset))
            view[:moved] = data[offset : offset + moved]
        else:
            data[offset : offset + moved] = view[:moved]
        return count if count > size or count < 0 else moved

    def touch_memory(self, name: str) -> None:
        self.memory_calls.append(name)
        if name in self.memory_faults:
            raise self.memory_faults[name]

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
        self.max_transfer = 0

    def read(self, file: FileHandle, size: int, file_offset: int, buffer_offset: int) -> int:
        return self._store.move("read", self._index[id(file)], size, file_offset, self._view[buffer_offset:])

    def write(self, file: FileHandle, size: int, file_offset: int, buffer_offset: int) -> int:
        return self._store.move("write", self._index[id(file)], size, file_offset, self._view[buffer_offset:])

    def flush(self, file: FileHandle, data_only: bool) -> None:
        self._store.flush(self._index[id(file)], data_only)


class DeviceIO(StoreIO):
    """A store whose memory only the path itself can touch."""

    def copy(self, buffer_offset: int, host_view: memoryview, direction: str) -> None:
        self._store.touch_memory("copy")
        assert direction == "from_host"
        self._view[buffer_offset : buffer_offset + host_view.nbytes] = host_view

    def fill(self, size: int, file_offset: int, buffer_offset: int, pattern: Pattern) -> None:
        self._store.touch_memory("fill")
        python_fill(self._view[buffer_offset : buffer_offset + size], file_offset, pattern)

    def verify(self, size: int, file_offset: int, buffer_offset: int, pattern: Pattern) -> PatternMismatch | None:
        self._store.touch_memory("verify")
        return python_verify(self._view[buffer_offset : buffer_offset + size], file_offset, pattern)

    def register_buffer(self, buffer_offset: int, size: int) -> None:
        self._store.touch_memory("register_buffer")

    def deregister_buffer(self, buffer_offset: int) -> None:
        self._store.touch_memory("deregister_buffer")


class MakingIO(DeviceIO):
    """The same, and it makes the data to write."""

    def make_data(self, size: int, buffer_offset: int, data: BlockData) -> None:
        self._store.touch_memory("make_data")
        self._view[buffer_offset : buffer_offset + size] = made(data, size)


class FileIO:
    """Real files as a Python path."""

    def __init__(self, view: memoryview) -> None:
        self._view = view

    def read(self, file: FileHandle, size: int, file_offset: int, buffer_offset: int) -> int:
        return os.preadv(file.fd, [self._view[buffer_offset : buffer_offset + size]], file_offset)

    def write(self, file: FileHandle, size: int, file_offset: int, buffer_offset: int) -> int:
        return os.pwritev(file.fd, [self._view[buffer_offset : buffer_offset + size]], file_offset)

    def flush(self, file: FileHandle, data_only: bool) -> None:
        (os.fdatasync if data_only else os.fsync)(file.fd)


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


def device_table_of(io: DeviceIO, table: native.NativeTable) -> native.NativeTable:
    """`table` with memory that only the callbacks can touch."""

    def copy(ctx: int, base: int, offset: int, host: int, size: int, direction: int) -> int:
        data = memoryview((c.c_uint8 * size).from_address(host)).cast("B")
        return result_code(lambda: io.copy(offset, data, ("to_host", "from_host")[direction]))

    def pattern_of(pattern: Any) -> Pattern:
        return Pattern(pattern.contents.seed, pattern.contents.file_id, pattern.contents.generation)

    def fill(ctx: int, base: int, offset: int, size: int, file_offset: int, pattern: Any) -> int:
        return result_code(lambda: io.fill(size, file_offset, offset, pattern_of(pattern)))

    def verify(ctx: int, base: int, offset: int, size: int, file_offset: int, pattern: Any, out: Any) -> int:
        def compare() -> None:
            mismatch = io.verify(size, file_offset, offset, pattern_of(pattern))
            if mismatch is not None:
                out.contents.bad_bytes, out.contents.file_offset = mismatch.bad_bytes, mismatch.file_offset
                out.contents.length = shown = len(mismatch.expected)
                out.contents.expected[:shown], out.contents.found[:shown] = mismatch.expected, mismatch.found

        return result_code(compare)

    def make_data(ctx: int, base: int, offset: int, size: int, data: Any) -> int:
        given = data.contents
        block = BlockData(given.seed, given.file_id, given.nonce, given.piece, given.random, bool(given.stamped))
        assert isinstance(io, MakingIO)
        return result_code(lambda: io.make_data(size, offset, block))

    table.flags = abi.CAN_READ | abi.CAN_WRITE
    if isinstance(io, MakingIO):
        table.make_data = abi.MAKE_DATA_FN(make_data)
    table.copy, table.fill, table.verify = abi.COPY_FN(copy), abi.FILL_FN(fill), abi.VERIFY_FN(verify)
    table.register_buffer = abi.REGISTER_FN(lambda ctx, base, size: result_code(lambda: io.register_buffer(0, size)))
    table.deregister_buffer = abi.DEREGISTER_FN(lambda ctx, base: result_code(lambda: io.deregister_buffer(0)))
    return table


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

    def loop(
        self,
        way: str,
        spec: LoopSpec,
        store: Store,
        *,
        max_transfer: int = 0,
        device: bool = False,
        makes: bool = False,
    ) -> tuple[Loop, bytearray]:
        """A loop over a store and the memory of its buffer.

        Args:
            device: only the path can touch the memory.
            makes: and the path makes the data to write.
        """
        memory = bytearray(BUFFER_BYTES)
        view = memoryview(memory)
        address = c.addressof((c.c_uint8 * len(memory)).from_buffer(memory))
        buffer = Buffer(address, len(memory), host_view=None if device or makes else view)
        handles = [FileHandle(Target(f"file{i}", i, len(data))) for i, data in enumerate(store.files)]
        io = (MakingIO if makes else DeviceIO if device else StoreIO)(store, handles, view)
        if way == "python":
            io.max_transfer = max_transfer
            return PythonLoop(spec, IOPath("store", handles, python=io), buffer), memory
        table = table_of(store, view, max_transfer)
        if isinstance(io, DeviceIO):
            table = device_table_of(io, table)
        path = IOPath("store", handles, native=table, file_values=range(len(handles)))
        return (native.NativeLoop if way == "native" else PythonLoop)(spec, path, buffer), memory

    def run(self, way: str, spec: LoopSpec, store: Store, **how: Any) -> Run:
        """Run a spec over a store; `how` as in `loop`."""
        loop, memory = self.loop(way, spec, store, **how)
        result = loop.run()
        return Run(result, store.calls, [bytes(data) for data in store.files], bytes(memory))

    def run_on_files(self, way: str, spec: LoopSpec, paths: Sequence[Path]) -> LoopResult:
        """Run a spec over real files: by psync, or by os.preadv and os.pwritev."""
        view = memoryview(memory := bytearray(BUFFER_BYTES))
        buffer = Buffer(c.addressof((c.c_uint8 * len(memory)).from_buffer(memory)), len(memory), host_view=view)
        handles = [FileHandle(Target(str(path), 0, 0), fd=os.open(path, os.O_RDWR | os.O_CREAT)) for path in paths]
        values = [native.FdFile(handle.fd, -1, 1, 0) for handle in handles]
        try:
            if way == "python":
                return PythonLoop(spec, IOPath("files", handles, python=FileIO(view)), buffer).run()
            table, addresses = native.psync_table(), [c.addressof(value) for value in values]
            path = IOPath("psync", handles, native=table, file_values=addresses)
            return (native.NativeLoop if way == "native" else PythonLoop)(spec, path, buffer).run()
        finally:
            for handle in handles:
                os.close(handle.fd)

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
    lost = staticmethod(lost)
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
