"""The backend for ordinary files and block devices on host memory, through the kernel's own calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gdsfw import hookimpl, host_memory
from gdsfw.backend import BackendInfo, Buffer, FileHandle, IOPath, IOPathInfo, Request, Worker

if TYPE_CHECKING:
    from pathlib import Path

    from gdsfw.backend import Check
    from gdsfw.host import Host

__version__ = "0.1.0"


@hookimpl
def gdsfw_backend() -> BackendInfo:
    """psync for one I/O at a time, io_uring for a depth, and the choice between them."""
    from gdsfw_posix.options import PosixOptions

    return BackendInfo(
        name="posix",
        title="Files and block devices through the kernel, on host memory",
        version=__version__,
        memory=("host", "hugepage"),
        options=PosixOptions,
        io_paths=(
            IOPathInfo(
                "auto",
                native=True,
                max_iodepth=0,
                locks_buffers=True,
                summary="io_uring where iodepth is above 1, else psync",
            ),
            IOPathInfo("psync", native=True, summary="pread(2) and pwrite(2), one I/O at a time"),
            IOPathInfo(
                "io_uring",
                native=True,
                max_iodepth=0,
                locks_buffers=True,
                summary="io_uring(7), any depth; needs Linux 5.6",
            ),
        ),
        capabilities=frozenset({"data", "direct", "flush", "shared_files", "sparse"}),
    )


@hookimpl
def gdsfw_probe(options: Any, directory: Path, host: Host) -> list[Check]:
    """The file system below `directory`, whether direct I/O bypasses its cache, and io_uring."""
    from gdsfw_posix.probe import checks

    return checks(directory, host)


@hookimpl
def gdsfw_alloc(worker: Worker, nbytes: int, memory: str, alignment: int) -> Buffer:
    """Page-aligned host memory, in huge pages if asked."""
    return host_memory.allocate(nbytes, memory, alignment)


@hookimpl
def gdsfw_free(worker: Worker, buffer: Buffer) -> None:
    """Give it back."""
    host_memory.free(buffer)


@hookimpl
def gdsfw_io(worker: Worker, files: Sequence[FileHandle], buffer: Buffer, request: Request) -> IOPath:
    """The engine's table for the path; psync has the same calls in Python for where there is no engine."""
    if request.io_path == "psync":
        from gdsfw_posix.psync import psync_path

        return psync_path(files, buffer)
    from gdsfw_posix import uring

    make = uring.uring_path if request.io_path == uring.NAME else uring.auto_path
    return make(worker, files, buffer, request)


@hookimpl
def gdsfw_transport(worker: Worker, path: IOPath, before: Any) -> Any:
    """Host memory; what the page cache did, by residency before and after."""
    from gdsfw_posix import transport

    return transport.snapshot(path) if before is None else transport.judge(path, before)
