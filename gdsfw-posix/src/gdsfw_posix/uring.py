"""The io_uring path of the engine, and `auto`, which takes it where there is a depth to keep."""

from __future__ import annotations

import ctypes
import errno
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gdsfw import memlock
from gdsfw.backend import IOPath
from gdsfw.engine import native, native_uring
from gdsfw.engine.native import UringOptions
from gdsfw.errors import UnavailableError

from gdsfw_posix.options import PosixOptions
from gdsfw_posix.psync import descriptor, psync_path

if TYPE_CHECKING:
    from gdsfw.backend import Buffer, FileHandle, Request, Worker

NAME = "io_uring"


class UringPath(IOPath):
    """io_uring, with what it was set up with for the result.

    Args:
        setup: which of the kernel's means are in use.
    """

    setup: dict[str, Any]


def auto_path(worker: Worker, files: Sequence[FileHandle], buffer: Buffer, request: Request) -> IOPath:
    """io_uring for a depth above 1 where the kernel allows it, else psync, with a note that says why."""
    if request.iodepth == 1:
        path = psync_path(files, buffer)
        given = _options(worker).given
        if given:
            path.notes += (f"io_path auto: psync at iodepth 1, so {', '.join(given)} has no effect",)
        return path
    try:
        return uring_path(worker, files, buffer, request)
    except UnavailableError as refused:
        path = psync_path(files, buffer)
        path.notes += (f"io_path auto: psync and iodepth 1, because {refused.message}; {refused.hint}",)
        return path


def uring_path(worker: Worker, files: Sequence[FileHandle], buffer: Buffer, request: Request) -> UringPath:
    """io_uring at any depth.

    Raises:
        UnavailableError: there is no engine, or the kernel refuses; with the cause and what to do.
    """
    usable, reason = native.available()
    if not usable:
        raise UnavailableError(f"io_uring needs the C engine: {reason}", hint="use io_path: psync")
    options = _options(worker)
    _check_iopoll(options, files)
    descriptors = [descriptor(file) for file in files]
    values = [ctypes.addressof(item) for item in descriptors]
    chosen, notes = _registered(worker, options, buffer, values, request)
    path = UringPath(
        NAME,
        files,
        native=native_uring.uring_table(chosen),
        file_values=values,
        iodepth=request.iodepth,
        notes=notes,
        keep=[descriptors, chosen],
    )
    path.setup = {key: bool(getattr(chosen, key)) for key in ("fixed_buffers", "fixed_files", "sqpoll", "iopoll")}
    if options.iopoll:
        _try_polling(path, buffer, request)
    return path


def _options(worker: Worker) -> PosixOptions:
    return worker.options if isinstance(worker.options, PosixOptions) else PosixOptions()


def _registered(
    worker: Worker, options: PosixOptions, buffer: Buffer, values: Sequence[int], request: Request
) -> tuple[UringOptions, list[str]]:
    """Options of a queue that the kernel opens, and what had to be left out."""
    once = request.register_buffers == "once"
    limit, needed = memlock.limit(), worker.job.numjobs * buffer.nbytes
    within = limit is None or needed <= limit  # the plan has said so where it is not
    files = once if options.fixed_files is None else options.fixed_files
    chosen = UringOptions(
        fixed_buffers=once and within,
        fixed_files=files,
        sqpoll=options.sqpoll,
        sqpoll_idle_ms=options.sqpoll_idle_ms,
        iopoll=options.iopoll,
    )
    notes: list[str] = []
    # Each round leaves out one kind of registration at most, so this ends.
    while refusal := native_uring.try_uring(chosen, buffer, values, request.iodepth):
        kind = {native_uring.BUFFERS: "fixed_buffers", native_uring.FILES: "fixed_files"}.get(refusal.step)
        if kind is None or _insists(worker, options, kind, request):
            raise UnavailableError(refusal.message, hint=refusal.hint)
        setattr(chosen, kind, 0)
        what = "the buffer" if kind == "fixed_buffers" else "the files"
        notes.append(f"{what} went unregistered: {refusal.message}; {refusal.hint}")
    return chosen, notes


def _insists(worker: Worker, options: PosixOptions, kind: str, request: Request) -> bool:
    """Whether the job itself asks for this registration; what is only the default may be left out."""
    if kind == "fixed_files" and options.fixed_files is not None:
        return options.fixed_files
    return request.io_path == NAME and "register_buffers" in worker.job.model_fields_set


def _check_iopoll(options: PosixOptions, files: Sequence[FileHandle]) -> None:
    if not options.iopoll:
        return
    for file in files:
        if not file.direct:
            raise UnavailableError(
                f"iopoll needs direct I/O, which {file.target.name} does not have: {file.direct_reason}",
                hint="set direct: true on a file system that has it, or leave iopoll off",
            )


def _try_polling(path: UringPath, buffer: Buffer, request: Request) -> None:
    """Only I/O shows whether a device can be polled: one aligned read, or nothing where the file is too short."""
    from gdsfw.engine.native_table import IO_FN
    from gdsfw.engine.table_io import table_io

    file, (_, length) = path.files[0], request.ranges[0]
    size = max(file.alignment.offset, 1)
    if size > min(length, buffer.nbytes) or not path.native:
        return
    table = native_uring.uring_table(path.keep[1])
    table.read = IO_FN()  # so that the read goes through the queue
    calls: Any = table_io(table, {id(file): path.file_values[0]}, buffer)
    try:
        calls.read(file, size, 0, 0)
    except OSError as error:
        if error.errno != errno.EOPNOTSUPP:
            raise
        raise UnavailableError(
            f"iopoll: the device or file system of {file.target.name} cannot be polled",
            hint="NVMe needs the module parameter nvme.poll_queues; leave iopoll off elsewhere",
        ) from None
    finally:
        calls.close()
