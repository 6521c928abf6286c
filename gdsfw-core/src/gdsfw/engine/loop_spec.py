"""From the plan of a worker to the terms of its loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gdsfw.backend import Request
from gdsfw.engine.spec import Distribution, LoopFile, LoopSpec, Verify

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from gdsfw.backend import FileHandle, IOPath
    from gdsfw.workload.model import Job
    from gdsfw.workload.plan_model import FilePlan, JobPlan, WorkerPlan

#: Errors carried on through with `continue_on_error` and no `max_errors`.
NO_ERROR_LIMIT = 2**63 - 1


def directions(job: Job) -> Literal["read", "write", "readwrite"]:
    """The directions a job issues, without its access pattern."""
    if job.rw in ("readwrite", "randrw"):
        return "readwrite"
    return "read" if job.rw in ("read", "randread") else "write"


def request(plan: JobPlan, files: Sequence[OpenFile]) -> Request:
    """What the backend is told about the I/O to come."""
    job = plan.job
    largest = max(job.blocks(direction).largest for direction in job.directions)
    smallest = min(job.blocks(direction).smallest for direction in job.directions)
    return Request(
        io_path=plan.io_path,
        rw=directions(job),
        max_block_size=largest,
        block_align=job.block_align or smallest,
        ranges=[(file.plan.start, file.plan.length) for file in files],
        iodepth=plan.iodepth,
        iodepth_batch=min(job.iodepth_batch, plan.iodepth),
        direct=job.direct,
        register_buffers=job.register_buffers,
    )


@dataclass(frozen=True)
class OpenFile:
    """A file of a worker: its plan with the range known by now, its handle, the seed of its pattern, and which
    (start, length) ranges hold it; None when all does."""

    plan: FilePlan
    handle: FileHandle
    pattern_seed: int = 0
    known: tuple[tuple[int, int], ...] | None = None


def loop_spec(plan: JobPlan, worker: WorkerPlan, files: Sequence[OpenFile], path: IOPath) -> LoopSpec:
    """The loop of one worker."""
    job = plan.job
    writes = "write" in job.directions
    batch = min(path.iodepth_batch or job.iodepth_batch, plan.iodepth, path.iodepth)
    return LoopSpec(
        rw=directions(job),
        random=job.random_access,
        read_blocks=job.blocks("read"),
        write_blocks=job.blocks("write"),
        block_align=job.block_align or 0,
        files=tuple(
            LoopFile(file.plan.file_id, file.plan.start, file.plan.length, file.pattern_seed, file.known)
            for file in files
        ),
        seed=worker.seed,
        read_percent=job.rwmixread,
        distribution=Distribution(job.random.distribution, job.random.theta, job.random.once_per_block),
        file_service=job.file_service,
        io_size=worker.io_size,
        loops=job.loops,
        runtime_ns=job.runtime or 0,
        ramp_ns=job.ramp_time,
        iodepth=min(plan.iodepth, path.iodepth),
        batch_submit=batch,
        batch_complete=batch,
        buffer_offset=job.buffer_offset,
        slot_stride=worker.slot_stride,
        rate_bytes=job.rates("rate"),
        rate_iops=job.rates("rate_iops"),
        rate_process=job.rate_process,
        think_time_ns=job.think_time,
        fsync_every=job.fsync,
        fdatasync_every=job.fdatasync,
        end_fsync=writes if job.end_fsync is None else job.end_fsync,
        write_fill="pattern" if job.verify else "random",
        compress_percent=job.buffer_compress,
        dedupe_percent=job.buffer_dedupe,
        verify=Verify(check=True, generations=job.verify.generations) if job.verify else None,
        error_limit=(job.max_errors or NO_ERROR_LIMIT) if job.continue_on_error else 0,
        io_timeout_ns=job.io_timeout,
        latencies=job.percentiles != "none",
        register_per_io=job.register_buffers == "per_io" and path.registers,
        io_log_path=job.io_log,
    )
