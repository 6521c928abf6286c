"""The psync path: the engine's table, and the same calls in Python for where there is no engine."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence

from gdsfw.backend import Buffer, FileHandle, IOPath
from gdsfw.engine import native

#: The kernel moves at most this many bytes in one call (read(2)).
MOST_BYTES = 0x7FFFF000


def psync_path(files: Sequence[FileHandle], buffer: Buffer) -> IOPath:
    """psync over these files."""
    if buffer.host_view is None:
        raise TypeError("psync needs memory that the host can touch")
    python = PsyncIO(buffer.host_view)
    usable, reason = native.available()
    if not usable:
        return IOPath("psync", files, python=python, notes=(reason,))
    descriptors = [descriptor(file) for file in files]
    return IOPath(
        "psync",
        files,
        python=python,
        native=native.psync_table(),
        file_values=[ctypes.addressof(item) for item in descriptors],
        keep=descriptors,
    )


def descriptor(file: FileHandle) -> native.FdFile:
    """What the engine's tables for host memory call a file."""
    return native.FdFile(file.fd, file.tail_fd, file.alignment.offset, 0)


class PsyncIO:
    """preadv and pwritev on the worker's buffer. A block that direct I/O does not allow goes through the page cache."""

    max_transfer = MOST_BYTES

    def __init__(self, view: memoryview) -> None:
        self._view = view

    def read(self, file: FileHandle, size: int, file_offset: int, buffer_offset: int) -> int:
        """One preadv(2)."""
        piece = self._view[buffer_offset : buffer_offset + size]
        return os.preadv(_fd(file, size, file_offset), [piece], file_offset)

    def write(self, file: FileHandle, size: int, file_offset: int, buffer_offset: int) -> int:
        """One pwritev(2)."""
        piece = self._view[buffer_offset : buffer_offset + size]
        return os.pwritev(_fd(file, size, file_offset), [piece], file_offset)

    def flush(self, file: FileHandle, data_only: bool) -> None:
        """fdatasync(2) or fsync(2)."""
        (os.fdatasync if data_only else os.fsync)(file.fd)


def _fd(file: FileHandle, size: int, file_offset: int) -> int:
    if file.tail_fd >= 0 and (size | file_offset) % file.alignment.offset:
        return file.tail_fd
    return file.fd
