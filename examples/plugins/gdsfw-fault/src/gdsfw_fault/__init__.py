"""A gdsfw plugin that makes chosen calls of a backend fail, take longer or move less.

It wraps the hooks of whatever backend the job has. A hook that sets something up fails before the backend is asked; one
that undoes something fails after the backend has done it, so that nothing is left behind.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from gdsfw import hookimpl
from gdsfw.backend import Buffer, FileHandle, IOPath, Target, Transport, Worker, WrappedPath

from gdsfw_fault import calls
from gdsfw_fault.jobs import MAIN, Faulty, FaultyJob
from gdsfw_fault.options import PATH_CALLS, FaultOptions

if TYPE_CHECKING:
    from gdsfw.results.model import JobResult
    from gdsfw.workload.model import Job

__version__ = "0.1.0"
NAME = "fault"
_faulty = Faulty(NAME)


@hookimpl
def gdsfw_options() -> type[FaultOptions]:
    """What `plugins: {fault: {...}}` may say."""
    return FaultOptions


@hookimpl
def gdsfw_job_started(job: Job) -> None:
    """Begin to count where the job asks for faults."""
    _faulty.start(job)


@hookimpl
def gdsfw_job_finished(job: Job, result: JobResult) -> None:
    """The result says what was done to the job, and at which calls."""
    found = _faulty.finish(job)
    if found is not None:
        result.notes.extend(found.notes())


def _on_main(found: FaultyJob | None, hook: str) -> None:
    if found is not None:
        found.script(MAIN).strike(hook)


def _on_worker(worker: Worker, hook: str) -> None:
    found = _faulty.of(worker.job)
    if found is not None:
        found.script(worker.index).strike(hook)


# ---- what sets something up ----


@hookimpl(wrapper=True)
def gdsfw_open() -> Generator[None, Any, Any]:
    """Once a job."""
    found = _faulty.opening()
    _on_main(found, "open")
    session = yield
    if found is not None:
        found.session = session
    return session


@hookimpl(wrapper=True)
def gdsfw_open_file(target: Target) -> Generator[None, FileHandle, FileHandle]:
    """Counted over the files of all workers."""
    _on_main(_faulty.named(target.job), "open_file")
    return (yield)


@hookimpl(wrapper=True)
def gdsfw_worker_start(worker: Worker) -> Generator[None, Any, Any]:
    """Once a worker, like most that follow."""
    _on_worker(worker, "worker_start")
    return (yield)


@hookimpl(wrapper=True)
def gdsfw_alloc(worker: Worker) -> Generator[None, Buffer, Buffer]:
    """The buffer."""
    _on_worker(worker, "alloc")
    return (yield)


@hookimpl(wrapper=True)
def gdsfw_register_buffer(worker: Worker) -> Generator[None, None, None]:
    """Only with `register_buffers: once`."""
    _on_worker(worker, "register_buffer")
    return (yield)


@hookimpl(wrapper=True)
def gdsfw_register_file(worker: Worker) -> Generator[None, None, None]:
    """Each file, by the worker that registers it."""
    _on_worker(worker, "register_file")
    return (yield)


@hookimpl(wrapper=True)
def gdsfw_io(worker: Worker, buffer: Buffer) -> Generator[None, IOPath, IOPath]:
    """The data plane; it stays as it is, native paths included, unless a rule is about its calls."""
    _on_worker(worker, "io")
    path = yield
    found = _faulty.of(worker.job)
    if found is None or not any(rule.on in PATH_CALLS for rule in found.options.rules):
        return path
    script = found.script(worker.index)
    return WrappedPath(path, buffer, NAME, lambda inner: calls.faulty(inner, script))


@hookimpl(wrapper=True)
def gdsfw_transport(worker: Worker) -> Generator[None, Any, Transport | Any]:
    """Called once before and once after the measured part."""
    _on_worker(worker, "transport")
    return (yield)


# ---- what undoes it ----


@hookimpl(wrapper=True)
def gdsfw_close(session: Any) -> Generator[None, None, None]:
    """Closed, and yet it fails."""
    found = _faulty.closing(session)
    yield
    _on_main(found, "close")


@hookimpl(wrapper=True)
def gdsfw_close_file(file: FileHandle) -> Generator[None, None, None]:
    """Closed, and yet it fails."""
    yield
    _on_main(_faulty.named(file.target.job), "close_file")


@hookimpl(wrapper=True)
def gdsfw_worker_stop(worker: Worker) -> Generator[None, None, None]:
    """Stopped, and yet it fails."""
    yield
    _on_worker(worker, "worker_stop")


@hookimpl(wrapper=True)
def gdsfw_free(worker: Worker) -> Generator[None, None, None]:
    """Freed, and yet it fails."""
    yield
    _on_worker(worker, "free")


@hookimpl(wrapper=True)
def gdsfw_deregister_buffer(worker: Worker) -> Generator[None, None, None]:
    """Undone, and yet it fails."""
    yield
    _on_worker(worker, "deregister_buffer")


@hookimpl(wrapper=True)
def gdsfw_deregister_file(worker: Worker) -> Generator[None, None, None]:
    """Undone, and yet it fails."""
    yield
    _on_worker(worker, "deregister_file")
