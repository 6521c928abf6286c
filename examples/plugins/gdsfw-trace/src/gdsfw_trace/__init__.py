"""A gdsfw plugin that writes what a job did as a trace for Perfetto: hook calls, and each I/O.

It wraps the hooks of whatever backend the job has. A hook's span ends when the hook returns or raises.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gdsfw import hookimpl
from gdsfw.backend import Buffer, FileHandle, IOPath, Target, Transport, Worker, WrappedPath

from gdsfw_trace import calls, document
from gdsfw_trace.jobs import MAIN, JobTrace, Traced
from gdsfw_trace.options import TraceOptions

if TYPE_CHECKING:
    from gdsfw.results.model import JobResult
    from gdsfw.workload.model import Job

__version__ = "0.1.0"
NAME = "trace"
_traced = Traced(NAME)
#: What tells the jobs of one run, which share files, from those of another. Jobs with options that a library reads once
#: run in child processes, which inherit it.
_RUN = "GDSFW_TRACE_RUN"


@hookimpl
def gdsfw_options() -> type[TraceOptions]:
    """What `plugins: {trace: {...}}` may say; asked for while a run is planned, and in no child process of it."""
    os.environ[_RUN] = f"{os.getpid()}.{time.monotonic_ns()}"
    return TraceOptions


@hookimpl
def gdsfw_job_started(job: Job) -> None:
    """Begin a trace where the job asks for one."""
    _traced.start(job)


@hookimpl
def gdsfw_job_finished(job: Job, result: JobResult) -> None:
    """Write it, however the job ended; the result says where it is and what was left out."""
    trace = _traced.finish(job)
    if trace is None or not trace.lanes:
        return
    trace.title = result.label
    spans = document.save(Path(trace.options.file).absolute(), trace, os.environ.get(_RUN, ""))
    result.notes.append(f"trace: {spans} spans in {trace.options.file}")
    if trace.dropped:
        most = trace.options.max_events
        result.notes.append(f"trace: cut: {trace.dropped} calls of the loop beyond max_events {most} are not in it")


def _around(trace: JobTrace | None, number: int, name: str, **args: Any) -> AbstractContextManager[Any]:
    return nullcontext() if trace is None else trace.lane(number).span("hook", name, **args)


def _on_main(trace: JobTrace | None, name: str, **args: Any) -> AbstractContextManager[Any]:
    return _around(trace, MAIN, name, **args)


def _on_worker(worker: Worker, name: str, **args: Any) -> AbstractContextManager[Any]:
    return _around(_traced.of(worker.job), worker.index + 1, name, **args)


@hookimpl(wrapper=True)
def gdsfw_open() -> Generator[None, Any, Any]:
    """Refuse a file of the user's here, before anything is done."""
    trace = _traced.opening()
    if trace is not None:
        document.check_place(Path(trace.options.file).absolute())
    with _on_main(trace, "open"):
        session = yield
    if trace is not None:
        trace.session = session
    return session


@hookimpl(wrapper=True)
def gdsfw_close(session: Any) -> Generator[None, None, None]:
    """The session's end."""
    with _on_main(_traced.closing(session), "close"):
        return (yield)


@hookimpl(wrapper=True)
def gdsfw_open_file(target: Target, mode: str) -> Generator[None, FileHandle, FileHandle]:
    """Each file, and how it was opened."""
    with _on_main(_traced.named(target.job), "open_file", file=target.name, mode=mode):
        return (yield)


@hookimpl(wrapper=True)
def gdsfw_close_file(file: FileHandle) -> Generator[None, None, None]:
    """Each file again."""
    with _on_main(_traced.named(file.target.job), "close_file", file=file.target.name):
        return (yield)


@hookimpl(wrapper=True)
def gdsfw_worker_start(worker: Worker) -> Generator[None, Any, Any]:
    """Context and stream, where there are such."""
    with _on_worker(worker, "worker_start", device=worker.device):
        return (yield)


@hookimpl(wrapper=True)
def gdsfw_worker_stop(worker: Worker) -> Generator[None, None, None]:
    """The worker's end."""
    with _on_worker(worker, "worker_stop"):
        return (yield)


@hookimpl(wrapper=True)
def gdsfw_alloc(worker: Worker, nbytes: int, memory: str) -> Generator[None, Buffer, Buffer]:
    """The worker's buffer."""
    with _on_worker(worker, "alloc", nbytes=nbytes, memory=memory):
        return (yield)


@hookimpl(wrapper=True)
def gdsfw_free(worker: Worker, buffer: Buffer) -> Generator[None, None, None]:
    """The buffer again."""
    with _on_worker(worker, "free", nbytes=buffer.nbytes):
        return (yield)


@hookimpl(wrapper=True)
def gdsfw_register_buffer(worker: Worker, buffer: Buffer) -> Generator[None, None, None]:
    """What registration costs is seen here."""
    with _on_worker(worker, "register_buffer", nbytes=buffer.nbytes):
        return (yield)


@hookimpl(wrapper=True)
def gdsfw_deregister_buffer(worker: Worker, buffer: Buffer) -> Generator[None, None, None]:
    """And what undoing it costs."""
    with _on_worker(worker, "deregister_buffer", nbytes=buffer.nbytes):
        return (yield)


@hookimpl(wrapper=True)
def gdsfw_register_file(worker: Worker, file: FileHandle) -> Generator[None, None, None]:
    """Each file, by the worker that registers it."""
    with _on_worker(worker, "register_file", file=file.target.name):
        return (yield)


@hookimpl(wrapper=True)
def gdsfw_deregister_file(worker: Worker, file: FileHandle) -> Generator[None, None, None]:
    """Each file again."""
    with _on_worker(worker, "deregister_file", file=file.target.name):
        return (yield)


@hookimpl(wrapper=True)
def gdsfw_io(worker: Worker, files: Sequence[FileHandle], buffer: Buffer) -> Generator[None, IOPath, IOPath]:
    """The data plane; its calls are traced too unless `io: false` leaves it as it is."""
    with _on_worker(worker, "io", files=len(files)):
        path = yield
    trace = _traced.of(worker.job)
    if trace is None or not trace.options.io:
        return path
    lane = trace.lane(worker.index + 1)
    return WrappedPath(path, buffer, NAME, lambda inner: calls.traced(inner, lane))


@hookimpl(wrapper=True)
def gdsfw_transport(worker: Worker, before: Any) -> Generator[None, Any, Transport | Any]:
    """The snapshot before, and the judgement after the measured part."""
    with _on_worker(worker, "transport", part="judgement" if before is not None else "snapshot"):
        return (yield)
