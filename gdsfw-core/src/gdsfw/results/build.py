"""From what the workers report to one job's result: merged, checked against itself, with warnings."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gdsfw.engine.histogram import Histogram
from gdsfw.errors import InternalError
from gdsfw.results.model import (
    CpuResult,
    DepthResult,
    DeviceRow,
    DirectionResult,
    ErrorResult,
    JobResult,
    Latency,
    MismatchResult,
    PhaseResult,
    Status,
    Timeline,
    TransportResult,
    VerifyResult,
    WorkerRow,
)

if TYPE_CHECKING:
    from gdsfw.engine.spec import DirectionStats, EndedBy, LoopResult
    from gdsfw.engine.worker import WorkerOutcome
    from gdsfw.workload.plan_model import JobPlan

#: A depth this far below the one asked for is worth a warning.
DEPTH_SHORTFALL = 0.9


@dataclass
class JobFacts:
    """What the runner knows of a job beside its plan and its workers."""

    status: Status
    exit_code: int
    phases: PhaseResult
    process_user: float
    process_system: float
    stage_shared: bool
    timeline: Timeline | None
    errors: list[ErrorResult]
    files: list[str]
    stage: str | None = None
    notes: list[str] = field(default_factory=list)
    job: dict[str, object] = field(default_factory=dict)


#: Counts of a WorkerRow that DeviceRow has the sums of, in its order.
_SHARES = ("read_ios", "read_bytes", "write_ios", "write_bytes")


def job_result(plan: JobPlan, outcomes: Sequence[WorkerOutcome], facts: JobFacts) -> JobResult:
    """Merge the workers of a job.

    Raises:
        InternalError: the figures contradict each other.
    """
    loops = [outcome.result for outcome in outcomes if outcome.result is not None]
    latencies = plan.job.percentiles != "none"
    read, write = (_direction(plan, loops, side, latencies) for side in ("read", "write"))
    _check_sums(loops, read, write)
    cpu = _cpu(loops, facts, read, write)
    transport = _transport(plan, outcomes, read, write)
    rows = [_row(plan, index, outcome) for index, outcome in enumerate(outcomes)]
    result = JobResult(
        name=plan.job.name,
        label=plan.label,
        point=dict(plan.point),
        repetition=plan.repetition,
        stage=facts.stage,
        backend=plan.backend.name,
        io_path_asked=plan.job.io_path,
        io_path=next((outcome.io_path for outcome in outcomes if outcome.io_path), ""),
        loop="python" if any(outcome.python_loop for outcome in outcomes) else "native",
        status=facts.status,
        exit_code=facts.exit_code,
        job=dict(facts.job),
        read=read if plan.job.reads else None,
        write=write if plan.job.writes else None,
        workers=rows,
        cpu=cpu,
        phases=facts.phases,
        depth=_depth(plan, loops),
        ended_by=_ended_by([loop.ended_by for loop in loops]),
        transport=transport,
        verify=_verify(plan, outcomes),
        errors=facts.errors,
        error_count=sum(loop.error_count for loop in loops) + sum(1 for e in facts.errors if e.operation is None),
        timeline=facts.timeline,
        flushes=sum(loop.flushes for loop in loops),
        flush_seconds=sum(loop.flush_ns for loop in loops) / 1e9,
        storage_seconds=_split(loops, "storage_ns"),
        copy_seconds=_split(loops, "copy_ns"),
        total_bytes=sum(loop.total_bytes for loop in loops),
        total_ios=sum(loop.total_ios for loop in loops),
        files=facts.files,
        notes=_notes(outcomes, facts.notes),
        warnings=[],
        instrumented=sorted({name for outcome in outcomes for name in outcome.instrumented}),
        devices=_devices(rows, read.runtime_ns),
    )
    result.warnings.extend([*_warnings(result), *_cached(plan, result)])
    return result


def latency(histogram: Histogram, percentiles: Sequence[float]) -> Latency | None:
    """Figures of one histogram; None when it is empty.

    Raises:
        InternalError: minimum, percentiles and maximum are out of order.
    """
    if not histogram.count:
        return None
    values = [float(histogram.percentile(percent) or 0) for percent in sorted(percentiles)]
    ordered = [float(histogram.min_ns), *values, float(histogram.max_ns)]
    if ordered != sorted(ordered):
        raise InternalError(f"internal statistics error: latency percentiles are out of order: {ordered}")
    return Latency(
        min=histogram.min_ns,
        max=histogram.max_ns,
        mean=histogram.mean or 0.0,
        stddev=histogram.stddev or 0.0,
        percentiles=dict(zip(map("{:g}".format, sorted(percentiles)), values, strict=True)),
    )


def _direction(plan: JobPlan, loops: Sequence[LoopResult], side: str, latencies: bool) -> DirectionResult:
    stats: list[DirectionStats] = [getattr(loop, side) for loop in loops]
    ios = sum(item.ios for item in stats)
    nbytes = sum(item.bytes for item in stats)
    clat, lat, slat = (Histogram.merged(getattr(item, kind) for item in stats) for kind in ("clat", "lat", "slat"))
    if latencies and clat.count != ios:
        raise InternalError(f"internal statistics error: {ios} {side}s, but {clat.count} latencies")
    runtime = max((loop.ended_ns for loop in loops), default=0) - min((loop.started_ns for loop in loops), default=0)
    percentiles = () if plan.job.percentiles == "none" else plan.job.percentiles
    return DirectionResult(
        ios=ios,
        bytes=nbytes,
        runtime_ns=runtime,
        iops=ios * 1e9 / runtime if runtime else 0.0,
        bw_bytes=nbytes * 1e9 / runtime if runtime else 0.0,
        short_ios=sum(item.short_ios for item in stats),
        errors=sum(item.errors for item in stats),
        lat_ns=latency(lat, percentiles),
        slat_ns=latency(slat, percentiles),
        clat_ns=latency(clat, percentiles),
        histogram=clat.to_json() if clat.count else None,
    )


def _check_sums(loops: Sequence[LoopResult], read: DirectionResult, write: DirectionResult) -> None:
    """What was measured is a part of what was done."""
    done_ios, done_bytes = sum(loop.total_ios for loop in loops), sum(loop.total_bytes for loop in loops)
    if read.ios + write.ios > done_ios or read.bytes + write.bytes > done_bytes:
        raise InternalError(
            f"internal statistics error: measured {read.ios + write.ios} I/Os of {done_ios} done, "
            f"{read.bytes + write.bytes} bytes of {done_bytes}"
        )


def _cpu(
    loops: Sequence[LoopResult], facts: JobFacts, read: DirectionResult, write: DirectionResult
) -> CpuResult | None:
    if not loops:
        return None
    process = facts.process_user + facts.process_system
    nbytes, ios = read.bytes + write.bytes, read.ios + write.ios
    return CpuResult(
        worker_seconds=sum(loop.cpu_ns for loop in loops) / 1e9,
        process_user_seconds=facts.process_user,
        process_system_seconds=facts.process_system,
        seconds_per_gib=process / (nbytes / 2**30) if nbytes else None,
        seconds_per_million_ios=process / (ios / 1e6) if ios else None,
        stage_shared=facts.stage_shared,
    )


def _row(plan: JobPlan, index: int, outcome: WorkerOutcome) -> WorkerRow:
    loop = outcome.result
    error = str(outcome.error) if outcome.error else "stuck; left behind" if outcome.abandoned else None
    if loop is None:
        return WorkerRow(index, plan.workers[index].device, 0, 0, 0, 0, 0, 0.0, "error", error)
    return WorkerRow(
        index=index,
        device=plan.workers[index].device,
        read_ios=loop.read.ios,
        read_bytes=loop.read.bytes,
        write_ios=loop.write.ios,
        write_bytes=loop.write.bytes,
        runtime_ns=loop.ended_ns - loop.started_ns,
        cpu_seconds=loop.cpu_ns / 1e9,
        ended_by=loop.ended_by.name.lower(),
        error=error,
    )


def _devices(rows: Sequence[WorkerRow], runtime_ns: int) -> list[DeviceRow]:
    """The workers' shares summed by device, for jobs that name devices."""
    found = []
    for device in sorted({row.device for row in rows if row.device is not None}):
        mine = [row for row in rows if row.device == device]
        sums = [sum(getattr(row, name) for row in mine) for name in _SHARES]
        rates = [1e9 * total / runtime_ns if runtime_ns else 0.0 for total in sums]
        found.append(DeviceRow(device, len(mine), *sums, *rates))
    return found


def _depth(plan: JobPlan, loops: Sequence[LoopResult]) -> DepthResult:
    asked = plan.job.iodepth
    if plan.iodepth == 1:
        return DepthResult(asked, 1.0 if loops else None)
    width = max((len(loop.depth_histogram) for loop in loops), default=0)
    counts = [sum(loop.depth_histogram[i] for loop in loops if i < len(loop.depth_histogram)) for i in range(width)]
    seen = sum(counts)
    # Bucket i holds depths from 2**i up to the next power; the last one that can occur is the depth itself.
    mean = sum(min(1.5 * 2**i, plan.iodepth) * count for i, count in enumerate(counts)) / seen if seen else None
    if mean is None and any(loop.read.ios + loop.write.ios for loop in loops):
        mean = 1.0  # a path without a queue, which `auto` may end up with
    return DepthResult(asked, mean, counts)


def _ended_by(endings: Sequence[EndedBy]) -> str | None:
    """The most serious of the workers' endings."""
    return max(endings).name.lower() if endings else None


def _transport(
    plan: JobPlan, outcomes: Sequence[WorkerOutcome], read: DirectionResult, write: DirectionResult
) -> TransportResult:
    seen = [outcome.transport for outcome in outcomes if outcome.result is not None]
    kinds, caches = {item.kind for item in seen}, {item.cache for item in seen}
    details: dict[str, object] = {}
    for item in seen:
        details.update(item.details)
    setup = max((item.setup_seconds for item in seen), default=0.0)
    seconds = setup + max(read.runtime_ns, write.runtime_ns) / 1e9
    return TransportResult(
        kind=kinds.pop() if len(kinds) == 1 else "unknown",
        cache=caches.pop() if len(caches) == 1 else "unknown",
        required=plan.job.require_transport,
        evidence=list(dict.fromkeys(line for item in seen for line in item.evidence)),
        details=details,
        setup_seconds=setup,
        bw_bytes_with_setup=(read.bytes + write.bytes) / seconds if setup else None,
    )


def _verify(plan: JobPlan, outcomes: Sequence[WorkerOutcome]) -> VerifyResult | None:
    # By the worker's own number: one that never measured has no result, but keeps its place.
    stats = [
        (plan.workers[index], outcome.result.verify)
        for index, outcome in enumerate(outcomes)
        if outcome.result is not None and outcome.result.verify is not None
    ]
    if plan.job.verify is None or not stats:
        return None
    mismatches = [
        MismatchResult(
            worker.files[bad.file_index].path,
            bad.file_offset,
            bad.expected.hex(),
            bad.found.hex(),
            bad.bad_bytes,
        )
        for worker, verify in stats
        for bad in verify.mismatches
    ]
    return VerifyResult(
        checked_bytes=sum(verify.checked_bytes for _, verify in stats),
        expected_bytes=sum(verify.expected_bytes for _, verify in stats),
        checked_blocks=sum(verify.checked_blocks for _, verify in stats),
        bad_blocks=sum(verify.bad_blocks for _, verify in stats),
        unknown_bytes=sum(verify.unknown_bytes for _, verify in stats),
        mismatches=mismatches[:10],
    )


def _split(loops: Sequence[LoopResult], key: str) -> float | None:
    total: int = sum(getattr(loop, key) for loop in loops)
    return total / 1e9 if total else None


def _notes(outcomes: Sequence[WorkerOutcome], notes: Sequence[str]) -> list[str]:
    reasons = [f"driven by the Python loop: {o.python_loop}" for o in outcomes if o.python_loop]
    return list(dict.fromkeys([*notes, *reasons, *(note for outcome in outcomes for note in outcome.notes)]))


def _warnings(result: JobResult) -> list[str]:
    found = []
    achieved, asked = result.depth.achieved, result.depth.asked
    if achieved is not None and achieved < DEPTH_SHORTFALL * asked:
        found.append(f"iodepth {asked} was asked for, {achieved:.1f} was kept on average")
    if result.transport.cache == "warm" and result.transport.kind == "host":
        found.append("the data was in memory already: this measures the page cache, not the storage")
    if result.transport.kind == "compat":
        found.append("the vendor's library bounced the bytes through host memory: this is not peer-to-peer")
    if result.instrumented:
        found.append(f"instrumented by {', '.join(result.instrumented)}: not comparable with runs that are not")
    return found


def _cached(plan: JobPlan, result: JobResult) -> list[str]:
    """Of buffered reads that began cold, or nobody knows how, and that memory had room for."""
    if result.read is None or result.transport.kind not in ("host", "staged", "compat"):
        return []
    ends = {file.path: file.start + file.length for files in plan.distinct_files() for file in files}
    there, memory = sum(ends.values()), os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    again = result.transport.cache == "cold" and result.read.bytes > there
    if not 0 < there < memory or not (again or (result.transport.cache == "unknown" and result.read.ios)):
        return []
    what = "what was read again" if again else "some of it"
    warning = (
        f"buffered reads of {there} bytes, which fit in memory: {what} may have come from the page cache and not from "
        "the storage (direct: true bypasses it)"
    )
    return [warning]


def phases(setup: float, layout: float, ramp: float, measured: float, teardown: float) -> PhaseResult:
    """Phase seconds, rounded to the microsecond."""
    return PhaseResult(*(round(value, 6) for value in (setup, layout, ramp, measured, teardown)))
