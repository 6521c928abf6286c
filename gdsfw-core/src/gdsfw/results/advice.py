"""Which I/O path, from a result whose jobs swept over `io_path`: the fastest, and of those as fast the cheapest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gdsfw.results.model import JobResult

#: Rates this close are one: single runs on a shared machine differ by more.
AS_FAST = 0.95


def advice(jobs: Sequence[JobResult]) -> list[str]:
    """A line for each set of sweep points that differ in `io_path` alone; none where fewer than two measured."""
    lines = []
    for label, points in _groups(jobs):
        measured = sorted((job for job in points if _rate(job)), key=_rate, reverse=True)
        if len(measured) > 1:
            absent = [job for job in points if not _rate(job)]
            lines.append(f"{label}: {_line(measured, absent)}")
    return lines


def _groups(jobs: Sequence[JobResult]) -> Iterator[tuple[str, list[JobResult]]]:
    groups: dict[tuple[str, ...], list[JobResult]] = {}
    for job in jobs:
        if "io_path" in job.point and job.repetition == 0:
            others = (f"{key}={value}" for key, value in job.point.items() if key != "io_path")
            groups.setdefault((job.backend, job.name, *others), []).append(job)
    for key, points in groups.items():
        yield " ".join(key[1:]), points


def _line(measured: Sequence[JobResult], absent: Sequence[JobResult]) -> str:
    from gdsfw.results.table import quantity, size

    fastest = _rate(measured[0])
    best = min((job for job in measured if _rate(job) >= AS_FAST * fastest), key=_cost)
    parts = [f"{_path(best)}, {quantity(_rate(best))} IOPS, {size(_bandwidth(best))}/s{_cpu(best)}"]
    others = [job for job in measured if job is not best]
    parts.append(", ".join(f"{_path(job)} {_rate(job) / _rate(best):.2g} x{_cpu(job)}" for job in others))
    if absent:
        parts.append(f"not measured: {', '.join(_path(job) for job in absent)}")
    return "; ".join(parts) + _once(best, others)


def _once(best: JobResult, others: Sequence[JobResult]) -> str:
    """What is better for data that is read once only, where preparing it for the best path takes so long."""
    including = best.transport.bw_bytes_with_setup
    better = max(others, key=_bandwidth)
    if including is None or including >= _bandwidth(better):
        return ""
    alone = best.transport.setup_seconds
    return f"; registering took {alone:.2g} s: for data that is read for a shorter time, {_path(better)}"


def _path(job: JobResult) -> str:
    return str(job.point["io_path"])


def _rate(job: JobResult) -> float:
    return sum(side.iops for side in (job.read, job.write) if side is not None)


def _bandwidth(job: JobResult) -> float:
    return sum(side.bw_bytes for side in (job.read, job.write) if side is not None)


def _cost(job: JobResult) -> float:
    cost = job.cpu.seconds_per_gib if job.cpu is not None else None
    return cost if cost is not None else float("inf")


def _cpu(job: JobResult) -> str:
    cost = _cost(job)
    return f" ({cost:.2g} CPU s/GiB)" if cost != float("inf") else ""
