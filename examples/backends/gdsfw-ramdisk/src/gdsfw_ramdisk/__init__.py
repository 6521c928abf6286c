"""A gdsfw backend that keeps files in this process's memory: complete, small, pure Python."""

import errno
import os
import threading
from dataclasses import replace

from gdsfw import hookimpl, host_memory
from gdsfw.backend import BackendInfo, Buffer, FileHandle, IOPath, IOPathInfo, Target, Transport
from gdsfw.errors import UnavailableError

__version__ = "0.1.0"
FILES: dict[str, bytearray] = {}  # by name; they live as long as the process, so that later jobs can read them
_growing = threading.Lock()  # two workers may make one file longer at the same time


@hookimpl
def gdsfw_backend() -> BackendInfo:
    """What it is called and what it can do. Names are its own: they are no paths of this machine."""
    path = IOPathInfo("copy", native=False, summary="copies between two places in memory, in Python")
    able = frozenset({"data", "flush", "shared_files", "sparse"})
    return BackendInfo("ramdisk", "Files in memory", __version__, (path,), capabilities=able, namespace="own")


@hookimpl
def gdsfw_open_file(target: Target, mode: str) -> FileHandle:
    """Find a file, or make it where the job may; the handle says how long it is now."""
    if target.name not in FILES and not (mode == "rw" and target.create):
        raise UnavailableError(f"there is no file {target.name!r}", hint="write it in an earlier job")
    contents = FILES.setdefault(target.name, bytearray())
    return FileHandle(replace(target, nbytes=len(contents)), writable=mode == "rw", state=contents)


@hookimpl
def gdsfw_alloc(nbytes: int, memory: str, alignment: int) -> Buffer:
    """Memory of the host."""
    return host_memory.allocate(nbytes, memory, alignment)


@hookimpl
def gdsfw_free(buffer: Buffer) -> None:
    """Give it back."""
    host_memory.free(buffer)


class _Copy:  # the data plane of one worker: while it measures, the loop calls these methods and no hook
    def __init__(self, buffer: memoryview) -> None:
        self._buffer = buffer

    def read(self, file: FileHandle, size: int, file_offset: int, buffer_offset: int) -> int:
        """From the file into the buffer; a short count means the end of the file."""
        piece = file.state[file_offset : file_offset + size]
        self._buffer[buffer_offset : buffer_offset + len(piece)] = piece
        return len(piece)

    def write(self, file: FileHandle, size: int, file_offset: int, buffer_offset: int) -> int:
        """From the buffer into the file, which becomes longer where needed."""
        if not file.writable:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), file.target.name)
        with _growing:
            file.state.extend(bytes(max(0, file_offset + size - len(file.state))))
            file.state[file_offset : file_offset + size] = self._buffer[buffer_offset : buffer_offset + size]
        return size

    def flush(self, file: FileHandle, data_only: bool) -> None:
        """Memory is all the storage there is."""


@hookimpl
def gdsfw_io(files: list[FileHandle], buffer: Buffer) -> IOPath:
    """One worker's way to its files."""
    assert buffer.host_view is not None
    return IOPath("copy", files, python=_Copy(buffer.host_view))


@hookimpl
def gdsfw_transport() -> Transport:
    """The bytes never left the host's memory."""
    return Transport("host", "warm", evidence=("files are in this process's memory",))
