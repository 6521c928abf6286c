"""The backend under test, driven with the hooks in the order in which a job calls them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gdsfw.backend import Buffer, FileHandle, IOPath, PythonIO, Request, Target, Worker
from gdsfw.engine.spec import BlockSizes, Loop, LoopFile, LoopSpec, Verify
from gdsfw.plugins import PluginManager
from gdsfw.workload.model import Job

if TYPE_CHECKING:
    from gdsfw.backend import BackendInfo
    from gdsfw.job_hooks import JobHooks

FILE_ID, PATTERN_SEED = 11, 13
PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass
class Rig:
    """One worker of one job, ready for I/O.

    Args:
        io: the path as read and write calls.
    """

    hooks: JobHooks
    worker: Worker
    files: Sequence[FileHandle]
    buffer: Buffer
    path: IOPath
    io: PythonIO

    @property
    def file(self) -> FileHandle:
        """The first file."""
        return self.files[0]

    def put(self, offset: int, data: bytes) -> None:
        """Put bytes into the buffer, wherever it is."""
        self._copy(offset, memoryview(bytearray(data)), "from_host")

    def get(self, offset: int, size: int) -> bytes:
        """Bytes that are in the buffer."""
        data = bytearray(size)
        self._copy(offset, memoryview(data), "to_host")
        return bytes(data)

    def write(self, file_offset: int, data: bytes, buffer_offset: int = 0) -> None:
        """Write all of `data`, going on after short counts as the loops do."""
        self.put(buffer_offset, data)
        done = 0
        while done < len(data):
            moved = self.io.write(self.file, len(data) - done, file_offset + done, buffer_offset + done)
            assert 0 < moved <= len(data) - done, f"write of {len(data) - done} bytes returned {moved}"
            done += moved

    def read(self, file_offset: int, size: int, buffer_offset: int = 0) -> bytes:
        """Read `size` bytes into a buffer that held something else; shorter at the end of the file."""
        self.put(buffer_offset, b"\xa5" * size)
        done = 0
        while done < size:
            moved = self.io.read(self.file, size - done, file_offset + done, buffer_offset + done)
            assert 0 <= moved <= size - done, f"read of {size - done} bytes returned {moved}"
            if moved == 0:
                break
            done += moved
        return self.get(buffer_offset, done)

    def _copy(self, offset: int, view: memoryview, direction: str) -> None:
        self.hooks.gdsfw_copy(
            worker=self.worker, buffer=self.buffer, offset=offset, host_view=view, direction=direction
        )


class Subject:
    """The backend under test.

    Args:
        name: its name.
        directory: folder for files; names of a backend with names of its own are made from it too.
        module: the plugin, when it is not installed.
        options: its options.
    """

    def __init__(
        self, name: str, *, directory: Path, module: Any = None, options: Mapping[str, Any] | None = None
    ) -> None:
        self.name = name
        self.directory = directory
        self.plugins = PluginManager()
        if module is None:
            self.plugins = PluginManager.installed({"GDSFW_PLUGINS": name})
        else:
            self.plugins.register(module, name)
        self._options = dict(options or {})

    @property
    def info(self) -> BackendInfo:
        """What the backend says of itself."""
        return self.plugins.backend(self.name)

    def path_names(self) -> list[str]:
        """Every way it can move bytes, `auto` aside."""
        return [path.name for path in self.info.io_paths if path.name != "auto"]

    def target(self, name: str, nbytes: int, *, create: bool = False) -> Target:
        """A target in the test's folder."""
        return Target(str(self.directory / name), FILE_ID, nbytes, create=create, job="conformance")

    @contextmanager
    def rig(
        self,
        *,
        io_path: str = "auto",
        name: str = "file",
        nbytes: int = 1 << 20,
        block: int = 65536,
        iodepth: int = 1,
        rw: Literal["read", "write", "readwrite"] = "readwrite",
        create: bool = True,
        memory: str | None = None,
        worker: int = 0,
    ) -> Iterator[Rig]:
        """Everything a job opens, in its order, undone in reverse.

        Args:
            nbytes: of the file; block: largest I/O. worker: index of the worker.
        """
        hooks = self.plugins.job_hooks(self.name)
        options = self.plugins.validate_options(self.name, self._options)
        job = Job(name="conformance", backend=self.name, io_path=io_path, rw="randrw" if rw == "readwrite" else rw)
        stride = -(-block // PAGE) * PAGE
        request = Request(io_path, rw, block, 1, [(0, nbytes)], iodepth=iodepth)
        with ExitStack() as undo:
            session = hooks.gdsfw_open(options=options)
            undo.callback(hooks.gdsfw_close, session=session)
            mode = "r" if rw == "read" else "rw"
            target = self.target(name, nbytes, create=create and mode == "rw")
            file = hooks.gdsfw_open_file(session=session, target=target, mode=mode)
            undo.callback(hooks.gdsfw_close_file, session=session, file=file)
            me = Worker(job, worker, options=options, session=session)
            me.state = hooks.gdsfw_worker_start(session=session, worker=me)
            undo.callback(hooks.gdsfw_worker_stop, worker=me)
            kind = memory or self.info.memory[0]
            size = iodepth * stride
            buffer = hooks.gdsfw_alloc(worker=me, nbytes=size, memory=kind, alignment=PAGE)
            undo.callback(hooks.gdsfw_free, worker=me, buffer=buffer)
            hooks.gdsfw_register_buffer(worker=me, buffer=buffer)
            undo.callback(hooks.gdsfw_deregister_buffer, worker=me, buffer=buffer)
            hooks.gdsfw_register_file(worker=me, file=file, request=request)
            undo.callback(hooks.gdsfw_deregister_file, worker=me, file=file)
            path = hooks.gdsfw_io(worker=me, files=[file], buffer=buffer, request=request)
            undo.callback(path.close)
            yield Rig(hooks, me, [file], buffer, path, path.as_python(buffer))


def loop(rig: Rig, *, native: bool, nbytes: int, block: int, rw: str, iodepth: int = 1, **changes: Any) -> Loop:
    """A loop over the rig's file with the verification pattern: random order, every block once."""
    from gdsfw.engine.native import NativeLoop
    from gdsfw.engine.python_loop import PythonLoop

    spec = LoopSpec(
        rw=rw,  # type: ignore[arg-type]
        random=True,
        read_blocks=BlockSizes(((block, 1),)),
        write_blocks=BlockSizes(((block, 1),)),
        block_align=0,
        files=(LoopFile(FILE_ID, 0, nbytes, PATTERN_SEED),),
        seed=3,
        iodepth=iodepth,
        batch_submit=rig.path.iodepth_batch or 1,
        batch_complete=rig.path.iodepth_batch or 1,
        slot_stride=-(-block // PAGE) * PAGE,
        write_fill="pattern",
        verify=Verify(),
        **changes,
    )
    return (NativeLoop if native else PythonLoop)(spec, rig.path, rig.buffer)
