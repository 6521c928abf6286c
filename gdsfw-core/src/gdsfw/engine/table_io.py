"""Any native table as the Python calls of gdsfw.backend.PythonIO: what wrapping plugins and the Python loop use."""

from __future__ import annotations

import ctypes as c
import errno
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from gdsfw.backend import Completion
from gdsfw.engine.native_abi import Verdict
from gdsfw.engine.native_library import (
    address_of,
    check_table,
    engine,
    mismatch_of,
    pattern_struct,
    raise_verdict,
)
from gdsfw.engine.native_table import (
    HOST_VISIBLE,
    BlockDataStruct,
    CompletionStruct,
    MismatchStruct,
    NativeTable,
    QueueOptions,
    RequestStruct,
)
from gdsfw.engine.ranges import check_io
from gdsfw.errors import Domain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gdsfw.backend import BlockData, Buffer, CopyDirection, FileHandle, Pattern, PatternMismatch, QueueRequest

#: Longest that a single read or write through a queue waits in one call.
WAIT_NS = 100_000_000


def table_io(table: NativeTable, file_values: Mapping[int, int], buffer: Buffer, iodepth: int = 1) -> TableIO:
    """The table's calls; with submit and reap when it has a queue, which is opened for `iodepth` at the first use.

    Args:
        file_values: what the table calls each file, by id() of its FileHandle.
        buffer: the worker's buffer.

    Raises:
        PluginError: the table has another interface version.
    """
    if table.queue:
        return QueueTableIO(table, file_values, buffer, iodepth)
    return TableIO(table, file_values, buffer)


class TableIO:
    """A native table as the calls of gdsfw.backend.PythonIO. Failures are OSError (errno) or BackendError."""

    def __init__(self, table: NativeTable, file_values: Mapping[int, int], buffer: Buffer) -> None:
        check_table(table, "as_python")
        self.table = table
        self.buffer = buffer
        self._values = file_values
        self._library = engine().library
        if table.struct_size > NativeTable.make_data.offset and table.make_data:
            self.make_data = self._make_data  # a table without it must not seem to have it

    @property
    def max_transfer(self) -> int:
        """Most bytes of one call, 0 for no limit."""
        return int(self.table.max_transfer)

    def read(self, file: FileHandle, size: int, file_offset: int, buffer_offset: int) -> int:
        """Move `size` bytes from the file into the buffer and return the count moved."""
        return self._move("read", 0, file, size, file_offset, buffer_offset)

    def write(self, file: FileHandle, size: int, file_offset: int, buffer_offset: int) -> int:
        """Move `size` bytes from the buffer into the file and return the count moved."""
        return self._move("write", 1, file, size, file_offset, buffer_offset)

    def flush(self, file: FileHandle, data_only: bool) -> None:
        """fsync the file, or fdatasync."""
        self._call("flush", "gdsfw_call_flush", self._value(file), int(data_only))

    def copy(self, buffer_offset: int, host_view: memoryview, direction: CopyDirection) -> None:
        """Copy between the buffer and host memory."""
        if self.table.copy or not self.table.flags & HOST_VISIBLE:
            address, held = address_of(host_view)
            code = 0 if direction == "to_host" else 1
            base = self.buffer.address
            self._call("copy", "gdsfw_call_copy", base, buffer_offset, address, host_view.nbytes, code)
            del held
            return
        mine = (c.c_uint8 * host_view.nbytes).from_address(self.buffer.address + buffer_offset)
        if direction == "to_host":
            host_view[:] = memoryview(mine).cast("B")
        else:
            memoryview(mine).cast("B")[:] = host_view

    def fill(self, size: int, file_offset: int, buffer_offset: int, pattern: Pattern) -> None:
        """Write the pattern of a file range into the buffer."""
        wanted = c.byref(pattern_struct(pattern))
        self._call("fill", "gdsfw_call_fill", self.buffer.address, buffer_offset, size, file_offset, wanted)

    def _make_data(self, size: int, buffer_offset: int, data: BlockData) -> None:
        """Put the block that `data` describes into the buffer."""
        wanted = BlockDataStruct(**asdict(data))
        self._call("fill", "gdsfw_call_make_data", self.buffer.address, buffer_offset, size, c.byref(wanted))

    def verify(self, size: int, file_offset: int, buffer_offset: int, pattern: Pattern) -> PatternMismatch | None:
        """Compare the buffer with the pattern of a file range; None when all bytes match."""
        wanted, found = c.byref(pattern_struct(pattern)), MismatchStruct()
        base = self.buffer.address
        self._call("verify", "gdsfw_call_verify", base, buffer_offset, size, file_offset, wanted, c.byref(found))
        return mismatch_of(found)

    def register_buffer(self, buffer_offset: int, size: int) -> None:
        """Register a part of the buffer with the library."""
        self._call("register", "gdsfw_call_register", self.buffer.address + buffer_offset, size)

    def deregister_buffer(self, buffer_offset: int) -> None:
        """Undo register_buffer."""
        self._call("register", "gdsfw_call_register", self.buffer.address + buffer_offset, 0)

    def _value(self, file: FileHandle) -> int:
        return self._values[id(file)]

    def _move(self, name: str, opcode: int, file: FileHandle, size: int, file_offset: int, buffer_offset: int) -> int:
        check_io(self.buffer, size, file_offset, buffer_offset)
        wanted = RequestStruct(
            opcode=opcode,
            file=self._value(file),
            buffer_base=self.buffer.address,
            size=size,
            file_offset=file_offset,
            buffer_offset=buffer_offset,
        )
        return self._call(name, "gdsfw_call_move", c.byref(wanted))

    def _call(self, operation: str, function: str, *arguments: Any) -> int:
        verdict = Verdict()
        moved: int = getattr(self._library, function)(c.byref(self.table), *arguments, c.byref(verdict))
        raise_verdict(operation, verdict)
        return moved


class QueueTableIO(TableIO):
    """A table with a queue. `close` when done; where the table has no read or write, they go through the queue."""

    def __init__(self, table: NativeTable, file_values: Mapping[int, int], buffer: Buffer, iodepth: int = 1) -> None:
        super().__init__(table, file_values, buffer)
        self._iodepth = iodepth
        self._functions = table.queue.contents
        self._queue: int | None = None

    def submit(self, requests: Sequence[QueueRequest]) -> int:
        """Take the first k of the requests and return k, 0 when the queue is full."""
        queue = self._opened()
        given = (RequestStruct * len(requests))(*(self._request(request) for request in requests))
        return self._checked("submit", self._functions.submit, queue, given, len(given))

    def reap(self, at_least: int, timeout_ns: int) -> list[Completion]:
        """Wait until so many completions are there or the timeout has passed."""
        queue = self._opened()
        found = (CompletionStruct * self._iodepth)()
        count = self._checked("reap", self._functions.reap, queue, found, at_least, self._iodepth, timeout_ns)
        return [
            Completion(f.cookie, f.result, Domain(f.domain), f.code, max(1, f.count), f.storage_ns, f.copy_ns)
            for f in found[:count]
        ]

    def cancel(self) -> None:
        """Ask for what is in flight to end early, where the queue can."""
        if self._queue is not None and self._functions.cancel:
            self._checked("cancel", self._functions.cancel, self._queue)

    def close(self) -> None:
        """Close the queue; nothing may be in flight."""
        if self._queue is not None:
            self._functions.close(self._queue)
            self._queue = None

    def _request(self, request: QueueRequest) -> RequestStruct:
        check_io(self.buffer, request.size, request.file_offset, request.buffer_offset)
        return RequestStruct(
            opcode=int(request.direction == "write"),
            file=self._value(request.file),
            buffer_base=self.buffer.address,
            size=request.size,
            file_offset=request.file_offset,
            buffer_offset=request.buffer_offset,
            cookie=request.cookie,
        )

    def _move(self, name: str, opcode: int, file: FileHandle, size: int, file_offset: int, buffer_offset: int) -> int:
        if self.table.write if opcode else self.table.read:
            return super()._move(name, opcode, file, size, file_offset, buffer_offset)
        check_io(self.buffer, size, file_offset, buffer_offset)
        queue = self._opened()
        one = RequestStruct(opcode, 0, self._value(file), self.buffer.address, size, file_offset, buffer_offset, 0)
        if self._checked("submit", self._functions.submit, queue, c.pointer(one), 1) != 1:
            raise OSError(errno.EAGAIN, "the queue is full although nothing is in flight")
        found = CompletionStruct()
        while not self._checked("reap", self._functions.reap, queue, c.pointer(found), 1, 1, WAIT_NS):
            pass
        raise_verdict(name, Verdict(found.domain, 0, found.code))
        return int(found.result)

    def _opened(self) -> int:
        if self._queue is None:
            values = (c.c_uint64 * len(self._values))(*self._values.values())
            options = QueueOptions(
                iodepth=self._iodepth,
                iodepth_batch=self._iodepth,
                buffer_base=self.buffer.address,
                buffer_size=self.buffer.nbytes,
                max_block=self.buffer.nbytes // self._iodepth,
                files=values,
                nfiles=len(values),
            )
            queue = c.c_uint64()
            self._checked("open", self._functions.open, self.table.ctx, c.pointer(options), c.pointer(queue))
            self._queue = queue.value
        return self._queue

    def _checked(self, operation: str, function: Any, *arguments: Any) -> int:
        c.set_errno(0)
        result: int = function(*arguments)
        raise_verdict(operation, self._library.gdsfw_decode(result, c.get_errno(), self.table.file_code_base))
        return result
