"""The stand-ins through ctypes, by names that both vendors share. For tests of the stand-ins themselves."""

from __future__ import annotations

import ctypes as c
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from fakes.build import LIBRARIES
from fakes.standins import Standin
from fakes.symbols import FILE

READ, WRITE = 0, 1
PENDING, INVALID, CANCELED, COMPLETE, FAILED = 2, 4, 8, 16, 64


class Status(c.Structure):
    """What file library functions return by value: their own code, and the runtime's."""

    _fields_: ClassVar = [("code", c.c_int), ("gpu", c.c_int)]

    @property
    def pair(self) -> tuple[int, int]:
        return self.code, self.gpu


class Description(c.Structure):
    """CUfileDescr_t, hipFileDescr_t."""

    _fields_: ClassVar = [("type", c.c_int), ("fd", c.c_int64), ("operations", c.c_void_p)]


class Entry(c.Structure):
    """CUfileIOParams_t, hipFileIOParams_t."""

    _fields_: ClassVar = [
        ("mode", c.c_int),
        ("base", c.c_uint64),
        ("file_offset", c.c_int64),
        ("buffer_offset", c.c_int64),
        ("size", c.c_size_t),
        ("handle", c.c_uint64),
        ("opcode", c.c_int),
        ("cookie", c.c_void_p),
    ]


class Event(c.Structure):
    """CUfileIOEvents_t, hipFileIOEvents_t. `ret` is unsigned there and carries negated errors all the same."""

    _fields_: ClassVar = [("cookie", c.c_void_p), ("status", c.c_int), ("ret", c.c_ssize_t)]


class Timeout(c.Structure):
    """struct timespec."""

    _fields_: ClassVar = [("seconds", c.c_long), ("nanoseconds", c.c_long)]


class StreamCall:
    """Arguments of a stream-ordered transfer: they have to live until the stream is past it."""

    def __init__(self, size: int, file_offset: int = 0, buffer_offset: int = 0) -> None:
        self.size = c.c_size_t(size)
        self.file_offset = c.c_int64(file_offset)
        self.buffer_offset = c.c_int64(buffer_offset)
        self.moved = c.c_ssize_t(-77)


class ReadCounters(c.Structure):
    """The part about reads of CUfilePerGpuStats_t, hipFilePerGpuStats_t."""

    _fields_: ClassVar = [
        ("uuid", c.c_char * 16),
        ("bytes", c.c_uint64),
        ("rate", c.c_uint64 * 3),
        ("total", c.c_uint64),
        ("p2p", c.c_uint64),
        ("nvfs", c.c_uint64),
        ("posix", c.c_uint64),
        ("unaligned", c.c_uint64),
        ("others", c.c_uint64 * 3),
        ("errors", c.c_uint64),
    ]


#: Where the counters of the first device begin in the third level's statistics, and bytes of the whole.
PER_GPU = {"cuda": 1144, "hip": 1032}
LEVEL_3_BYTES = 16384

HOST_FUNCTION = c.CFUNCTYPE(None, c.c_void_p)


class Api:
    """Both libraries of a stand-in.

    Args:
        standin: which; its environment variable must be set before the first call.
    """

    def __init__(self, standin: Standin) -> None:
        self.standin = standin
        self.hip = standin.vendor == "hip"
        self._keep: list[Any] = []

    @cached_property
    def runtime(self) -> c.CDLL:
        """libcuda or libamdhip64, opened when first used."""
        return self._open("runtime")

    @cached_property
    def file(self) -> c.CDLL:
        """libcufile or libhipfile; they look for the runtime's library themselves."""
        _ = self.runtime
        return self._open("file")

    def _open(self, part: str) -> c.CDLL:
        return c.CDLL(str(self.standin.root / LIBRARIES[self.standin.vendor][part].path), use_errno=True)

    def function(self, name: str) -> Any:
        """A function by the name that both vendors share, or by its own."""
        library = self.file if self.standin.symbol(name).startswith(("cuFile", "hipFile")) else self.runtime
        found = getattr(library, self.standin.symbol(name))
        if name in FILE and name != "use_count" and found.restype is c.c_int:
            found.restype = Status
        return found

    def status(self, name: str, *arguments: Any) -> int:
        """Call a function of the runtime."""
        return int(self.function(name)(*map(_wide, arguments)))

    def file_status(self, name: str, *arguments: Any) -> tuple[int, int]:
        """Call a function of the file library that returns both codes."""
        pair: tuple[int, int] = self.function(name)(*map(_wide, arguments)).pair
        return pair

    def ok(self, name: str, *arguments: Any) -> None:
        """Call a function of either library, which must succeed."""
        answer = self.file_status(name, *arguments) if name in FILE else self.status(name, *arguments)
        assert answer in (0, (0, 0)), f"{name}: {answer}"

    def control(self, *rules: str, **settings: object) -> None:
        """Change how it behaves from now on."""
        text = self.standin.control(*rules, **settings)
        assert self.function("control")(text.encode()) == 0, text

    def calls(self, name: str) -> int:
        """How often a function was called, or a kind of work done."""
        function = self.function("calls")
        function.restype = c.c_ulong
        return int(function(self.standin.symbol(name).encode()))

    def misuse(self) -> str:
        """The last thing done that is undefined on real hardware, or nothing."""
        text = c.c_char_p()
        return (text.value or b"").decode() if self.function("misuse")(c.byref(text)) else ""

    # ---- the runtime ----

    def enter(self, device: int = 0) -> None:
        """Use a device in this thread."""
        self.ok("init", 0)
        if self.hip:
            self.ok("hipSetDevice", device)
            return
        context = c.c_void_p()
        self.ok("primary_retain", c.byref(context), device)
        self.ok("context_set", context)

    def alloc(self, nbytes: int) -> int:
        """Device memory."""
        address = c.c_uint64()
        self.ok("alloc", c.byref(address), nbytes)
        return address.value

    def host_alloc(self, nbytes: int) -> int:
        """Pinned memory."""
        address = c.c_uint64()
        self.ok("host_alloc", c.byref(address), nbytes, 0)
        return address.value

    def stream(self, flags: int = 1) -> int:
        """A stream, non-blocking unless told otherwise."""
        handle = c.c_void_p()
        self.ok("stream_create", c.byref(handle), flags)
        return handle.value or 0

    def event(self, flags: int = 0) -> int:
        """An event."""
        handle = c.c_void_p()
        self.ok("event_create", c.byref(handle), flags)
        return handle.value or 0

    def peek(self, address: int, nbytes: int) -> bytes:
        """Device memory's content, past the API."""
        content = (c.c_char * nbytes)()
        assert self.function("peek")(c.c_uint64(address), content, c.c_size_t(nbytes)) == 0
        return bytes(content.raw)

    def put(self, address: int, content: bytes) -> None:
        """Copy into device memory."""
        self.ok("to_device", address, content, len(content))

    # ---- the file library ----

    def read_counters(self) -> ReadCounters:
        """The file library's own count of reads into the first device's memory."""
        whole = (c.c_char * LEVEL_3_BYTES)()
        self.ok("statistics3", whole)
        return ReadCounters.from_buffer_copy(whole, PER_GPU[self.standin.vendor])

    def register(self, fd: int) -> int:
        """A registered file's handle."""
        handle = c.c_uint64()
        self.ok("handle_register", c.byref(handle), c.byref(Description(1, fd, None)))
        return handle.value

    def transfer(
        self, opcode: int, handle: int, base: int, size: int, file_offset: int = 0, buffer_offset: int = 0
    ) -> tuple[int, int]:
        """A synchronous read or write: what it returned, and errno."""
        function = self.function("write" if opcode else "read")
        function.restype = c.c_ssize_t
        c.set_errno(0)
        moved = function(
            c.c_uint64(handle), c.c_uint64(base), c.c_size_t(size), c.c_int64(file_offset), c.c_int64(buffer_offset)
        )
        return int(moved), c.get_errno()

    def read(self, *arguments: int) -> int:
        """A synchronous read's result."""
        return self.transfer(READ, *arguments)[0]

    def write(self, *arguments: int) -> int:
        """A synchronous write's result."""
        return self.transfer(WRITE, *arguments)[0]

    def later(self, opcode: int, handle: int, base: int, call: StreamCall, stream: int) -> tuple[int, int]:
        """A read or write that a stream does."""
        return self.file_status(
            "write_async" if opcode else "read_async",
            handle,
            base,
            c.byref(call.size),
            c.byref(call.file_offset),
            c.byref(call.buffer_offset),
            c.byref(call.moved),
            stream,
        )

    def batch(self, capacity: int) -> int:
        """A batch's handle."""
        handle = c.c_void_p()
        self.ok("batch_setup", c.byref(handle), capacity)
        return handle.value or 0

    def submit(self, batch: int, entries: Sequence[Entry]) -> tuple[int, int]:
        """Submit entries; they are kept alive."""
        array = (Entry * len(entries))(*entries)
        self._keep.append(array)
        return self.file_status("batch_submit", batch, len(entries), array, 0)

    def reap(self, batch: int, least: int, most: int = 128, seconds: float | None = 5) -> list[tuple[int, int, int]]:
        """(cookie, status, ret) of what has ended."""
        events = (Event * most)()
        n = c.c_uint(most)
        timeout = Timeout(int(seconds), int(seconds % 1 * 1e9)) if seconds is not None else None
        self.ok("batch_status", batch, least, c.byref(n), events, c.byref(timeout) if timeout else None)
        return [(event.cookie or 0, event.status, event.ret) for event in events[: n.value]]


class Gate:
    """Work that a stream cannot get past until the test lets it."""

    def __init__(self, api: Api, stream: int) -> None:
        self._open = threading.Event()
        self._function = HOST_FUNCTION(lambda _: self._open.wait(30) and None)
        api.ok("host_function", stream, self._function, None)

    def open(self) -> None:
        self._open.set()


def entry(handle: int, base: int, size: int, cookie: int, file_offset: int = 0, opcode: int = READ) -> Entry:
    """An entry of a batch; the block lands as far into the buffer as it is into the file."""
    return Entry(1, base, file_offset, file_offset, size, handle, opcode, cookie)


@contextmanager
def open_file(path: Path, flags: int = os.O_RDWR | os.O_CREAT) -> Iterator[int]:
    """A descriptor."""
    fd = os.open(path, flags, 0o644)
    try:
        yield fd
    finally:
        os.close(fd)


def _wide(argument: Any) -> Any:
    return c.c_uint64(argument & (2**64 - 1)) if type(argument) is int else argument
