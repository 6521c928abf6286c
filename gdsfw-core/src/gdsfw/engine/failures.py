"""How a job ended: its exit code, and every error as one line with operation, file, offset, size and name."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from typing import TYPE_CHECKING

from gdsfw.engine.spec import EndedBy
from gdsfw.errors import BackendError, Domain, ExitCode, GdsfwError, worst
from gdsfw.results.model import ErrorResult, Status

if TYPE_CHECKING:
    from gdsfw.engine.job import JobRun
    from gdsfw.engine.spec import LoopError
    from gdsfw.engine.worker import WorkerThread
    from gdsfw.plugins import PluginManager
    from gdsfw.workload.model import Job

_STATUS: dict[ExitCode, Status] = {
    ExitCode.DONE: "done",
    ExitCode.FAILED: "failed",
    ExitCode.USAGE: "usage",
    ExitCode.UNAVAILABLE: "unavailable",
    ExitCode.REFUSED: "refused",
    ExitCode.INTERNAL: "internal",
    ExitCode.INTERRUPTED: "interrupted",
}


def status_of(code: ExitCode) -> Status:
    """The result's word for an exit code."""
    return _STATUS[code]


def exit_code_of(job: JobRun, interrupted: bool) -> ExitCode:
    """The exit code of a job: the worst of what its workers met."""
    codes: list[int] = [ExitCode.INTERRUPTED] if interrupted else []
    if job.failure is not None:
        codes.append(_code(job.failure.error, job.failure.measuring))
    for worker in job.workers:
        if worker.outcome.error is not None:
            codes.append(_code(worker.outcome.error, measuring=worker.outcome.result is not None))
        result = worker.outcome.result
        if result is None:
            continue
        if result.ended_by is EndedBy.ERROR or (result.error_count and not job.plan.job.continue_on_error):
            codes.append(ExitCode.FAILED)
        verify = result.verify
        if verify is not None and (verify.bad_blocks or verify.checked_bytes != verify.expected_bytes):
            codes.append(ExitCode.FAILED)
    return worst(codes)


def error_results(job: JobRun, plugins: PluginManager) -> list[ErrorResult]:
    """Every error of a job, the job's own first."""
    found = [_own(job, job.failure.error, plugins)] if job.failure is not None else []
    for worker in job.workers:
        if worker.outcome.error is not None:
            own = _own(job, worker.outcome.error, plugins)
            found.append(replace(own, message=f"worker {worker.worker_plan.index}: {own.message}"))
        for failed in worker.outcome.result.errors if worker.outcome.result else ():
            found.append(_io(job, worker, failed, plugins))
        found += _incomplete(job, worker)
    return found


def describe(job: Job) -> object:
    """Block sizes for people: one number where there is one, else one for each direction, else words."""
    sizes: dict[str, object] = {}
    for side in job.directions:
        blocks = job.blocks(side)
        single = blocks.smallest == blocks.largest
        sizes[side] = blocks.largest if single else f"{blocks.smallest}-{blocks.largest}"
    values = list(sizes.values())
    return values[0] if all(value == values[0] for value in values) else sizes


def _code(error: BaseException, measuring: bool) -> int:
    if isinstance(error, (BackendError, OSError)):
        return ExitCode.FAILED if measuring else ExitCode.UNAVAILABLE
    return error.exit_code if isinstance(error, GdsfwError) else ExitCode.INTERNAL


def _own(job: JobRun, error: BaseException, plugins: PluginManager) -> ErrorResult:
    """An error that a hook raised."""
    if isinstance(error, BackendError):
        info = plugins.explain_error(job.plan.backend.name, error.domain, error.code)
        about = f" ({error.detail})" if error.detail else ""
        return ErrorResult(
            message=f"{error.operation}{about}: {info.name} ({info.text})",
            operation=error.operation,
            domain=error.domain.name.lower(),
            code=error.code,
            name=info.name,
            hint=_hint(info.cause, info.fix),
        )
    if isinstance(error, GdsfwError):
        return ErrorResult(message=error.message, hint=error.hint)
    if isinstance(error, OSError) and error.errno is not None:
        info = plugins.explain_error(job.plan.backend.name, Domain.ERRNO, error.errno)
        about = f"{error.filename}: " if error.filename else ""
        own_words = error.strerror and error.strerror != os.strerror(error.errno)
        return ErrorResult(
            message=f"{about}{info.name} ({error.strerror if own_words else info.text})",
            domain="errno",
            code=error.errno,
            name=info.name,
            hint=_hint(info.cause, info.fix),
        )
    return ErrorResult(message=f"{type(error).__name__}: {error}")


def _io(job: JobRun, worker: WorkerThread, failed: LoopError, plugins: PluginManager) -> ErrorResult:
    """A failed I/O."""
    file = worker.files[failed.file_index]
    info = plugins.explain_error(job.plan.backend.name, failed.domain, failed.code)
    message = (
        f"{failed.operation} of {failed.size} bytes at offset {failed.file_offset} of {file.plan.path}: "
        f"{info.name} ({info.text})"
    )
    hint = _hint(info.cause, info.fix)
    invalid = failed.domain is Domain.ERRNO and failed.code == errno.EINVAL
    if invalid and failed.operation == "write" and _takes_no_write(file.plan.path):
        hint = "hugetlbfs takes no write, only a mapping; io_path mapped of a GPU backend writes there"
    elif invalid and file.handle.direct:
        from gdsfw.storage.alignment import misalignment

        address = job.plan.job.buffer_offset
        wrong = misalignment(file.handle.alignment, size=failed.size, offset=failed.file_offset, address=address)
        message += f": {wrong}" if wrong else ""
    return ErrorResult(
        message=message,
        operation=failed.operation,
        file=file.plan.path,
        offset=failed.file_offset,
        bytes=failed.size,
        domain=failed.domain.name.lower(),
        code=failed.code,
        name=info.name,
        hint=hint,
    )


def _takes_no_write(path: str) -> bool:
    from gdsfw.storage.filesystems import mount_of

    mount = mount_of(path)
    return mount is not None and mount.filesystem == "hugetlbfs"


def _incomplete(job: JobRun, worker: WorkerThread) -> list[ErrorResult]:
    """Verification that did not look at everything it should have must not pass in silence."""
    result = worker.outcome.result
    if result is None or result.verify is None or result.verify.checked_bytes == result.verify.expected_bytes:
        return []
    return [
        ErrorResult(
            message=f"verification incomplete: {result.verify.checked_bytes} bytes checked of "
            f"{result.verify.expected_bytes}",
            operation="verify",
        )
    ]


def _hint(cause: str, fix: str) -> str | None:
    return "; ".join(part for part in (cause, fix) if part) or None
