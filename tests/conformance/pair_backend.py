"""A sound backend whose path is both a table and a Python object, to break: psync on files."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence

from gdsfw import hookimpl, host_memory
from gdsfw.backend import BackendInfo, Buffer, FileHandle, IOPath, IOPathInfo
from gdsfw.engine import native


@hookimpl
def gdsfw_backend() -> BackendInfo:
    return BackendInfo(
        name="pair",
        title="psync twice",
        version="1",
        io_paths=(IOPathInfo("pair", native=True),),
        capabilities=frozenset({"data", "flush", "sparse", "shared_files"}),
    )


@hookimpl
def gdsfw_alloc(nbytes: int, memory: str, alignment: int) -> Buffer:
    return host_memory.allocate(nbytes, memory, alignment)


@hookimpl
def gdsfw_free(buffer: Buffer) -> None:
    host_memory.free(buffer)


class Calls:
    def __init__(self, view: memoryview) -> None:
        self._view = view

    def read(self, file: FileHandle, size: int, file_offset: int, buffer_offset: int) -> int:
        return os.preadv(_fd(file), [self._view[buffer_offset : buffer_offset + size]], file_offset)

    def write(self, file: FileHandle, size: int, file_offset: int, buffer_offset: int) -> int:
        return os.pwritev(_fd(file), [self._view[buffer_offset : buffer_offset + size]], file_offset)

    def flush(self, file: FileHandle, data_only: bool) -> None:
        os.fsync(_fd(file))


def _fd(file: FileHandle) -> int:
    return file.tail_fd if file.tail_fd >= 0 else file.fd


@hookimpl
def gdsfw_io(files: Sequence[FileHandle], buffer: Buffer) -> IOPath:
    assert buffer.host_view is not None
    values = [native.FdFile(_fd(file), -1, 1, 0) for file in files]
    return IOPath(
        "pair",
        files,
        python=Calls(buffer.host_view),
        native=native.psync_table(),
        file_values=[ctypes.addressof(value) for value in values],
        keep=values,
    )
