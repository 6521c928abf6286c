"""The types that hooks pass between core and a backend. A backend imports these and `hookimpl`, no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gdsfw.data_plane import (
    BlockData,
    Completion,
    CopyDirection,
    Direction,
    IOPath,
    Pattern,
    PatternMismatch,
    PythonIO,
    QueueRequest,
    WrappedPath,
)
from gdsfw.errors import Domain

if TYPE_CHECKING:
    from pydantic import BaseModel

    from gdsfw.workload.model import Job

#: Version of the hook interface: it counts incompatible changes (docs/explanation/compatibility.md).
HOOK_VERSION = 1

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
    "CopyDirection",
    "Device",
    "Direction",
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
    "BlockData",
]
