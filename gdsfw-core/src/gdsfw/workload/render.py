"""A plan as text for people and as plain data for programs."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from gdsfw.workload.dump import job_to_data
from gdsfw.workload.units import approximate, format_duration, format_size

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gdsfw.workload.plan_model import FilePlan, JobPlan, Plan, StagePlan, WorkerPlan

#: Rows of one job that are printed; --json has all.
MAX_ROWS = 64
COLUMNS = ("worker", "device", "cpus", "file", "from", "to", "bytes", "buffer")


def render_plan(plan: Plan) -> str:
    """The plan as text: each job's workers with their files, byte ranges and buffers, and the sums."""
    lines = [f"plan of {plan.source}: {len(plan.jobs)} run{'s' if len(plan.jobs) != 1 else ''}"]
    for number, stage in enumerate(plan.stages, 1):
        lines += ["", *_stage_lines(number, stage, plan.needs_children)]
    lines += ["", *_sum_lines(plan), *(f"note: {note}" for note in plan.notes)]
    return "\n".join(lines)


def _stage_lines(number: int, stage: StagePlan, show_process: bool) -> Iterator[str]:
    if stage.name is not None or show_process:
        together = f" stage {stage.name}" if stage.name else ""
        ends = ", ends with its first job" if stage.stop_together else ""
        process = f", in a process of its own ({stage.process})" if show_process else ""
        yield f"{number}.{together}{ends}{process}"
    for job in stage.jobs:
        yield from _job_lines(job)


def _job_lines(plan: JobPlan) -> Iterator[str]:
    job = plan.job
    yield f"job {plan.label}"
    yield f"  backend {plan.backend.name}, path {plan.io_path}, {_access(plan)}, block {_blocks(plan)}"
    verify = "on" if job.verify else "off"
    yield f"  iodepth {plan.iodepth}, direct {job.direct}, verify {verify}, ends {_ending(plan)}"
    rows = (row for worker in plan.workers for row in _worker_rows(plan, worker))
    table = _table([COLUMNS, *islice(rows, MAX_ROWS)])
    yield from (f"  {line}" for line in table)
    count = sum(len(worker.files) for worker in plan.workers)
    if count > MAX_ROWS:
        yield f"  ... and {count - MAX_ROWS} rows more (--json has all)"
    totals = _totals(plan)
    yield (
        f"  sum: {len(plan.workers)} worker{'s' if len(plan.workers) != 1 else ''}, {totals['files']} "
        f"file{'s' if totals['files'] != 1 else ''}, {_moved(totals['planned_bytes'])}, "
        f"buffers {approximate(totals['buffer_bytes'])} ({totals['memory']})"
    )
    yield from (f"  note: {note}" for note in plan.notes)


def _access(plan: JobPlan) -> str:
    job = plan.job
    mix = f" ({job.rwmixread} % reads)" if len(job.directions) == 2 else ""
    return f"{job.rw}{mix}"


def _blocks(plan: JobPlan) -> str:
    job = plan.job
    texts = []
    for direction in job.directions:
        blocks = job.blocks(direction)
        if blocks.step:
            low, high, step = (format_size(n) for n in (blocks.smallest, blocks.largest, blocks.step))
            texts.append(f"{low} to {high} in steps of {step}")
        elif len(blocks.choices) == 1:
            texts.append(f"{format_size(blocks.smallest)} ({blocks.smallest} bytes)")
        else:
            texts.append(" ".join(f"{format_size(size)}:{weight}" for size, weight in blocks.choices))
    return texts[0] if len(set(texts)) == 1 else f"read {texts[0]}, write {texts[1]}"


def _ending(plan: JobPlan) -> str:
    job = plan.job
    after = [] if job.runtime is None else [f"after {format_duration(job.runtime)}"]
    if any(file.decided_at_start for files in plan.distinct_files() for file in files):
        after.append("after the size that the files have, decided at start")
    elif any(plan.planned_bytes(worker) is not None for worker in plan.workers):
        after.append("when each worker has moved its bytes")
    ramp = f", after a ramp of {format_duration(job.ramp_time)}" if job.ramp_time else ""
    return " or ".join(after) + (" whichever comes first" if len(after) > 1 else "") + ramp


def _worker_rows(plan: JobPlan, worker: WorkerPlan) -> Iterator[tuple[str, ...]]:
    moved = plan.planned_bytes(worker)
    for index, file in enumerate(worker.files):
        first = index == 0
        yield (
            str(worker.index) if first else "",
            ("-" if worker.device is None else str(worker.device)) if first else "",
            (",".join(map(str, worker.cpus)) or "any") if first else "",
            file.path + (" (new)" if file.create else ""),
            *_range_cells(file),
            (_open_end(plan) if moved is None else str(moved)) if first else "",
            (f"{plan.iodepth} x {format_size(worker.slot_stride)}") if first else "",
        )


def _range_cells(file: FilePlan) -> tuple[str, str]:
    if file.decided_at_start:
        return str(file.start), "decided at start"
    return str(file.start), str(file.start + file.length)


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return [line.rstrip() for line in lines]


def _open_end(plan: JobPlan) -> str:
    return "by runtime" if plan.job.runtime else "by file size"


def _moved(planned: int | None) -> str:
    return "bytes decided by the run" if planned is None else f"{approximate(planned)} to move ({planned} bytes)"


def _sum_lines(plan: Plan) -> Iterator[str]:
    planned = [_totals(job)["planned_bytes"] for job in plan.jobs]
    moved = None if any(count is None for count in planned) else sum(planned)
    workers = max((sum(len(job.workers) for job in stage.jobs) for stage in plan.stages), default=0)
    memory = max(
        (sum(worker.buffer_nbytes for job in stage.jobs for worker in job.workers) for stage in plan.stages), default=0
    )
    yield f"in all: at most {workers} workers and {approximate(memory)} of buffers at a time, {_moved(moved)}"


def _planned(plan: JobPlan) -> list[int | None]:
    """Bytes of each worker; the files of a shared tuple are added up once."""
    by_files = {id(worker.files): plan.planned_bytes(worker) for worker in _one_for_each_tuple(plan)}
    return [by_files[id(worker.files)] for worker in plan.workers]


def _one_for_each_tuple(plan: JobPlan) -> Iterable[WorkerPlan]:
    return {id(worker.files): worker for worker in plan.workers}.values()


def _totals(plan: JobPlan) -> dict[str, Any]:
    planned = _planned(plan)
    return {
        "files": len({file.path for files in plan.distinct_files() for file in files}),
        "planned_bytes": None if None in planned else sum(count for count in planned if count is not None),
        "buffer_bytes": sum(worker.buffer_nbytes for worker in plan.workers),
        "memory": plan.backend.memory[0] if plan.job.memory == "auto" else plan.job.memory,
    }


def plan_to_json(plan: Plan) -> dict[str, Any]:
    """The plan as plain data: sizes in bytes, null for what only the run will show."""
    return {
        "source": plan.source,
        "stages": [
            {
                "name": stage.name,
                "stop_together": stage.stop_together,
                "process": stage.process,
                "jobs": [_job_to_json(job) for job in stage.jobs],
            }
            for stage in plan.stages
        ],
        "notes": list(plan.notes),
    }


def _job_to_json(plan: JobPlan) -> dict[str, Any]:
    return {
        "name": plan.job.name,
        "label": plan.label,
        "point": plan.point,
        "repetition": plan.repetition,
        "backend": plan.backend.name,
        "io_path": plan.io_path,
        "iodepth": plan.iodepth,
        "job": job_to_data(plan.job),
        "workers": [_worker_to_json(plan, worker) for worker in plan.workers],
        "sums": {"workers": len(plan.workers), **_totals(plan)},
        "notes": list(plan.notes),
    }


def _worker_to_json(plan: JobPlan, worker: WorkerPlan) -> dict[str, Any]:
    return {
        "index": worker.index,
        "device": worker.device,
        "cpus": list(worker.cpus),
        "seed": worker.seed,
        "buffer_bytes": worker.buffer_nbytes,
        "slot_stride": worker.slot_stride,
        "planned_bytes": plan.planned_bytes(worker),
        "files": [
            {
                "path": file.path,
                "file_id": file.file_id,
                "start": file.start,
                "length": None if file.decided_at_start else file.length,
                "create": file.create,
            }
            for file in worker.files
        ],
    }
