"""A backend that moves nothing and says it did: what a run on it measures is the engine itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gdsfw import host_memory
from gdsfw.backend import BackendInfo, Buffer, FileHandle, IOPath, IOPathInfo, Request, Target, Transport, Worker
from gdsfw.hookspecs import hookimpl

if TYPE_CHECKING:
    from gdsfw.engine.native import NativeTable


@hookimpl
def gdsfw_backend() -> BackendInfo:
    """One path, native and Python; names of its own, because no file is ever touched."""
    from gdsfw import __version__

    return BackendInfo(
        name="noop",
        title="Moves nothing; measures the engine",
        version=__version__,
        io_paths=(IOPathInfo("noop", native=True, summary="returns at once"),),
        capabilities=frozenset({"flush"}),
        namespace="own",
    )


@hookimpl
def gdsfw_open_file(target: Target, mode: str) -> FileHandle:
    """A handle of a file that does not exist."""
    return FileHandle(target, direct_reason="no file is opened", writable=mode == "rw")


@hookimpl
def gdsfw_close_file() -> None:
    """Nothing was opened."""


@hookimpl
def gdsfw_alloc(nbytes: int, memory: str, alignment: int) -> Buffer:
    """Host memory, so that a worker's footprint is that of a real run."""
    return host_memory.allocate(nbytes, memory, alignment)


@hookimpl
def gdsfw_free(buffer: Buffer) -> None:
    """Undo gdsfw_alloc."""
    host_memory.free(buffer)


class NoopIO:
    """The path in Python."""

    def read(self, file: FileHandle, size: int, file_offset: int, buffer_offset: int) -> int:
        """Say that all was read."""
        return size

    def write(self, file: FileHandle, size: int, file_offset: int, buffer_offset: int) -> int:
        """Say that all was written."""
        return size

    def flush(self, file: FileHandle, data_only: bool) -> None:
        """Say that all is on storage."""


@hookimpl
def gdsfw_io(worker: Worker, files: Sequence[FileHandle], request: Request) -> IOPath:
    """The engine's own table where the engine is there, else the path in Python."""
    table, note = _table()
    return IOPath(
        "noop",
        files,
        python=NoopIO(),
        native=table,
        file_values=range(len(files)) if table is not None else (),
        notes=(note,) if note else (),
    )


def _table() -> tuple[NativeTable | None, str]:
    from gdsfw.engine import native

    usable, reason = native.available()
    return (native.noop_table(), "") if usable else (None, reason)


@hookimpl
def gdsfw_transport(worker: Worker, path: IOPath, before: Any) -> Transport:
    """No bytes took any way."""
    return Transport("none", evidence=("noop moves no bytes",))
