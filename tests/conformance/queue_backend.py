"""A sound backend with a queue in Python, to break: files in memory, requests that complete last come, first served."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gdsfw import hookimpl, host_memory
from gdsfw.backend import BackendInfo, Buffer, Completion, FileHandle, IOPath, IOPathInfo, QueueRequest, Request, Target
from gdsfw.errors import Domain, UnavailableError

FILES: dict[str, bytearray] = {}


@hookimpl
def gdsfw_backend() -> BackendInfo:
    return BackendInfo(
        name="queue",
        title="Files in memory behind a queue",
        version="1",
        io_paths=(IOPathInfo("queue", native=False, max_iodepth=0),),
        capabilities=frozenset({"data"}),
        namespace="own",
    )


@hookimpl
def gdsfw_open_file(target: Target, mode: str) -> FileHandle:
    if target.name not in FILES and not (mode == "rw" and target.create):
        raise UnavailableError(f"there is no {target.name}")
    contents = FILES.setdefault(target.name, bytearray())
    return FileHandle(replace(target, nbytes=len(contents)), writable=mode == "rw", state=contents)


@hookimpl
def gdsfw_alloc(nbytes: int, memory: str, alignment: int) -> Buffer:
    return host_memory.allocate(nbytes, memory, alignment)


@hookimpl
def gdsfw_free(buffer: Buffer) -> None:
    host_memory.free(buffer)


class Queue:
    def __init__(self, view: memoryview, depth: int) -> None:
        self._view = view
        self._depth = depth
        self._waiting: list[QueueRequest] = []

    def read(self, file: FileHandle, size: int, file_offset: int, buffer_offset: int) -> int:
        piece = file.state[file_offset : file_offset + size]
        self._view[buffer_offset : buffer_offset + len(piece)] = piece
        return len(piece)

    def write(self, file: FileHandle, size: int, file_offset: int, buffer_offset: int) -> int:
        if not file.writable:
            raise OSError(9, "Bad file descriptor")
        file.state.extend(bytes(max(0, file_offset + size - len(file.state))))
        file.state[file_offset : file_offset + size] = self._view[buffer_offset : buffer_offset + size]
        return size

    def submit(self, requests: Sequence[QueueRequest]) -> int:
        taken = min(len(requests), self._depth - len(self._waiting))
        self._waiting.extend(requests[:taken])
        return taken

    def reap(self, at_least: int, timeout_ns: int) -> list[Completion]:
        done = [self._do(request) for request in reversed(self._waiting)]
        self._waiting.clear()
        return done

    def _do(self, request: QueueRequest) -> Completion:
        move = self.read if request.direction == "read" else self.write
        try:
            moved = move(request.file, request.size, request.file_offset, request.buffer_offset)
        except OSError as error:
            return Completion(request.cookie, 0, Domain.ERRNO, error.errno or 5)
        return Completion(request.cookie, moved)


@hookimpl
def gdsfw_io(files: Sequence[FileHandle], buffer: Buffer, request: Request) -> IOPath:
    assert buffer.host_view is not None
    return IOPath("queue", files, python=Queue(buffer.host_view, request.iodepth), iodepth=request.iodepth)
