"""gdsfw backend: files in this process's memory, by names of their own."""

import errno
import os

from gdsfw import hookimpl, host_memory
from gdsfw.backend import BackendInfo, FileHandle, IOPath, IOPathInfo, Target

FILES: dict[str, bytearray] = {}  # they live as long as the process


class RamIO:
    """The data plane: slices of memory."""

    def __init__(self, view):
        self.view = view

    def read(self, file, size, file_offset, buffer_offset):
        """Copy from the file into the buffer; short at the end of the file."""
        piece = memoryview(file.state)[file_offset : file_offset + size]
        self.view[buffer_offset : buffer_offset + len(piece)] = piece
        return len(piece)

    def write(self, file, size, file_offset, buffer_offset):
        """Copy from the buffer into the file, which grows as needed."""
        if not file.writable:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        missing = file_offset + size - len(file.state)
        if missing > 0:
            file.state.extend(bytes(missing))
        file.state[file_offset : file_offset + size] = self.view[buffer_offset : buffer_offset + size]
        return size

    def flush(self, file, data_only):
        """Memory needs no flush."""


@hookimpl
def gdsfw_backend():
    return BackendInfo(
        name="ramdisk",
        title="Files in this process's memory",
        version="0.1.0",
        io_paths=(IOPathInfo("memory", native=False),),
        capabilities=frozenset({"data", "flush", "sparse", "shared_files"}),
        namespace="own",
    )


@hookimpl
def gdsfw_open_file(target, mode):
    if target.name not in FILES:
        if mode == "r" or not target.create:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), target.name)
        FILES[target.name] = bytearray()
    data = FILES[target.name]
    actual = Target(target.name, target.file_id, len(data))
    return FileHandle(actual, writable=mode == "rw", state=data)


@hookimpl
def gdsfw_close_file():
    pass


@hookimpl
def gdsfw_alloc(nbytes, memory, alignment):
    return host_memory.allocate(nbytes, memory, alignment)


@hookimpl
def gdsfw_free(buffer):
    host_memory.free(buffer)


@hookimpl
def gdsfw_io(files, buffer):
    return IOPath("memory", files, python=RamIO(buffer.host_view))
