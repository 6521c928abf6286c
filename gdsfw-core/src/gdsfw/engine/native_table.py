"""A backend's native path as ctypes sees it: the structs and function types of native/include/gdsfw_backend.h.

Handles, buffer addresses and file values are c_uint64: c_void_p turns 0 into None and changes sign above 2**63.
"""

from __future__ import annotations

import ctypes as c
from typing import ClassVar, Final

#: GDSFW_ABI of gdsfw_backend.h, what a table states.
TABLE_ABI: Final = 1

HOST_VISIBLE: Final = 1
CAN_READ: Final = 2
CAN_WRITE: Final = 4

# use_errno: a callback written in Python sets the errno that the engine reads with ctypes.set_errno.
IO_FN = c.CFUNCTYPE(c.c_int64, c.c_uint64, c.c_uint64, c.c_uint64, c.c_int64, c.c_int64, use_errno=True)
FLUSH_FN = c.CFUNCTYPE(c.c_int64, c.c_uint64, c.c_uint64, c.c_int32, use_errno=True)
COPY_FN = c.CFUNCTYPE(c.c_int64, c.c_uint64, c.c_uint64, c.c_int64, c.c_uint64, c.c_uint64, c.c_int32, use_errno=True)
REGISTER_FN = c.CFUNCTYPE(c.c_int64, c.c_uint64, c.c_uint64, c.c_uint64, use_errno=True)
DEREGISTER_FN = c.CFUNCTYPE(c.c_int64, c.c_uint64, c.c_uint64, use_errno=True)


class Versioned(c.Structure):
    """A struct that begins with the interface version and its own size; fills both in."""

    ABI: ClassVar[int] = TABLE_ABI

    def __init__(self, **values: object) -> None:
        super().__init__(**values)
        self.abi = self.ABI
        self.struct_size = c.sizeof(self)


VERSION_FIELDS = [("abi", c.c_uint32), ("struct_size", c.c_uint32)]


class PatternStruct(Versioned):
    """struct gdsfw_pattern."""

    _fields_: ClassVar = [
        *VERSION_FIELDS,
        ("seed", c.c_uint64),
        ("file_id", c.c_uint64),
        ("generation", c.c_uint64),
    ]


class BlockDataStruct(Versioned):
    """struct gdsfw_block_data."""

    _fields_: ClassVar = [
        *VERSION_FIELDS,
        ("seed", c.c_uint64),
        ("file_id", c.c_uint64),
        ("nonce", c.c_uint64),
        ("piece", c.c_uint64),
        ("random", c.c_uint64),
        ("stamped", c.c_uint32),
        ("reserved", c.c_uint32),
    ]


class MismatchStruct(Versioned):
    """struct gdsfw_mismatch."""

    _fields_: ClassVar = [
        *VERSION_FIELDS,
        ("bad_bytes", c.c_uint64),
        ("file_offset", c.c_int64),
        ("expected", c.c_uint8 * 16),
        ("found", c.c_uint8 * 16),
        ("length", c.c_uint32),
        ("reserved", c.c_uint32),
    ]


FILL_FN = c.CFUNCTYPE(
    c.c_int64,
    c.c_uint64,
    c.c_uint64,
    c.c_int64,
    c.c_uint64,
    c.c_int64,
    c.POINTER(PatternStruct),
    use_errno=True,
)
VERIFY_FN = c.CFUNCTYPE(
    c.c_int64,
    c.c_uint64,
    c.c_uint64,
    c.c_int64,
    c.c_uint64,
    c.c_int64,
    c.POINTER(PatternStruct),
    c.POINTER(MismatchStruct),
    use_errno=True,
)
MAKE_DATA_FN = c.CFUNCTYPE(
    c.c_int64, c.c_uint64, c.c_uint64, c.c_int64, c.c_uint64, c.POINTER(BlockDataStruct), use_errno=True
)


class RequestStruct(c.Structure):
    """struct gdsfw_request."""

    _fields_: ClassVar = [
        ("opcode", c.c_uint32),
        ("reserved", c.c_uint32),
        ("file", c.c_uint64),
        ("buffer_base", c.c_uint64),
        ("size", c.c_uint64),
        ("file_offset", c.c_int64),
        ("buffer_offset", c.c_int64),
        ("cookie", c.c_uint64),
    ]


class CompletionStruct(c.Structure):
    """struct gdsfw_completion."""

    _fields_: ClassVar = [
        ("cookie", c.c_uint64),
        ("count", c.c_uint32),
        ("domain", c.c_uint32),
        ("result", c.c_int64),
        ("code", c.c_int64),
        ("storage_ns", c.c_uint64),
        ("copy_ns", c.c_uint64),
    ]


class QueueOptions(Versioned):
    """struct gdsfw_queue_options."""

    _fields_: ClassVar = [
        *VERSION_FIELDS,
        ("iodepth", c.c_uint32),
        ("iodepth_batch", c.c_uint32),
        ("buffer_base", c.c_uint64),
        ("buffer_size", c.c_uint64),
        ("max_block", c.c_uint64),
        ("files", c.POINTER(c.c_uint64)),
        ("nfiles", c.c_uint32),
        ("reserved", c.c_uint32),
    ]


class ListResult(c.Structure):
    """struct gdsfw_list_result."""

    _fields_: ClassVar = [
        ("bytes", c.c_uint64),
        ("index", c.c_uint64),
        ("domain", c.c_uint32),
        ("reserved", c.c_uint32),
        ("code", c.c_int64),
    ]


OPEN_FN = c.CFUNCTYPE(c.c_int64, c.c_uint64, c.POINTER(QueueOptions), c.POINTER(c.c_uint64), use_errno=True)
SUBMIT_FN = c.CFUNCTYPE(c.c_int64, c.c_uint64, c.POINTER(RequestStruct), c.c_uint32, use_errno=True)
REAP_FN = c.CFUNCTYPE(
    c.c_int64, c.c_uint64, c.POINTER(CompletionStruct), c.c_uint32, c.c_uint32, c.c_int64, use_errno=True
)
CANCEL_FN = c.CFUNCTYPE(c.c_int64, c.c_uint64, use_errno=True)
CLOSE_FN = c.CFUNCTYPE(None, c.c_uint64)


class NativeQueue(Versioned):
    """struct gdsfw_queue."""

    _fields_: ClassVar = [
        *VERSION_FIELDS,
        ("open", OPEN_FN),
        ("submit", SUBMIT_FN),
        ("reap", REAP_FN),
        ("cancel", CANCEL_FN),
        ("close", CLOSE_FN),
    ]


class NativeTable(Versioned):
    """struct gdsfw_io: the functions of a backend's native path. Unset members are NULL (false).

    A function of a library goes in by its address: `NativeTable(read=IO_FN(address), ...)`. The caller keeps the
    library, and what `ctx` points to, alive (IOPath's `keep`).
    """

    _fields_: ClassVar = [
        *VERSION_FIELDS,
        ("flags", c.c_uint32),
        ("file_code_base", c.c_uint32),
        ("max_transfer", c.c_uint64),
        ("ctx", c.c_uint64),
        ("read", IO_FN),
        ("write", IO_FN),
        ("flush", FLUSH_FN),
        ("copy", COPY_FN),
        ("fill", FILL_FN),
        ("verify", VERIFY_FN),
        ("register_buffer", REGISTER_FN),
        ("deregister_buffer", DEREGISTER_FN),
        ("queue", c.POINTER(NativeQueue)),
        ("make_data", MAKE_DATA_FN),
    ]


class FdFile(c.Structure):
    """struct gdsfw_fd_file: a file of psync and io_uring, whose file value is `ctypes.addressof` of it.

    tail_fd: buffered descriptor for blocks whose offset or size is no multiple of `alignment` (bytes, a power of
    two); -1 for none.
    """

    _fields_: ClassVar = [
        ("fd", c.c_int32),
        ("tail_fd", c.c_int32),
        ("alignment", c.c_uint32),
        ("reserved", c.c_uint32),
    ]


class UringOptions(Versioned):
    """struct gdsfw_uring_options: what a table of io_uring has as ctx.

    fixed_buffers, fixed_files: register the worker's buffer and files with the kernel. sqpoll: a kernel thread looks
    for submissions, and sleeps after sqpoll_idle_ms without any (0: the kernel's default). iopoll: poll the device.
    """

    _fields_: ClassVar = [
        *VERSION_FIELDS,
        ("fixed_buffers", c.c_uint32),
        ("fixed_files", c.c_uint32),
        ("sqpoll", c.c_uint32),
        ("sqpoll_idle_ms", c.c_uint32),
        ("iopoll", c.c_uint32),
        ("reserved", c.c_uint32),
    ]


class UringReport(Versioned):
    """struct gdsfw_uring_report."""

    _fields_: ClassVar = [
        *VERSION_FIELDS,
        ("step", c.c_uint32),
        ("error", c.c_int32),
        ("setup_flags", c.c_uint32),
        ("features", c.c_uint32),
    ]
