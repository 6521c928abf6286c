"""Files whose own pages are registered with the device: one map for all workers that use the same range."""

from __future__ import annotations

import ctypes as c
import errno
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gdsfw.engine.native_library import engine
from gdsfw.errors import Domain, UnavailableError
from gdsfw.gpu import abi
from gdsfw.storage import filesystems

if TYPE_CHECKING:
    from gdsfw.backend import ErrorInfo, FileHandle
    from gdsfw.gpu.vendor import Runtime

PAGE = os.sysconf("SC_PAGE_SIZE")
#: Bytes registered at once when a range is too large to be registered whole.
WINDOW = 64 << 20
#: From this step of struct gdsfw_gpu_map_report on the code is the runtime's, before it errno.
REGISTER_STEP = 3
_STEPS = {1: "mmap", 2: "populate", 3: "host_register", 4: "host_pointer"}


@dataclass(frozen=True)
class Limits:
    """How much may be registered.

    Args:
        share: of the memory there is, at most so much is pinned by one file.
        window: bytes registered at once; None: the whole range where `share` allows, else 64 MiB.
    """

    share: float
    window: int | None
    page: int = PAGE

    def in_pages(self, page: int) -> Limits:
        """The same for a file whose mapping must be of pages of that size."""
        return replace(self, page=page)


@dataclass
class FileMap:
    """A registered range of a file. `address` is what the mapped queue takes as file."""

    key: tuple[Any, ...]
    address: int
    runtime: abi.Runtime  # the map calls through it
    users: int = 0

    def report(self) -> abi.MapReport:
        """What was registered so far."""
        report = abi.MapReport()
        engine().library.gdsfw_gpu_map_look(c.c_uint64(self.address), c.byref(report))
        return report

    def device_address(self, offset: int) -> int:
        """The device's address of the byte at file `offset`, where the whole range is one window."""
        function = engine().library.gdsfw_gpu_map_address
        function.restype = c.c_uint64
        return int(function(c.c_uint64(self.address), c.c_uint64(offset)))


@dataclass
class Maps:
    """The maps of a session. Calls need a current device context, and may come from any worker.

    Args:
        explain: meaning of the runtime's codes, for refusals.
    """

    explain: Callable[[Domain, int], ErrorInfo | None]
    _open: dict[tuple[Any, ...], FileMap] = field(default_factory=dict)
    _closed: list[abi.MapReport] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def acquire(
        self, runtime: Runtime, file: FileHandle, span: tuple[int, int], writable: bool, limits: Limits, workers: int
    ) -> FileMap:
        """A map of `span` (start, length) of a file, shared with whoever has it already.

        Raises:
            UnavailableError: the device or the kernel refuses, and what to use instead.
        """
        status = os.fstat(file.fd)
        page = filesystems.granule(file.fd)
        start = span[0] // page * page
        length = span[0] + span[1] - start
        if page != PAGE:
            length = _in_huge_pages(file, start, length, page, writable)
        key = (status.st_dev, status.st_ino, start, length, writable)
        with self._lock:  # registering in several threads at once is slower than one after the other
            found = self._open.get(key)
            if found is None:
                if writable and status.st_size < start + length:
                    os.ftruncate(file.fd, start + length)  # a page behind the end cannot be written
                found = self._open[key] = self._map(runtime, file, key, limits.in_pages(page), workers)
            found.users += 1
            return found

    def release(self, found: FileMap) -> None:
        """Undo acquire; the last user unregisters. Its device has nothing of the map in flight."""
        with self._lock:
            found.users -= 1
            if found.users == 0:
                del self._open[found.key]
                self._closed.append(found.report())
                engine().library.gdsfw_gpu_map_close(c.c_uint64(found.address))

    def reports(self) -> list[abi.MapReport]:
        """What was registered for each map there is or was."""
        with self._lock:
            return [*self._closed, *(item.report() for item in self._open.values())]

    def seconds(self) -> float:
        """What all that took."""
        return float(sum(report.register_ns + report.populate_ns for report in self.reports())) / 1e9

    def _map(self, runtime: Runtime, file: FileHandle, key: tuple[Any, ...], limits: Limits, workers: int) -> FileMap:
        start, length, writable = key[2:]
        window, resident = window_bytes(length, limits, workers)
        table = abi.Runtime(**abi.members(abi.Runtime, runtime.symbols()), not_ready=runtime.not_ready)
        options = abi.MapOptions(
            fd=file.fd, writable=int(writable), start=start, length=length, window=window, resident=resident
        )
        report, handle = abi.MapReport(), c.c_uint64()
        call = engine().library.gdsfw_gpu_map_open
        call.restype = c.c_int64
        if call(c.byref(table), c.byref(options), c.byref(handle), c.byref(report)):
            raise _refused(file, writable, length, self._reason(report))
        return FileMap(key, handle.value, table)

    def _reason(self, report: abi.MapReport) -> str:
        operation = _STEPS.get(report.step, "map")
        if report.step < REGISTER_STEP:
            return f"{operation}: {errno.errorcode.get(report.code, '')} ({os.strerror(report.code)})"
        info = self.explain(Domain.GPU, report.code)
        return f"{operation}: {info.name} ({info.text})" if info else f"{operation}: error {report.code}"


def pinnable(share: float) -> int:
    """Bytes that `share` of min(available memory, the control group's limit) is."""
    available = _number("/proc/meminfo", "MemAvailable:") * 1024
    limit = _number("/sys/fs/cgroup/memory.max")
    return int(share * (min(available, limit) if limit else available))


def _number(path: str, label: str = "") -> int:
    """The number behind a label of a file, 0 where there is none (`max` among them)."""
    try:
        words = Path(path).read_text(encoding="ascii").split()
        return int(words[words.index(label) + 1 if label else 0])
    except (OSError, ValueError, IndexError):
        return 0


def window_bytes(length: int, limits: Limits, workers: int) -> tuple[int, int]:
    """Bytes of one window, and windows registered at a time, for a range of `length` bytes.

    Every worker can have two windows in use, whatever the limits say: a block may lie across their border.
    """
    allowed = pinnable(limits.share)
    if limits.window is None and length <= allowed:
        return length, 1
    window = -(-(limits.window or WINDOW) // limits.page) * limits.page
    return window, max(allowed // window, 2 * workers)


def _in_huge_pages(file: FileHandle, start: int, length: int, page: int, writable: bool) -> int:
    """The length in whole huge pages: what hugetlbfs can map, and the only length that a file there can have."""
    whole = -(-length // page) * page
    if writable and whole != length:
        raise UnavailableError(
            f"io_path mapped: {file.target.name}: {length} bytes are no whole number of huge pages of {page} bytes",
            hint=f"make size a multiple of {page // 1024} KiB on hugetlbfs",
        )
    return whole


def _refused(file: FileHandle, writable: bool, length: int, why: str) -> UnavailableError:
    kind = filesystems.kind(file.fd)
    refusal = f"io_path mapped: {file.target.name}: {length} bytes cannot be registered with the device: {why}"
    if writable and kind not in filesystems.RAM_BACKED:
        hint = f"pages of {kind} cannot be pinned for writing (tmpfs can): use io_path staged for writes"
    else:
        hint = "lower `map_share` or set `window_bytes` (backend_options) to pin less, or use io_path staged"
    return UnavailableError(refusal, hint=hint)
