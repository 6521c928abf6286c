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
    """psync: one pread or pwrite for each I/O."""
    return BackendInfo(
        name="posix",
        title="Files and block devices through the kernel, on host memory",
        version=__version__,
        memory=("host", "hugepage"),
        io_paths=(IOPathInfo("psync", native=True, summary="pread(2) and pwrite(2)"),),
        capabilities=frozenset({"data", "direct", "flush", "shared_files", "sparse"}),
    )


@hookimpl
def gdsfw_probe(options: Any, directory: Path, host: Host) -> list[Check]:
    """The file system below `directory`, and whether direct I/O bypasses its cache."""
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
    """The engine's psync table where the engine is there, and the same calls in Python."""
    from gdsfw_posix.psync import psync_path

    return psync_path(files, buffer)


@hookimpl
def gdsfw_transport(worker: Worker, path: IOPath, before: Any) -> Any:
    """Host memory; what the page cache did, by residency before and after."""
    from gdsfw_posix import transport

    return transport.snapshot(path) if before is None else transport.judge(path, before)
