"""What the paths through a vendor's file library check before the first I/O: limits, alignment, a test read."""

from __future__ import annotations

import ctypes as c
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from gdsfw.errors import BackendError, Domain, UsageError
from gdsfw.workload.units import format_size

if TYPE_CHECKING:
    from gdsfw.backend import Buffer, FileHandle, Request, Worker
    from gdsfw.gpu.vendor import FileLibrary

#: What the libraries call aligned, in bytes.
LIBRARY_PAGE = 4096


class _Status(c.Structure):
    """struct gdsfw_gpu_status."""

    _fields_: ClassVar = [("file_code", c.c_int32), ("gpu_code", c.c_int32)]


_BATCH_SETUP = c.CFUNCTYPE(_Status, c.POINTER(c.c_void_p), c.c_uint32)
_BATCH_DESTROY = c.CFUNCTYPE(None, c.c_void_p)
_READ = c.CFUNCTYPE(c.c_ssize_t, c.c_uint64, c.c_uint64, c.c_size_t, c.c_int64, c.c_int64, use_errno=True)


def check_limits(worker: Worker, nbytes: int, limits: Sequence[tuple[str, int]], present: int) -> None:
    """Refuse buffers that the library cannot register all together on the worker's device.

    Args:
        nbytes: of this worker's buffer; the job's others are as large.
        limits: name and bytes of each limit.
        present: devices there are.

    Raises:
        UsageError: with both numbers and what fits.
    """
    job = worker.job
    devices = present if job.devices == "all" else max(1, len(job.devices or ()))
    sharing = -(-job.numjobs // devices)
    for name, limit in limits:
        if nbytes * sharing <= limit:
            continue
        fits = limit // (nbytes // job.iodepth * sharing)
        block = limit // (sharing * job.iodepth)
        advice = f"a block_size of {format_size(block)} fits" if block else "no block fits: raise the limit"
        advice = f"iodepth {fits} fits" if fits else advice
        raise UsageError(
            f"job {job.name}: {sharing} workers register {format_size(nbytes)} each on device {worker.device or 0}, "
            f"{format_size(nbytes * sharing)} together; {name} allows {format_size(limit)}",
            hint=f"{advice}; or register_buffers: none, or io_path staged, which registers nothing",
        )


def aligned_to_pages(request: Request) -> bool:
    """Whether every size and offset that will be asked for is a multiple of 4 KiB."""
    numbers = [request.max_block_size, request.block_align, *(number for span in request.ranges for number in span)]
    return all(number % LIBRARY_PAGE == 0 for number in numbers)


def try_batch(library: FileLibrary) -> None:
    """Make a batch and give it back: a library may have the functions and support nothing yet.

    Raises:
        BackendError: the library refuses.
    """
    symbols, batch = library.symbols(), c.c_void_p()
    status = _BATCH_SETUP(symbols["batch_setup"])(c.byref(batch), 1)
    if status.file_code or status.gpu_code:
        domain = Domain.FILE if status.file_code else Domain.GPU
        raise BackendError("batch_setup", domain, status.file_code or status.gpu_code)
    _BATCH_DESTROY(symbols["batch_destroy"])(batch)


def test_read(library: FileLibrary, files: Sequence[FileHandle], buffer: Buffer, request: Request) -> tuple[str, str]:
    """Read one block, and say which way it went and how that is known. Fills the buffer's first slot."""
    file, (start, length) = files[0], request.ranges[0]
    if file.state is None or request.rw == "write":
        return "unknown", "there is nothing to read yet"
    size = min(request.max_block_size, length)
    before = library.snapshot()
    moved = _READ(library.symbols()["read"])(file.state, buffer.address, size, start, 0)
    if moved <= 0:
        return "unknown", f"it ended with {moved}"
    seen = library.judge(before, tuple(files[:1]))
    return seen.kind, "; ".join(seen.evidence)


test_read.__test__ = False  # type: ignore[attr-defined]
