"""Every hook of gdsfw. A plugin module implements those it needs, marked with `gdsfw.hookimpl`.

One name means one thing in every hook:

    worker          the thread the call is for (gdsfw.backend.Worker)
    session         what gdsfw_open returned
    options         instance of the plugin's options model, or None
    file, files     open file(s) (FileHandle)
    target          a file before it is opened (Target)
    buffer          the worker's one buffer (Buffer)
    request         what the data plane will be asked for (Request)
    nbytes, offset, alignment   bytes

Main thread: backend, options, probe, devices, open, open_file, close_file, close, error, import, commands and the
observers. The worker's own thread: worker_start, alloc, register_*, io, sync, copy, transport, deregister_*, free,
worker_stop. None of them is called between a worker's first and last measured I/O. Failures are raised as
BackendError (a library's code), OSError, or any other GdsfwError with a message for the user.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    import typer
    from pydantic import BaseModel

    from gdsfw import backend as b
    from gdsfw.errors import Domain
    from gdsfw.host import Host
    from gdsfw.results.model import JobResult
    from gdsfw.workload.model import Job

PROJECT = "gdsfw"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)

#: A plugin is a backend if it implements the first of these, and must then implement the rest.
REQUIRED = ("gdsfw_backend", "gdsfw_alloc", "gdsfw_free", "gdsfw_io")


@hookspec(firstresult=True)
def gdsfw_backend() -> b.BackendInfo:
    """Describe the backend. Required; whenever plugins are loaded; opens no library."""


@hookspec(firstresult=True)
def gdsfw_options() -> type[BaseModel]:
    """Give the options model of a plugin that is no backend (`plugins: {<name>: ...}` in a workload)."""


@hookspec(firstresult=True)
def gdsfw_probe(options: Any, directory: Path, host: Host) -> list[b.Check]:
    """Say what works for files in `directory`, what not, why, and the fix; never raises. Default: nothing to say."""


@hookspec(firstresult=True)
def gdsfw_devices() -> list[b.Device]:
    """List the devices workers can be put on. Default: none."""


@hookspec(firstresult=True)
def gdsfw_open(options: Any) -> Any:
    """Open driver and library, once per job, and return the session. Default: an empty session."""


@hookspec(firstresult=True)
def gdsfw_close(session: Any) -> None:
    """Undo gdsfw_open; in every ending but that of a worker that hangs in a call. Default: nothing."""


@hookspec(firstresult=True)
def gdsfw_open_file(session: Any, target: b.Target, mode: str) -> b.FileHandle:
    """Open a target, `mode` r or rw. Default for namespace `files`: core's safe open; required for `own`."""


@hookspec(firstresult=True)
def gdsfw_close_file(session: Any, file: b.FileHandle) -> None:
    """Close what gdsfw_open_file opened. Default: core closes the descriptors."""


@hookspec(firstresult=True)
def gdsfw_worker_start(session: Any, worker: b.Worker) -> Any:
    """Enter the worker's thread (GPU context, stream) and return what becomes worker.state. Default: nothing."""


@hookspec(firstresult=True)
def gdsfw_worker_stop(worker: b.Worker) -> None:
    """Undo gdsfw_worker_start, in the same thread. Default: nothing."""


@hookspec(firstresult=True)
def gdsfw_alloc(worker: b.Worker, nbytes: int, memory: str, alignment: int) -> b.Buffer:
    """Allocate the worker's buffer of `memory` kind. Required; once per worker."""


@hookspec(firstresult=True)
def gdsfw_free(worker: b.Worker, buffer: b.Buffer) -> None:
    """Free what gdsfw_alloc gave. Required; once per worker, in every ending."""


@hookspec(firstresult=True)
def gdsfw_register_buffer(worker: b.Worker, buffer: b.Buffer) -> None:
    """Register the buffer (pinned for a device, io_uring fixed buffers). Default: nothing."""


@hookspec(firstresult=True)
def gdsfw_deregister_buffer(worker: b.Worker, buffer: b.Buffer) -> None:
    """Undo gdsfw_register_buffer. Default: nothing."""


@hookspec(firstresult=True)
def gdsfw_register_file(worker: b.Worker, file: b.FileHandle, request: b.Request) -> None:
    """Register one file with the library, for paths that need it. Default: nothing."""


@hookspec(firstresult=True)
def gdsfw_deregister_file(worker: b.Worker, file: b.FileHandle) -> None:
    """Undo gdsfw_register_file. Default: nothing."""


@hookspec(firstresult=True)
def gdsfw_io(worker: b.Worker, files: Sequence[b.FileHandle], buffer: b.Buffer, request: b.Request) -> b.IOPath:
    """Return the data plane for all files of this worker. Required; once per worker."""


@hookspec(firstresult=True)
def gdsfw_sync(worker: b.Worker, file: b.FileHandle, mode: str) -> None:
    """Outside the loop, wait for the device (`device`) or for storage (`fsync`, `fdatasync`). Default: os.fsync."""


@hookspec(firstresult=True)
def gdsfw_copy(worker: b.Worker, buffer: b.Buffer, offset: int, host_view: memoryview, direction: str) -> None:
    """Outside the loop, copy `to_host` or `from_host` at buffer `offset`. Default: through buffer.host_view."""


@hookspec(firstresult=True)
def gdsfw_transport(worker: b.Worker, path: b.IOPath, before: Any) -> Any:
    """With `before` None take a snapshot; else say which way the bytes took since (Transport). Default: unknown."""


@hookspec(firstresult=True)
def gdsfw_map(session: Any, file: b.FileHandle, device: int, writable: bool) -> b.Mapped:
    """Make the file's own pages memory of a device, for programs (gdsfw.open_session). Default: refused."""


@hookspec(firstresult=True)
def gdsfw_unmap(session: Any, mapped: b.Mapped) -> None:
    """Undo gdsfw_map. Default: nothing."""


@hookspec(firstresult=True)
def gdsfw_error(domain: Domain, code: int) -> b.ErrorInfo | None:
    """Explain an error code, or None to leave it to core, which knows errno."""


@hookspec(firstresult=True)
def gdsfw_import(dialect: str, options: Mapping[str, str]) -> Mapping[str, Any] | None:
    """Translate another tool's options (`fio`, `gdsio`) into workload keys, or None."""


@hookspec
def gdsfw_commands(app: typer.Typer) -> None:
    """Add commands to the command line."""


@hookspec
def gdsfw_job_started(job: Job) -> None:
    """Observe that a job begins; main thread."""


@hookspec
def gdsfw_job_finished(job: Job, result: JobResult) -> None:
    """Observe that a job ended, however it ended; main thread."""
