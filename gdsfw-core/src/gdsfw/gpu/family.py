"""The hooks of a GPU backend, for any vendor: a vendor's plugin module forwards to one Family."""

from __future__ import annotations

import ctypes as c
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from gdsfw.backend import Buffer, Device, FileHandle, IOPath, IOPathInfo, Mapped, Request, Worker
from gdsfw.engine import native
from gdsfw.errors import BackendError, UnavailableError, UsageError
from gdsfw.gpu.abi import Finding
from gdsfw.gpu.copying import copy_in
from gdsfw.gpu.evidence import staged_snapshot, staged_transport
from gdsfw.gpu.kernels import Loaded, load
from gdsfw.gpu.library_use import aligned_to_pages, check_limits, test_read
from gdsfw.gpu.mapped import LAUNCHES, moves_nbytes, transport
from gdsfw.gpu.mapping import FileMap, Limits, Maps, pinnable, window_bytes
from gdsfw.gpu.paths import PSYNC_GROUPS, URING_GROUPS, PathParts, group_blocks, make, uses_io_uring
from gdsfw.option_types import Size

if TYPE_CHECKING:
    from gdsfw.gpu.vendor import FileLibrary, Runtime, Vendor
    from gdsfw.workload.model import Job

IO_PATHS = (
    IOPathInfo("auto", native=True, max_iodepth=0, summary="sync where it is peer-to-peer, else staged"),
    IOPathInfo("sync", native=True, summary="the library's synchronous read and write"),
    IOPathInfo("batch", native=True, max_iodepth=0, summary="the library's batch interface"),
    IOPathInfo("stream", native=True, max_iodepth=0, summary="the library's stream-ordered interface"),
    IOPathInfo("staged", native=True, max_iodepth=0, summary="pinned host memory and grouped copies; needs no library"),
    IOPathInfo(
        "mapped",
        native=True,
        max_iodepth=0,
        page_cache=True,
        summary="the file's own pages, registered with the device: no copy by the CPU (writes: tmpfs)",
    ),
)
#: Bytes of host memory for verification beside the block: what the verify kernel finds.
SMALLEST_SCRATCH = 4096
#: State of a buffer that the file library knows.
REGISTERED = "registered"
#: Paths that go through the vendor's file library.
LIBRARY_PATHS = frozenset({"sync", "batch", "stream"})


class StagingOptions(BaseModel):
    """Options that every GPU backend has."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    reader: Literal["auto", "psync", "io_uring"] = Field(
        "auto", description="How staged reads and writes storage; auto: io_uring for direct I/O, else psync."
    )
    group_bytes: Size | None = Field(None, ge=1, description="Bytes of one staged copy. Default 1 MiB.")
    groups: int | None = Field(
        None, ge=1, le=1024, description="Staged groups in flight, a number. Default 2 with psync, 8 with io_uring."
    )
    wait: Literal["spin", "block"] = Field("spin", description="How a worker waits for the device.")
    map_share: float = Field(
        0.25, gt=0, le=1, description="Share of the available memory that mapped may pin for one file, 0 to 1."
    )
    window_bytes: Size | None = Field(
        None, ge=4096, description="Bytes that mapped registers at once. Default: the whole range, else 64 MiB."
    )


@dataclass
class Session:
    """An open backend. The file library is opened by the first path that needs it."""

    options: StagingOptions
    runtime: Runtime
    maps: Maps
    library: FileLibrary | None = None
    auto: str = ""
    auto_proven: bool = False
    notes: list[str] = field(default_factory=list)
    contexts: set[int] = field(default_factory=set)  # devices that had one at the start, and our own
    lock: threading.RLock = field(default_factory=threading.RLock)


@dataclass
class State:
    """What a worker holds between gdsfw_worker_start and gdsfw_worker_stop."""

    entered: Any
    ordinal: int
    stream: int
    events: list[int] = field(default_factory=list)
    mirror: int = 0
    scratch: int = 0
    stream_registered: bool = False
    moves: int = 0
    finding: int = 0
    maps: list[FileMap] = field(default_factory=list)
    parts: PathParts | None = None


class Family:
    """Implements the job hooks over a Vendor."""

    def __init__(self, vendor: Vendor) -> None:
        self._vendor = vendor
        self._runtime: Runtime | None = None
        self._kernels: dict[int, Loaded] = {}
        self._known: list[Device] = []
        self._lock = threading.Lock()

    def runtime(self) -> Runtime:
        """The vendor's runtime, opened once a process."""
        if self._runtime is None:
            self._runtime = self._vendor.runtime()
        return self._runtime

    def devices(self) -> list[Device]:
        """The devices there are; none where the runtime is absent."""
        try:
            return self.runtime().devices()
        except UnavailableError:
            return []

    def open(self, options: StagingOptions) -> Session:
        """Open the runtime; the file library waits for a path that needs it."""
        usable, reason = native.available()
        if not usable:
            raise UnavailableError(f"backend {self._vendor.name} needs the C engine: {reason}")
        runtime = self.runtime()
        return Session(options, runtime, Maps(self._vendor.explain), contexts=runtime.active())

    def close(self, session: Session) -> None:
        """Close the file library."""
        if session.library is not None:
            session.library.close()
            session.library = None

    def path_name(self, session: Session, asked: str) -> str:
        """The path for `asked`; `auto` is sync where peer-to-peer is possible, until a test read says otherwise."""
        if asked != "auto":
            return asked
        with session.lock:
            if not session.auto:
                try:
                    possible, reason = self.library(session).direct_possible()
                except (UnavailableError, BackendError) as error:
                    possible, reason = False, error.message
                if possible:
                    session.auto = "sync"
                else:
                    _decide_staged(session, reason)
            return session.auto

    def library(self, session: Session) -> FileLibrary:
        """The session's file library, opened by the first call."""
        with session.lock:  # workers start at the same time
            if session.library is None:
                library = self._vendor.library()
                library.open(session.options)
                session.library = library
                session.notes += library.notes()
            return session.library

    def worker_start(self, session: Session, worker: Worker) -> State:
        """Make the worker's device current in its thread and give it a stream."""
        ordinal = worker.device or 0
        with session.lock:
            session.contexts.add(ordinal)
        entered = _enter(session.runtime, ordinal)
        try:
            return State(entered, ordinal, session.runtime.create_stream())
        except BaseException:
            session.runtime.leave(entered)
            raise

    def worker_stop(self, worker: Worker) -> None:
        """Give back stream, events and host memory."""
        state: State = worker.state
        runtime: Runtime = worker.session.runtime
        if state.stream_registered:
            self.library(worker.session).deregister_stream(state.stream)
        for held in state.maps:
            worker.session.maps.release(held)
        for event in state.events:
            runtime.destroy_event(event)
        for address in (state.mirror, state.scratch, state.moves):
            if address:
                runtime.free_host(address)
        if state.finding:
            runtime.free(state.finding)
        runtime.destroy_stream(state.stream)
        runtime.leave(state.entered)

    def alloc(self, worker: Worker, nbytes: int, memory: str, alignment: int) -> Buffer:
        """Device memory, or pinned host memory."""
        runtime: Runtime = worker.session.runtime
        if memory == "device":
            return Buffer(runtime.allocate(nbytes), nbytes, memory)
        if memory == "pinned":
            address = runtime.allocate_host(nbytes)
            return Buffer(address, nbytes, memory, _view(address, nbytes))
        raise UsageError(f"memory: {memory}: this backend has device and pinned memory")

    def free(self, worker: Worker, buffer: Buffer) -> None:
        """Give back what alloc gave."""
        runtime: Runtime = worker.session.runtime
        if buffer.memory == "device":
            runtime.free(buffer.address)
        else:
            buffer.host_view = None
            runtime.free_host(buffer.address)

    def register_buffer(self, worker: Worker, buffer: Buffer) -> None:
        """Register the buffer with the library, for paths that go through it."""
        session: Session = worker.session
        if self.path_name(session, worker.job.io_path) not in LIBRARY_PATHS:
            return
        limits = self.library(session).limits(worker.state.ordinal)
        if limits:
            check_limits(worker, buffer.nbytes, limits, len(self._devices()))
        if self._attempt(worker, lambda: self.library(session).register_buffer(buffer.address, buffer.nbytes)):
            buffer.state = REGISTERED

    def deregister_buffer(self, worker: Worker, buffer: Buffer) -> None:
        """Undo register_buffer."""
        if buffer.state == REGISTERED:
            self.library(worker.session).deregister_buffer(buffer.address)
            buffer.state = None

    def register_file(self, worker: Worker, file: FileHandle) -> None:
        """Register the descriptor with the library, for paths that go through it."""
        session: Session = worker.session

        def register() -> None:
            file.state = self.library(session).register_file(file.fd)

        if self.path_name(session, worker.job.io_path) in LIBRARY_PATHS:
            self._attempt(worker, register)

    def _attempt(self, worker: Worker, register: Callable[[], None]) -> bool:
        """Register something; where the path was left to gdsfw, a refusal makes it staged."""
        try:
            register()
        except BackendError as error:
            if worker.job.io_path != "auto":
                raise
            _decide_staged(worker.session, error.message)
            return False
        return True

    def deregister_file(self, worker: Worker, file: FileHandle) -> None:
        """Undo register_file."""
        if file.state is not None:
            self.library(worker.session).deregister_file(file.state)
            file.state = None

    def io(self, worker: Worker, files: Sequence[FileHandle], buffer: Buffer, request: Request) -> IOPath:
        """The data plane of the job's path."""
        session: Session = worker.session
        name = self.path_name(session, request.io_path)
        if request.io_path == "auto" and name == "sync":
            name = self._prove(worker, files, buffer, request)
        if request.io_path == "auto" and name == "staged" and _reuses(worker.job, files, request):
            try:
                path = self._path("mapped", worker, files, buffer, request)
            except UnavailableError as error:
                session.notes.append(f"io_path auto: not mapped, because {error.message}")
            else:
                path.notes = ("io_path auto: mapped, because the range is read four times or more", *path.notes)
                return path
        return self._path(name, worker, files, buffer, request)

    def _path(self, name: str, worker: Worker, files: Sequence[FileHandle], buffer: Buffer, request: Request) -> IOPath:
        session: Session = worker.session
        options = session.options
        uring = uses_io_uring(options.reader, files, request.iodepth)
        groups = options.groups or (URING_GROUPS if uring else PSYNC_GROUPS)
        library = self.library(session) if name in LIBRARY_PATHS else None
        parts = PathParts(
            session.runtime,
            library,
            worker.state.stream,
            worker.state.events,
            spin=options.wait == "spin",
            group_blocks=group_blocks(request.iodepth, request.max_block_size, options.group_bytes, groups),
            reader=options.reader,
        )
        if name == "mapped":
            self._map_files(worker, files, request, parts)
        self._allocate(name, worker, buffer, request, parts)
        path = make(name, files, buffer, request, parts)
        if worker.job.buffer_dedupe and parts.kernels is None:
            why = parts.kernels_missing
            path.notes = (*path.notes, f"buffer_dedupe is not kept, each block repeats its slot's data: {why}")
        path.notes = (*session.notes, *self._other_contexts(session), *path.notes)
        worker.state.parts = parts
        return path

    def _prove(self, worker: Worker, files: Sequence[FileHandle], buffer: Buffer, request: Request) -> str:
        """`sync` if a test read goes peer-to-peer, else `staged`; the first worker's word holds for all."""
        session: Session = worker.session
        with session.lock:
            if session.auto == "sync" and not session.auto_proven:
                kind, evidence = test_read(self.library(session), files, buffer, request)
                if kind == "p2p":
                    session.auto_proven = True
                    session.notes.append(f"io_path auto: sync, because a test read went peer-to-peer ({evidence})")
                else:
                    _decide_staged(session, f"no test read went peer-to-peer: {evidence}")
            return session.auto

    def _other_contexts(self, session: Session) -> list[str]:
        """A note on devices that a library opened a context on though no worker is there."""
        others = sorted(session.runtime.active() - session.contexts)
        if not others or session.library is None:
            return []
        names = ", ".join(map(str, others))
        return [f"the file library opened contexts on devices that this job does not use: {names}"]

    def _map_files(self, worker: Worker, files: Sequence[FileHandle], request: Request, parts: PathParts) -> None:
        session: Session = worker.session
        limits = Limits(session.options.map_share, session.options.window_bytes)
        for file, span in zip(files, request.ranges, strict=True):
            held = session.maps.acquire(session.runtime, file, span, request.rw != "read", limits, worker.job.numjobs)
            worker.state.maps.append(held)
        parts.maps = worker.state.maps

    def _allocate(self, name: str, worker: Worker, buffer: Buffer, request: Request, parts: PathParts) -> None:
        """What the path needs beside the buffer; the worker's state holds it, worker_stop gives it back."""
        state: State = worker.state
        runtime: Runtime = worker.session.runtime
        if name != "sync":
            number = LAUNCHES if name == "mapped" else request.iodepth
            state.events += [runtime.create_event(blocking=not parts.spin) for _ in range(number)]
        if name == "staged":
            state.mirror = runtime.allocate_host(buffer.nbytes)
            parts.mirror, parts.mirror_nbytes = state.mirror, buffer.nbytes
        shares = worker.job.writes and (worker.job.buffer_compress or worker.job.buffer_dedupe)
        if name == "mapped" or worker.job.verify or shares:
            self._add_kernels(worker, request, parts, moves=name == "mapped")
        if worker.job.writes or worker.job.verify:
            parts.scratch_nbytes = max(request.max_block_size, SMALLEST_SCRATCH)
            parts.scratch = state.scratch = runtime.allocate_host(parts.scratch_nbytes)
        if name == "stream" and parts.library is not None:
            parts.library.register_stream(state.stream, aligned_to_pages(request))
            state.stream_registered = True

    def _add_kernels(self, worker: Worker, request: Request, parts: PathParts, *, moves: bool) -> None:
        state: State = worker.state
        runtime: Runtime = worker.session.runtime
        with self._lock:
            if state.ordinal not in self._kernels:
                self._kernels[state.ordinal] = load(runtime, state.ordinal)
        loaded = self._kernels[state.ordinal]
        parts.kernels, parts.kernels_missing = loaded.table(), loaded.missing
        if parts.kernels is None:
            return
        state.finding = parts.finding = runtime.allocate(c.sizeof(Finding))
        copy_in(runtime, state.stream, state.finding, bytes(Finding(0, 2**64 - 1)))
        if moves:
            state.moves = parts.moves = runtime.allocate_host(moves_nbytes(request.iodepth))

    def copy(self, worker: Worker, buffer: Buffer, offset: int, host_view: memoryview, direction: str) -> None:
        """Copy outside the loop, through a table of this worker."""
        from gdsfw.gpu.copying import copy

        copy(worker.session.runtime, worker.state.stream, buffer, offset, host_view, direction)

    def map(self, session: Session, file: FileHandle, device: int, writable: bool) -> Mapped:
        """The whole file's pages, registered with the device.

        Raises:
            UnavailableError: there is no such device, or it cannot be.
        """
        ordinals = [found.ordinal for found in session.runtime.devices()]
        if device not in ordinals:
            raise UnavailableError(f"there is no device {device}", hint=f"there are: {', '.join(map(str, ordinals))}")
        nbytes = file.target.nbytes
        limits = Limits(session.options.map_share, None)
        if not nbytes or window_bytes(nbytes, limits, 1)[0] < nbytes:
            raise UnavailableError(
                f"{file.target.name}: {nbytes} bytes are {'more than may be pinned' if nbytes else 'nothing to map'}",
                hint=f"map_share {limits.share:g} of the available memory allows {pinnable(limits.share)} bytes",
            )
        entered = session.runtime.enter(device)
        try:
            held = session.maps.acquire(session.runtime, file, (0, nbytes), writable, limits, 1)
            address = held.device_address(0)
        finally:
            session.runtime.leave(entered)
        return Mapped(address, nbytes, device, self._vendor.dlpack_type, writable, held)

    def unmap(self, session: Session, mapped: Mapped) -> None:
        """Undo map."""
        entered = session.runtime.enter(mapped.device)
        try:
            session.maps.release(mapped.state)
        finally:
            session.runtime.leave(entered)

    def transport(self, worker: Worker, path: IOPath, before: Any) -> Any:
        """The way the bytes took: staged and mapped by construction, else what the library's evidence says."""
        if before is None:
            return self._snapshot(worker, path)
        if path.name == "mapped":
            found = transport(worker.session.maps, before)
        elif path.name == "staged":
            found = staged_transport(path, before)
        else:
            found = self.library(worker.session).judge(before, path.files)
        device = next((one for one in self._devices() if one.ordinal == worker.state.ordinal), None)
        named = {f"device {device.ordinal}": asdict(device)} if device is not None else {}
        return replace(found, details={**found.details, **named})

    def _snapshot(self, worker: Worker, path: IOPath) -> Any:
        if path.name == "mapped":
            return worker.session.maps.seconds()
        return staged_snapshot(path) if path.name == "staged" else self.library(worker.session).snapshot()

    def _devices(self) -> list[Device]:
        """The devices, asked for once: results name them."""
        with self._lock:
            if not self._known:
                self._known = self.devices()
            return self._known


def _decide_staged(session: Session, reason: str) -> None:
    with session.lock:
        if session.auto != "staged":
            session.auto = "staged"
            session.notes.append(f"io_path auto: staged, because {reason}")


def _enter(runtime: Runtime, ordinal: int) -> Any:
    """Make a device current; which one a refusal is about is not the runtime's to say."""
    try:
        return runtime.enter(ordinal)
    except BackendError as error:
        raise BackendError(error.operation, error.domain, error.code, f"device {ordinal}") from error


def _reuses(job: Job, files: Sequence[FileHandle], request: Request) -> bool:
    """Whether registering pays: buffered reads of at least four times the range, all of it known beforehand."""
    planned = job.io_size or 0
    return (
        request.rw == "read"
        and not any(file.direct for file in files)
        and planned >= 4 * sum(length for _, length in request.ranges)
    )


def _view(address: int, nbytes: int) -> memoryview:
    return memoryview((c.c_uint8 * nbytes).from_address(address)).cast("B")
