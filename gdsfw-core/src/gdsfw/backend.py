"""The types that hooks pass between core and a backend. A backend imports these and `hookimpl`, no more."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, runtime_checkable

from gdsfw.errors import Domain

if TYPE_CHECKING:
    from pydantic import BaseModel

    from gdsfw.engine.native import NativeTable
    from gdsfw.workload.model import Job

#: Version of the hook interface: it counts incompatible changes (docs/explanation/compatibility.md).
HOOK_VERSION = 1

Direction = Literal["read", "write"]
CopyDirection = Literal["to_host", "from_host"]
SyncMode = Literal["device", "fsync", "fdatasync"]


@dataclass(frozen=True)
class IOPathInfo:
    """One way a backend can move bytes, named in a workload's `io_path`.

    Args:
        native: whether the C engine can drive it without the interpreter.
        max_iodepth: requests it can have in flight for one worker; 1 for a synchronous path, 0 for no limit.
        reads, writes: which directions it has.
        page_cache: it works on the file's pages in memory: `direct: auto` means false, `direct: true` is refused.
        summary: one line for `gdsfw backends`.
        locks_buffers: registered buffers count against the user's limit on locked memory; the plan looks at it.
    """

    name: str
    native: bool
    max_iodepth: int = 1
    reads: bool = True
    writes: bool = True
    summary: str = ""
    page_cache: bool = False
    locks_buffers: bool = False


@dataclass(frozen=True)
class BackendInfo:
    """What a backend says of itself; no library is opened to say it.

    Args:
        name: equals the entry point's name.
        version: the distribution's version.
        hook_version: of the hook interface it was written for, as a number: HOOK_VERSION would always fit.
        memory: kinds of buffer that gdsfw_alloc gives, the default first: host, hugepage, pinned, device.
        io_paths: the default first.
        options: pydantic model of `backend_options: {<name>: ...}`; None when there are none.
        capabilities: words that the conformance kit and the plan ask for, see docs/reference/capabilities.md.
        namespace: `files` when targets are paths of this machine (core stats, lays out and guards them), `own`
            when the backend has names of its own and `gdsfw_open_file` opens them.
    """

    name: str
    title: str
    version: str
    io_paths: tuple[IOPathInfo, ...]
    hook_version: int = 1
    memory: tuple[str, ...] = ("host",)
    options: type[BaseModel] | None = None
    capabilities: frozenset[str] = frozenset()
    namespace: Literal["files", "own"] = "files"

    def io_path(self, name: str) -> IOPathInfo | None:
        """The path called `name` (`auto` is the first), or None."""
        if name == "auto":
            return self.io_paths[0]
        return next((path for path in self.io_paths if path.name == name), None)


@dataclass(frozen=True)
class Device:
    """One GPU or other device that workers can be put on."""

    ordinal: int
    name: str
    nbytes: int
    pci_address: str | None = None
    numa_node: int | None = None
    uuid: str | None = None


#: What a probe can say of one thing.
State = Literal["ok", "warn", "fail", "unknown"]


@dataclass(frozen=True)
class Check:
    """One finding of a probe. `unknown` is for what could not be looked at (needs root): never a quiet "fail".

    Args:
        seen, needed: the value found and the one that direct I/O or the backend wants.
        meaning: what it means, in a sentence.
        verify, fix: commands for a shell, or the step to take.
        blocks_direct: a `fail` that keeps I/O from being direct; without it a `fail` makes the backend unusable.
        id: name that the documentation lists the check by; made from `name` when empty.
        rank: place among several blockers; the lowest is to be mended first.
    """

    name: str
    state: State
    seen: str
    needed: str = ""
    meaning: str = ""
    verify: str = ""
    fix: str = ""
    blocks_direct: bool = False
    id: str = ""
    rank: int = 50


@dataclass(frozen=True)
class ErrorInfo:
    """Meaning of an error code: symbolic name, text, likely cause and the next step."""

    name: str
    text: str
    cause: str = ""
    fix: str = ""


@dataclass(frozen=True)
class Alignment:
    """What direct I/O on a file needs, in bytes, and who said so (statx, the block device, the page size)."""

    offset: int = 1
    memory: int = 1
    source: str = "none"


@dataclass(frozen=True)
class Target:
    """A file as the plan names it, before it is opened.

    Args:
        name: path, or the backend's own name.
        file_id: number that the verification pattern is made from; stable for one file across jobs.
        nbytes: size that the job works with; 0 when decided at start.
        direct: bypass the page cache: `true` insists, `auto` tries and records why not.
        allow_overwrite: the job says that the user's own data at this name may be overwritten.
        create: the file may be created (a write job, or layout).
        sync: O_SYNC (`sync`) or O_DSYNC (`dsync`) for every write.
        job: name of the job, for messages and records.
        allow_destroy: block devices that the user named on the command line as ones to be overwritten.
    """

    name: str
    file_id: int
    nbytes: int
    direct: Literal["auto", "true", "false"] = "auto"
    allow_overwrite: bool = False
    create: bool = False
    sync: Literal["none", "dsync", "sync"] = "none"
    job: str = ""
    allow_destroy: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        """`name` as a path; meaningful for namespace `files`."""
        return Path(self.name)


@dataclass
class FileHandle:
    """An open file. For namespace `files` core fills in the descriptors; `state` belongs to the backend.

    Args:
        fd: descriptor for the job's I/O (O_DIRECT when `direct`), -1 for a backend with names of its own.
        tail_fd: buffered descriptor of the same file for blocks that `alignment` does not allow, or -1.
        direct: whether `fd` bypasses the page cache, decided by a test transfer.
        direct_reason: why, in a sentence.
        claimed: number of the block device that is held for this process alone while the file is open.
    """

    target: Target
    fd: int = -1
    tail_fd: int = -1
    direct: bool = False
    direct_reason: str = ""
    writable: bool = False
    alignment: Alignment = field(default_factory=Alignment)
    state: Any = None
    claimed: int | None = None


@dataclass
class Buffer:
    """One worker's memory: `iodepth` slots, slot i at buffer_offset + i * stride.

    Args:
        address: where it starts, as an unsigned 64-bit number in the address space of `memory`.
        nbytes: its size.
        memory: host, hugepage, pinned or device.
        host_view: writable view of it when the host can touch it, else None.
        state: whatever the backend needs to free it.
    """

    address: int
    nbytes: int
    memory: str = "host"
    host_view: memoryview | None = None
    state: Any = None


@dataclass(frozen=True)
class Mapped:
    """A file's pages as memory of a device.

    Args:
        address: of the file's first byte, as the device sees it.
        device: ordinal.
        dlpack_type: DLPack's number of the device's type (DLDeviceType).
        state: whatever the backend needs to undo it.
    """

    address: int
    nbytes: int
    device: int
    dlpack_type: int
    writable: bool = False
    state: Any = None


@dataclass(frozen=True)
class Request:
    """What the data plane will be asked for; all sizes in bytes.

    Args:
        rw: `read`, `write` or `readwrite`: directions that will be issued.
        ranges: (start, length) for each file that this worker touches.
    """

    io_path: str
    rw: Literal["read", "write", "readwrite"]
    max_block_size: int
    block_align: int
    ranges: Sequence[tuple[int, int]]
    iodepth: int = 1
    iodepth_batch: int = 1
    direct: Literal["auto", "true", "false"] = "auto"
    register_buffers: Literal["once", "per_io", "none"] = "once"


@dataclass
class Worker:
    """One thread of one job.

    Args:
        index: number of the worker in its job, from 0.
        device: device ordinal, or None.
        cpus: CPUs it is pinned to; empty for no pinning.
        options: instance of BackendInfo.options, or None.
        session: what gdsfw_open returned.
        state: what gdsfw_worker_start returned.
    """

    job: Job
    index: int
    options: Any = None
    session: Any = None
    device: int | None = None
    cpus: tuple[int, ...] = ()
    state: Any = None


@dataclass(frozen=True)
class Pattern:
    """What the bytes of a file are when verified: a pure function of these and the offset (gdsfw_backend.h).

    Args:
        generation: how often the block was written before; 0 unless the job asks for generations.
    """

    seed: int
    file_id: int
    generation: int = 0


@dataclass(frozen=True)
class PatternMismatch:
    """How a range differs from its pattern.

    Args:
        file_offset: of the first byte that differs.
        expected, found: up to 16 bytes from there on, as far as the range goes.
        bad_bytes: bytes that differ in the whole range.
    """

    file_offset: int
    expected: bytes
    found: bytes
    bad_bytes: int


class QueueRequest(NamedTuple):
    """One I/O for a queue. `cookie` comes back in the completion; consecutive requests have consecutive cookies."""

    direction: Direction
    file: FileHandle
    size: int
    file_offset: int
    buffer_offset: int
    cookie: int


@dataclass(slots=True)
class Completion:
    """What became of a request: `result` bytes moved when `domain` is NONE, else a positive error `code`.

    With count > 1 the requests cookie .. cookie + count - 1 are done at once, each in full. storage_ns, copy_ns:
    time spent at the storage and copying, where the path tells them apart.
    """

    cookie: int
    result: int = 0
    domain: Domain = Domain.NONE
    code: int = 0
    count: int = 1
    storage_ns: int = 0
    copy_ns: int = 0


@runtime_checkable
class PythonIO(Protocol):
    """The data plane in Python. Offsets and sizes in bytes; a short count is allowed, 0 means end of file.

    Optional methods, looked for once; buffer_offset counts from the start of the worker's buffer:

    - `flush(file, data_only)`: fsync, or fdatasync. Needed for the fsync keys.
    - `submit(requests) -> int` and `reap(at_least, timeout_ns) -> Sequence[Completion]`: a queue. `submit` takes the
      first k QueueRequests and returns k, 0 when full; `reap` waits until so many completions are there or the
      timeout has passed. With both present the loop uses the queue. `cancel()`, if there, asks for what is in flight
      to end early; its completions (ECANCELED) still come through `reap`.
    - `fill(size, file_offset, buffer_offset, pattern)` and
      `verify(size, file_offset, buffer_offset, pattern) -> PatternMismatch | None`: needed to verify in memory that the
      host cannot touch (Buffer.host_view is None).
    - `copy(buffer_offset, host_view, direction)`: how data gets into such memory before a write.
    - `register_buffer(buffer_offset, size)` and `deregister_buffer(buffer_offset)`: for `register_buffers: per_io`.
    - `max_transfer`, an attribute: most bytes of one call; the loop splits larger blocks.

    Failures are OSError (errno) or BackendError (any domain).
    """

    def read(self, file: FileHandle, size: int, file_offset: int, buffer_offset: int) -> int:
        """Move `size` bytes from the file into the worker's buffer and return the count moved."""
        ...

    def write(self, file: FileHandle, size: int, file_offset: int, buffer_offset: int) -> int:
        """Move `size` bytes from the worker's buffer into the file and return the count moved."""
        ...


class IOPath:
    """What gdsfw_io returns: the data plane of one worker, native, Python or both.

    Args:
        name: the path in use (`psync`), which may differ from the one asked for (`auto`).
        files: the worker's files in the order of the request; native calls get `file_values[i]`.
        python: an object as PythonIO describes.
        native: table of C functions (gdsfw_backend.h) and one opaque 64-bit value for each file.
        iodepth: depth it will really keep.
        iodepth_batch: how many I/Os to submit and collect at once; 0: as the job says.
        registers: false where there is nobody to register blocks with, so that `register_buffers: per_io` asks nothing.
        notes: lines for the result, for instance why it is not the path that was asked for.
        keep: objects that must live as long as the path.
    """

    def __init__(
        self,
        name: str,
        files: Sequence[FileHandle],
        *,
        python: PythonIO | None = None,
        native: NativeTable | None = None,
        file_values: Sequence[int] = (),
        iodepth: int = 1,
        iodepth_batch: int = 0,
        registers: bool = True,
        notes: Sequence[str] = (),
        keep: Sequence[Any] = (),
    ) -> None:
        if python is None and native is None:
            raise TypeError("an IOPath needs `python`, `native` or both")
        if native is not None and len(file_values) != len(files):
            raise TypeError(f"{len(files)} files but {len(file_values)} file values")
        self.name = name
        self.files = tuple(files)
        self.python = python
        self.native = native
        self.file_values = tuple(file_values)
        self.iodepth = iodepth
        self.iodepth_batch = iodepth_batch
        self.registers = registers
        self.notes = tuple(notes)
        self.keep = tuple(keep)
        self.instrumented: tuple[str, ...] = ()

    def as_python(self, buffer: Buffer) -> PythonIO:
        """This path as read/write calls, whatever it is made of: what a wrapping plugin builds on (WrappedPath)."""
        if self.python is not None:
            return self.python
        from gdsfw.engine.table_io import table_io

        assert self.native is not None
        values = dict(zip(map(id, self.files), self.file_values, strict=True))
        return table_io(self.native, values, buffer, self.iodepth)

    def close(self) -> None:
        """Release what the path holds. Called once, when nothing is in flight; override as needed."""


class WrappedPath(IOPath):
    """A path with a plugin's calls around its own: what a wrapper of gdsfw_io returns.

    The Python loop drives it, and the result says `instrumented: [plugin]`. What else a backend keeps on its path is
    found on this one too.

    Args:
        inner: what the backend, or the wrapper before, returned. It is closed when this cannot be made.
        buffer: the worker's buffer.
        plugin: name of the wrapping plugin.
        wrap: makes the calls from those of the inner path (`as_python`). What they offer beside read and write should
            be passed on: the loop and the job need it (PythonIO).
    """

    def __init__(self, inner: IOPath, buffer: Buffer, plugin: str, wrap: Callable[[PythonIO], PythonIO]) -> None:
        self._inner = inner
        try:
            calls = inner.as_python(buffer)
            same = {name: getattr(inner, name) for name in ("iodepth", "iodepth_batch", "registers", "notes")}
            super().__init__(inner.name, inner.files, python=wrap(calls), **same)
        except BaseException:
            inner.close()
            raise
        self.instrumented = (*inner.instrumented, plugin)
        # Made for this path alone, while a path's own object is closed with the path.
        self._made: Any = calls if inner.python is None else None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_inner"], name)

    def close(self) -> None:
        """Close the calls that were made for this path, then the inner path."""
        try:
            getattr(self._made, "close", lambda: None)()
        finally:
            self._inner.close()


TransportKind = Literal["p2p", "compat", "staged", "mapped", "host", "none", "unknown"]
CacheState = Literal["bypassed", "cold", "warm", "unknown"]


@dataclass(frozen=True)
class Transport:
    """The way the bytes took and how that is known. `unknown` where the evidence does not decide."""

    kind: TransportKind
    cache: CacheState = "unknown"
    evidence: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    setup_seconds: float = 0.0  # before the first I/O, to make this very data accessible (registering its pages)


__all__ = [
    "HOOK_VERSION",
    "Alignment",
    "BackendInfo",
    "Buffer",
    "Check",
    "Completion",
    "Device",
    "Domain",
    "ErrorInfo",
    "FileHandle",
    "IOPath",
    "IOPathInfo",
    "Mapped",
    "Pattern",
    "PatternMismatch",
    "PythonIO",
    "QueueRequest",
    "Request",
    "Target",
    "Transport",
    "Worker",
    "WrappedPath",
]
