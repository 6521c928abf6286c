"""The C engine, for the rest of gdsfw and for backends: tables, loops, and any table as Python calls."""

from __future__ import annotations

import ctypes as c
from typing import TYPE_CHECKING, Any

from gdsfw.engine import native_abi as abi
from gdsfw.engine.native_abi import HOST_VISIBLE, IO_FN, FdFile, NativeQueue, NativeTable
from gdsfw.engine.native_library import (
    Engine,
    address_of,
    available,
    check_table,
    engine,
    load,
    mismatch_of,
    noop_table,
    pattern_fill,
    pattern_struct,
    pattern_verify,
    psync_table,
    raise_verdict,
)
from gdsfw.engine.native_loop import NativeLoop

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gdsfw.backend import Buffer, CopyDirection, FileHandle, Pattern, PatternMismatch


class TableIO:
    """A native table as the calls of gdsfw.backend.PythonIO. Failures are OSError (errno) or BackendError.

    Args:
        table: the backend's table.
        file_values: what the table calls each file, by id() of its FileHandle.
        buffer: the worker's buffer.
    """

    def __init__(self, table: NativeTable, file_values: Mapping[int, int], buffer: Buffer) -> None:
        check_table(table, "as_python")
        self.table = table
        self.buffer = buffer
        self._values = file_values
        self._library = engine().library

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

    def verify(self, size: int, file_offset: int, buffer_offset: int, pattern: Pattern) -> PatternMismatch | None:
        """Compare the buffer with the pattern of a file range; None when all bytes match."""
        wanted, found = c.byref(pattern_struct(pattern)), abi.MismatchStruct()
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
        wanted = abi.RequestStruct(
            opcode=opcode,
            file=self._value(file),
            buffer_base=self.buffer.address,
            size=size,
            file_offset=file_offset,
            buffer_offset=buffer_offset,
        )
        return self._call(name, "gdsfw_call_move", c.byref(wanted))

    def _call(self, operation: str, function: str, *arguments: Any) -> int:
        verdict = abi.Verdict()
        moved: int = getattr(self._library, function)(c.byref(self.table), *arguments, c.byref(verdict))
        raise_verdict(operation, verdict)
        return moved


__all__ = [
    "IO_FN",
    "Engine",
    "FdFile",
    "NativeLoop",
    "NativeQueue",
    "NativeTable",
    "TableIO",
    "available",
    "check_table",
    "engine",
    "load",
    "noop_table",
    "pattern_fill",
    "pattern_verify",
    "psync_table",
]
