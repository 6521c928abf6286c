"""The backend under test, driven with the hooks in the order in which a job calls them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from gdsfw.backend import Buffer, FileHandle, IOPath, PythonIO, Request, Target, Worker
from gdsfw.engine import native
from gdsfw.plugins import PluginManager
from gdsfw.testing import capabilities
from gdsfw.workload.model import Job

if TYPE_CHECKING:
    from gdsfw.backend import BackendInfo
    from gdsfw.job_hooks import JobHooks
    from gdsfw.results.model import JobResult

Directions = Literal["read", "write", "readwrite"]

FILE_ID = 11
PAGE = os.sysconf("SC_PAGE_SIZE")
#: What a buffer holds before a read: no read may leave it, and none may change what lies around.
FILLER = 0xA5


@dataclass
class Rig:
    """One worker of one job, ready for I/O.

    Args:
        calls: the path as read and write calls, by the loop that would use them: `native` for its table, `python` for
            its Python object. At least one is there.
    """

    hooks: JobHooks
    worker: Worker
    files: Sequence[FileHandle]
    buffer: Buffer
    path: IOPath
    request: Request
    calls: Mapping[str, PythonIO]

    @property
    def file(self) -> FileHandle:
        """The first file."""
        return self.files[0]

    @property
    def io(self) -> Any:
        """The calls of the fastest way that the path has."""
        return next(iter(self.calls.values()))

    def put(self, offset: int, data: bytes) -> None:
        """Put bytes into the buffer, wherever it is."""
        self._copy(offset, memoryview(bytearray(data)), "from_host")

    def get(self, offset: int, size: int) -> bytes:
        """Bytes that are in the buffer."""
        data = bytearray(size)
        self._copy(offset, memoryview(data), "to_host")
        return bytes(data)

    def clear(self) -> None:
        """Fill the buffer with what no test data is."""
        self.put(0, bytes([FILLER]) * self.buffer.nbytes)

    def write(self, file_offset: int, data: bytes, *, at: int = 0, file: int = 0, io: Any = None) -> None:
        """Write all of `data` from buffer offset `at`, going on after short counts as the loops do."""
        self.put(at, data)
        io = io or self.io
        done = 0
        while done < len(data):
            left = len(data) - done
            moved = io.write(self.files[file], _most(io, left), file_offset + done, at + done)
            assert 0 < moved <= left, f"a write of {left} bytes said that it moved {moved}"
            done += moved

    def read(self, file_offset: int, size: int, *, at: int = 0, file: int = 0, io: Any = None) -> bytes:
        """Read `size` bytes to buffer offset `at`, which held something else; fewer at the end of the file."""
        self.put(at, bytes([FILLER]) * size)
        io = io or self.io
        done = 0
        while done < size:
            left = size - done
            moved = io.read(self.files[file], _most(io, left), file_offset + done, at + done)
            assert 0 <= moved <= left, f"a read of {left} bytes said that it moved {moved}"
            if moved == 0:
                break
            done += moved
        return self.get(at, done)

    def _copy(self, offset: int, view: memoryview, direction: str) -> None:
        self.hooks.gdsfw_copy(
            worker=self.worker, buffer=self.buffer, offset=offset, host_view=view, direction=direction
        )


@dataclass
class OpenJob:
    """A session with its open files, as the main thread holds them; workers may be on any thread."""

    subject: Subject
    hooks: JobHooks
    job: Job
    options: Any
    session: Any
    files: Sequence[FileHandle]
    request: Request

    @contextmanager
    def worker(self, index: int = 0, *, memory: str | None = None, registers: bool = True) -> Iterator[Rig]:
        """One worker with its buffer and path, undone in reverse.

        Args:
            registers: this worker registers the files, which one worker of a job does.
        """
        hooks, request = self.hooks, self.request
        stride = -(-request.max_block_size // PAGE) * PAGE
        with ExitStack() as undo:
            me = Worker(self.job, index, options=self.options, session=self.session, device=self.subject.device)
            me.state = hooks.gdsfw_worker_start(session=self.session, worker=me)
            undo.callback(hooks.gdsfw_worker_stop, worker=me)
            kind = memory or self.subject.info.memory[0]
            nbytes = request.iodepth * stride
            buffer = hooks.gdsfw_alloc(worker=me, nbytes=nbytes, memory=kind, alignment=PAGE)
            undo.callback(hooks.gdsfw_free, worker=me, buffer=buffer)
            hooks.gdsfw_register_buffer(worker=me, buffer=buffer)
            undo.callback(hooks.gdsfw_deregister_buffer, worker=me, buffer=buffer)
            for file in self.files if registers else ():
                hooks.gdsfw_register_file(worker=me, file=file, request=request)
                undo.callback(hooks.gdsfw_deregister_file, worker=me, file=file)
            path = hooks.gdsfw_io(worker=me, files=list(self.files), buffer=buffer, request=request)
            undo.callback(path.close)
            calls = _calls(path, buffer)
            for io in calls.values():
                if io is not path.python:
                    undo.callback(getattr(io, "close", lambda: None))
            yield Rig(hooks, me, self.files, buffer, path, request, calls)


def _most(io: Any, size: int) -> int:
    """Bytes of the next call, as the loops cut them."""
    return min(size, getattr(io, "max_transfer", 0) or size)


def _calls(path: IOPath, buffer: Buffer) -> dict[str, PythonIO]:
    """Every way to call a path, the one that a run would take first."""
    found: dict[str, PythonIO] = {}
    if path.native is not None and native.available()[0]:
        values = dict(zip(map(id, path.files), path.file_values, strict=True))
        found["native"] = native.table_io(path.native, values, buffer, path.iodepth)
    if path.python is not None:
        found["python"] = path.python
    assert found, f"path {path.name} has no Python object, and its table cannot be used: {native.available()[1]}"
    return found


class Subject:
    """The backend under test.

    Args:
        name: its name.
        directory: folder for files; names of a backend with names of its own are made from it too.
        module: the plugin, when it is not installed.
        options: its options.
        io_paths: the paths to test, when it has some that this machine cannot have.
        device: ordinal of the device that workers are put on.
        cycles: jobs over which nothing may leak; fewer only where opening a device takes long.
    """

    def __init__(
        self,
        name: str,
        *,
        directory: Path,
        module: Any = None,
        options: Mapping[str, Any] | None = None,
        io_paths: Sequence[str] | None = None,
        device: int | None = None,
        cycles: int = 500,
    ) -> None:
        self.name = name
        self.cycles = cycles
        self.directory = directory
        self.device = device
        self.plugins = PluginManager()
        if module is None:
            self.plugins = PluginManager.installed({"GDSFW_PLUGINS": name})
        else:
            self.plugins.register(module, name)
        self._options = dict(options or {})
        self._io_paths = io_paths

    @property
    def info(self) -> BackendInfo:
        """What the backend says of itself."""
        return self.plugins.backend(self.name)

    @property
    def hooks(self) -> JobHooks:
        """Its hooks, as a job calls them."""
        return self.plugins.job_hooks(self.name)

    @property
    def options(self) -> Any:
        """Its options as gdsfw_open gets them."""
        return self.plugins.validate_options(self.name, self._options)

    def need(self, *words: str) -> None:
        """Skip the test unless the backend declares these capabilities."""
        for word in words:
            capabilities.need(self.info, word)

    def paths(self, rw: Directions = "readwrite", *, queued: bool = False) -> list[str]:
        """Every way it can move bytes in these directions, `auto` aside; the test is skipped when there is none.

        Args:
            queued: only paths that keep more than one request in flight.
        """
        names = [
            path.name
            for path in self.info.io_paths
            if (path.name != "auto" or len(self.info.io_paths) == 1)
            and (path.reads or rw == "write")
            and (path.writes or rw == "read")
            and (path.max_iodepth != 1 or not queued)
            and (self._io_paths is None or path.name in self._io_paths)
        ]
        if not names:
            what = "max_iodepth above 1" if queued else f"rw: {rw}"
            pytest.skip(f"backend {self.name} declares no io_path with {what}")
        return names

    def target(self, name: str, nbytes: int, *, create: bool = False) -> Target:
        """A target in the test's folder."""
        return Target(str(self.directory / name), FILE_ID, nbytes, create=create, job="conformance")

    @contextmanager
    def job(
        self,
        *,
        io_path: str = "auto",
        names: Sequence[str] = ("file",),
        nbytes: int = 1 << 20,
        block: int = 65536,
        iodepth: int = 1,
        rw: Directions = "readwrite",
        create: bool = True,
    ) -> Iterator[OpenJob]:
        """What the main thread opens for a job, undone in reverse.

        Args:
            nbytes: of each file. block: largest I/O.
        """
        hooks, options = self.hooks, self.options
        access = {"readwrite": "randrw", "read": "randread", "write": "randwrite"}[rw]
        job = Job(name="conformance", backend=self.name, io_path=io_path, rw=access)
        request = Request(io_path, rw, block, 1, [(0, nbytes)] * len(names), iodepth=iodepth)
        with ExitStack() as undo:
            session = hooks.gdsfw_open(options=options)
            undo.callback(hooks.gdsfw_close, session=session)
            mode = "r" if rw == "read" else "rw"
            files = []
            for name in names:
                target = self.target(name, nbytes, create=create and mode == "rw")
                file = hooks.gdsfw_open_file(session=session, target=target, mode=mode)
                undo.callback(hooks.gdsfw_close_file, session=session, file=file)
                files.append(file)
            yield OpenJob(self, hooks, job, options, session, files, request)

    @contextmanager
    def rig(self, *, memory: str | None = None, worker: int = 0, **how: Any) -> Iterator[Rig]:
        """A job with one worker; `how` as in `job`."""
        with self.job(**how) as job, job.worker(worker, memory=memory) as rig:
            yield rig

    def run(self, *jobs: Mapping[str, Any], **defaults: Any) -> list[JobResult]:
        """Run a workload with gdsfw's own runner, in this process."""
        from gdsfw.engine.runner import run
        from gdsfw.workload.loader import load_data

        document = {
            "version": 1,
            "defaults": {
                "backend": self.name,
                "directory": str(self.directory),
                "backend_options": {self.name: self._options},
                **({} if self.device is None else {"devices": [self.device]}),
                **defaults,
            },
            "jobs": list(jobs),
        }
        return run(load_data(document), plugins=self.plugins).jobs
