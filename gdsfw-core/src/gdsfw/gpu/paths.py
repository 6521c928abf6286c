"""The data planes, each a table for the C engine: sync, batch, stream and staged; mapped.py has the mapped one."""

from __future__ import annotations

import ctypes as c
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gdsfw.backend import IOPath
from gdsfw.engine import native
from gdsfw.engine.native_library import engine
from gdsfw.engine.native_table import (
    CAN_READ,
    CAN_WRITE,
    COPY_FN,
    DEREGISTER_FN,
    FILL_FN,
    FLUSH_FN,
    IO_FN,
    MAKE_DATA_FN,
    REGISTER_FN,
    VERIFY_FN,
    NativeTable,
)
from gdsfw.errors import UnavailableError, UsageError
from gdsfw.gpu import abi
from gdsfw.gpu.library_use import try_batch

if TYPE_CHECKING:
    from gdsfw.backend import Buffer, FileHandle, Request
    from gdsfw.gpu.mapping import FileMap
    from gdsfw.gpu.vendor import FileLibrary, Runtime

#: Groups in flight by default. psync reads one group while another is copied. With io_uring a group ends with its
#: slowest block, so many small ones keep the device's queue fuller.
PSYNC_GROUPS, URING_GROUPS = 2, 8
#: Bytes that one staged copy should have: enough to hide its fixed cost of a few microseconds at 55 GB/s.
GROUP_BYTES = 1 << 20


@dataclass
class PathParts:
    """What a path is made of: the worker's stream and memory, and the vendor's two libraries.

    Args:
        events: at least as many as groups or submissions can be in flight.
        mirror: pinned host memory as large as the device buffer (staged), else 0.
        scratch: pinned host memory for fill and verify.
        library: None for paths that need no file library.
        kernels, kernels_missing: device functions, or why there are none.
        finding: device memory for what the verify kernel finds.
        moves: pinned host memory for the moves of all launches (mapped).
        maps: one for each file (mapped).
    """

    runtime: Runtime
    library: FileLibrary | None
    stream: int
    events: Sequence[int]
    mirror: int = 0
    mirror_nbytes: int = 0
    scratch: int = 0
    scratch_nbytes: int = 0
    spin: bool = True
    group_blocks: int = 0
    reader: str = "auto"
    kernels: abi.Kernels | None = None
    kernels_missing: str = ""
    finding: int = 0
    moves: int = 0
    maps: Sequence[FileMap] = ()
    keep: list[Any] = field(default_factory=list)


def group_blocks(iodepth: int, block: int, group_bytes: int | None, groups: int) -> int:
    """Blocks of one staged group: no more than `groups` groups need to fill the depth, no larger than needed."""
    return max(1, min(iodepth // groups, -(-(group_bytes or GROUP_BYTES) // block)))


def uses_io_uring(reader: str, files: Sequence[FileHandle], iodepth: int) -> bool:
    """Whether staged reads by io_uring: it pays where storage has latency to hide, psync where data is in memory."""
    return reader == "io_uring" or (reader == "auto" and iodepth > 1 and any(file.direct for file in files))


def make(name: str, files: Sequence[FileHandle], buffer: Buffer, request: Request, parts: PathParts) -> IOPath:
    """The path called `name` for these files."""
    return _MAKERS[name](files, buffer, request, parts)


def _sync(files: Sequence[FileHandle], buffer: Buffer, request: Request, parts: PathParts) -> IOPath:
    library = _library(parts)
    symbols = library.symbols()
    path, values = path_struct(files, parts)
    table = path_table(path, parts, read=IO_FN(symbols["read"]), write=IO_FN(symbols["write"]))
    note = [f"iodepth {request.iodepth}: sync keeps one I/O in flight"] if request.iodepth > 1 else []
    return IOPath("sync", files, native=table, file_values=values, notes=note, keep=[path, *parts.keep])


def _batch(files: Sequence[FileHandle], buffer: Buffer, request: Request, parts: PathParts) -> IOPath:
    library = _library(parts)
    if request.iodepth > library.max_batch:
        raise UsageError(
            f"iodepth {request.iodepth} exceeds the batch maximum {library.max_batch} (io_batchsize, or what the "
            "library can hold in compatibility mode)",
            hint=f"lower iodepth to {library.max_batch}, or use io_path staged",
        )
    path = _queue_path("batch", "gdsfw_gpu_batch_queue", ("batch_setup", "batch_submit"), files, request, parts)
    try_batch(library)
    return path


def _stream(files: Sequence[FileHandle], buffer: Buffer, request: Request, parts: PathParts) -> IOPath:
    return _queue_path("stream", "gdsfw_gpu_stream_queue", ("read_async", "write_async"), files, request, parts)


def _queue_path(
    name: str,
    queue: str,
    needs: Sequence[str],
    files: Sequence[FileHandle],
    request: Request,
    parts: PathParts,
) -> IOPath:
    lacking = [symbol for symbol in needs if symbol not in _library(parts).symbols()]
    if lacking:
        raise UnavailableError(
            f"io_path {name}: the file library has no {', '.join(lacking)}", hint="use io_path sync or staged"
        )
    path, values = path_struct(files, parts)
    table = path_table(path, parts)
    table.queue = engine().queue(queue)
    return IOPath(
        name,
        files,
        native=table,
        file_values=values,
        iodepth=request.iodepth,
        iodepth_batch=request.iodepth_batch if request.iodepth_batch > 1 else _default_batch(request.iodepth),
        keep=[path, *parts.keep],
    )


def _default_batch(iodepth: int) -> int:
    """One library call for so many I/Os costs little each, and two submissions keep the depth from running dry."""
    return max(1, iodepth // 2)


def _staged(files: Sequence[FileHandle], buffer: Buffer, request: Request, parts: PathParts) -> IOPath:
    storage, options = _storage_table(parts.reader, files, request)
    path, _ = path_struct(files, parts)
    path.storage = c.pointer(storage)
    path.group_blocks = parts.group_blocks
    descriptors = [native.FdFile(file.fd, file.tail_fd, file.alignment.offset, 0) for file in files]
    table = path_table(path, parts)
    table.flush = FLUSH_FN(address("gdsfw_staged_flush"))
    table.queue = engine().queue("gdsfw_staged_queue")
    groups = -(-request.iodepth // parts.group_blocks)
    reader = "io_uring" if options is not None else "psync"
    return IOPath(
        "staged",
        files,
        native=table,
        file_values=[c.addressof(item) for item in descriptors],
        iodepth=request.iodepth,
        iodepth_batch=parts.group_blocks,
        registers=False,
        notes=[f"staged through {reader}: {groups} groups of {parts.group_blocks} blocks"],
        keep=[path, storage, options, descriptors, *parts.keep],
    )


def _mapped(files: Sequence[FileHandle], buffer: Buffer, request: Request, parts: PathParts) -> IOPath:
    from gdsfw.gpu import mapped

    return mapped.make(files, buffer, request, parts)


def _storage_table(reader: str, files: Sequence[FileHandle], request: Request) -> tuple[NativeTable, Any]:
    """The table for host memory, and the options that must live as long."""
    if not uses_io_uring(reader, files, request.iodepth):
        return native.psync_table(), None
    from gdsfw.engine.native_table import UringOptions
    from gdsfw.engine.native_uring import uring_table

    options = UringOptions()
    return uring_table(options), options


def path_struct(files: Sequence[FileHandle], parts: PathParts) -> tuple[abi.Path, list[int]]:
    """The context of a path's table and queue, and the library's value of each file."""
    runtime = abi.Runtime(**abi.members(abi.Runtime, parts.runtime.symbols()), not_ready=parts.runtime.not_ready)
    values = [int(file.state or 0) for file in files]
    entries = (abi.FileEntry * len(files))(
        *(abi.FileEntry(value, file.fd, 0) for value, file in zip(values, files, strict=True))
    )
    events = (c.c_uint64 * len(parts.events))(*parts.events)
    path = abi.Path(
        gpu=c.pointer(runtime),
        stream=parts.stream,
        events=events,
        nevents=len(parts.events),
        mirror=parts.mirror,
        mirror_size=parts.mirror_nbytes,
        scratch=parts.scratch,
        scratch_size=parts.scratch_nbytes,
        spin=int(parts.spin),
        files=entries,
        nfiles=len(files),
        moves=parts.moves,
        finding=parts.finding,
    )
    if parts.kernels is not None:
        path.kernels = c.pointer(parts.kernels)
        parts.keep.append(parts.kernels)
    if parts.library is not None:
        library = abi.FileLibrary(**abi.members(abi.FileLibrary, parts.library.symbols()))
        path.library = c.pointer(library)
        path.file_code_base = parts.library.code_base
        parts.keep.append(library)
    parts.keep += [runtime, entries, events]
    return path, values


def path_table(path: abi.Path, parts: PathParts, **members: Any) -> NativeTable:
    """The table of a path: what all paths share, and its own members."""
    library = parts.library
    if parts.kernels is not None:
        members["make_data"] = MAKE_DATA_FN(address("gdsfw_gpu_make_data"))
    return NativeTable(
        flags=CAN_READ | CAN_WRITE,
        file_code_base=library.code_base if library else 0,
        max_transfer=library.max_transfer if library else 0,
        ctx=c.addressof(path),
        flush=FLUSH_FN(address("gdsfw_gpu_flush")),
        copy=COPY_FN(address("gdsfw_gpu_copy")),
        fill=FILL_FN(address("gdsfw_gpu_fill")),
        verify=VERIFY_FN(address("gdsfw_gpu_verify")),
        register_buffer=REGISTER_FN(address("gdsfw_gpu_register")),
        deregister_buffer=DEREGISTER_FN(address("gdsfw_gpu_deregister")),
        **members,
    )


def address(symbol: str) -> int:
    """Where a function of the C engine is."""
    return c.cast(getattr(engine().library, symbol), c.c_void_p).value or 0


def _library(parts: PathParts) -> FileLibrary:
    if parts.library is None:
        raise UnavailableError("this path needs the vendor's file library")
    return parts.library


_MAKERS: dict[str, Callable[[Sequence[FileHandle], Buffer, Request, PathParts], IOPath]] = {
    "sync": _sync,
    "batch": _batch,
    "stream": _stream,
    "staged": _staged,
    "mapped": _mapped,
}
