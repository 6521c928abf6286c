"""A result in the shape of fio's JSON (`--output-format=json`, fio 3), for programs that read that.

The names and units are those of fio's stat.c (show_thread_status_json): `bw` in KiB/s, `bw_bytes` in bytes/s,
`runtime` in ms, latencies in ns, CPU in per cent of the time of all workers. What gdsfw does not measure (context
switches, page faults) is 0, as fio writes it. A sweep point or repeat is a job of its own.
"""

from __future__ import annotations

from bisect import bisect_left
from datetime import datetime
from statistics import mean, pstdev
from typing import TYPE_CHECKING, Any

from gdsfw.engine.histogram import Histogram, bucket_range
from gdsfw.results.load import histogram

if TYPE_CHECKING:
    from gdsfw.results.model import DirectionResult, JobResult, Latency, RunResult, TimelineRow

_STEPS = (2, 4, 10, 20, 50, 100, 250, 500, 750, 1000)
_DEPTHS = ("1", "2", "4", "8", "16", "32", ">=64")


def fio_json(run: RunResult) -> dict[str, Any]:
    """The document that readers of fio's JSON take."""
    started, ended = datetime.fromisoformat(run.started), datetime.fromisoformat(run.ended)
    return {
        "fio version": f"gdsfw-{run.versions.get('gdsfw', '')}",
        "timestamp": int(ended.timestamp()),
        "timestamp_ms": int(ended.timestamp() * 1000),
        "time": f"{ended:%a %b %e %H:%M:%S %Y}",
        "global options": {},
        "jobs": [_job(job, index, (ended - started).total_seconds()) for index, job in enumerate(run.jobs)],
        "disk_util": [],
    }


def _job(job: JobResult, index: int, elapsed: float) -> dict[str, Any]:
    seconds = sum(worker.runtime_ns for worker in job.workers) / 1e9
    cpu = job.cpu
    return {
        "jobname": job.label,
        "groupid": index,
        "error": next((error.code for error in job.errors if error.code), job.exit_code),
        "eta": 0,
        "elapsed": int(elapsed),
        "job options": _options(job),
        "read": _direction(job, "read"),
        "write": _direction(job, "write"),
        "trim": _direction(job, "trim"),
        "sync": {"total_ios": job.flushes, "lat_ns": _latency(None, 0)},
        "job_runtime": round(seconds * 1000),
        "usr_cpu": 100 * cpu.process_user_seconds / seconds if cpu and seconds else 0.0,
        "sys_cpu": 100 * cpu.process_system_seconds / seconds if cpu and seconds else 0.0,
        "ctx": 0,
        "majf": 0,
        "minf": 0,
        "iodepth_level": _depths(job),
        **_distribution([histogram(side) for side in (job.read, job.write) if side is not None]),
        "latency_depth": job.depth.asked,
        "latency_target": 0,
        "latency_percentile": 100.0,
        "latency_window": 0,
    }


def _options(job: JobResult) -> dict[str, str]:
    """Options by fio's names. Those that gdsfw reads alike; fio writes all of them as text."""
    asked = job.job
    block = asked.get("block_size")
    options = {
        "name": job.name,
        "rw": str(asked.get("rw", "")),
        "bs": _units(block) if isinstance(block, int) else str(block),
        "iodepth": str(job.depth.asked),
        "numjobs": str(asked.get("numjobs", len(job.workers))),
        "ioengine": job.io_path,
        "direct": str(int(asked.get("direct") is True)),
    }
    for name in ("size", "io_size", "runtime", "ramp_time", "rwmixread", "directory", "filename"):
        if asked.get(name) is not None:
            options[name] = str(asked[name])
    return options


def _units(nbytes: int) -> str:
    for unit, factor in (("g", 1 << 30), ("m", 1 << 20), ("k", 1 << 10)):
        if nbytes and nbytes % factor == 0:
            return f"{nbytes // factor}{unit}"
    return str(nbytes)


def _direction(job: JobResult, name: str) -> dict[str, Any]:
    side: DirectionResult | None = {"read": job.read, "write": job.write}.get(name)
    ios, nbytes = (side.ios, side.bytes) if side else (0, 0)
    samples = _samples(job, name) if ios else []
    bandwidths = [size / 1024 for _, size in samples]
    return {
        "io_bytes": nbytes,
        "io_kbytes": nbytes >> 10,
        "bw_bytes": int(side.bw_bytes) if side else 0,
        "bw": int(side.bw_bytes) >> 10 if side else 0,
        "iops": side.iops if side else 0.0,
        "runtime": side.runtime_ns // 1_000_000 if side else 0,
        "total_ios": ios,
        "short_ios": side.short_ios if side else 0,
        "drop_ios": 0,
        "slat_ns": _latency(side.slat_ns if side else None, ios),
        "clat_ns": _latency(side.clat_ns if side else None, ios, percentiles=True),
        "lat_ns": _latency(side.lat_ns if side else None, ios, percentiles=True),
        **_summary("bw", bandwidths),
        "bw_agg": 100.0 if ios else 0.0,
        **_summary("iops", [count for count, _ in samples]),
    }


def _latency(latency: Latency | None, ios: int, *, percentiles: bool = False) -> dict[str, Any]:
    if latency is None:
        return {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0}
    known: dict[str, Any] = {
        "min": latency.min,
        "max": latency.max,
        "mean": latency.mean,
        "stddev": latency.stddev,
        "N": ios,
    }
    if percentiles:
        known["percentile"] = {f"{float(key):.6f}": round(value) for key, value in latency.percentiles.items()}
    return known


def _samples(job: JobResult, name: str) -> list[tuple[float, float]]:
    """I/Os and bytes per second in each interval; a short rest at the end would be a sample of little weight."""
    if job.timeline is None:
        return []
    rows = job.timeline.rows
    whole = [row for row in rows if row.duration_ns * 2 >= job.timeline.interval_ns] or rows
    return [_rates(row, name) for row in whole if row.duration_ns]


def _rates(row: TimelineRow, name: str) -> tuple[float, float]:
    count, nbytes = (row.read_ios, row.read_bytes) if name == "read" else (row.write_ios, row.write_bytes)
    return 1e9 * count / row.duration_ns, 1e9 * nbytes / row.duration_ns


def _summary(name: str, samples: list[float]) -> dict[str, Any]:
    some = samples or [0.0]
    mean_name, deviation_name = f"{name}_mean", "bw_dev" if name == "bw" else "iops_stddev"
    return {
        f"{name}_min": int(min(some)),
        f"{name}_max": int(max(some)),
        mean_name: mean(some),
        deviation_name: pstdev(some),
        f"{name}_samples": len(samples),
    }


def _depths(job: JobResult) -> dict[str, float]:
    counts = list(job.depth.histogram) or ([job.total_ios] if job.depth.asked == 1 else [])
    counts = [*counts[:6], sum(counts[6:])] + [0] * max(0, 6 - len(counts))
    total = sum(counts)
    return {name: 100 * count / total if total else 0.0 for name, count in zip(_DEPTHS, counts, strict=True)}


def _distribution(parts: list[Histogram]) -> dict[str, dict[str, float]]:
    """latency_ns, latency_us and latency_ms: per cent of all I/Os at most as long as the key, above the key before."""
    limits = [*_STEPS, *(step * 1000 for step in _STEPS), *(step * 10**6 for step in _STEPS), 2 * 10**9]
    counts = [0] * (len(limits) + 1)
    for index, count in Histogram.merged(parts).pairs():
        counts[bisect_left(limits, sum(bucket_range(index)) // 2)] += count
    total = sum(counts)
    shares = [100 * count / total if total else 0.0 for count in counts]
    names = [str(step) for step in _STEPS]
    return {
        "latency_ns": dict(zip(names, shares[:10], strict=True)),
        "latency_us": dict(zip(names, shares[10:20], strict=True)),
        "latency_ms": dict(zip([*names, "2000", ">=2000"], shares[20:], strict=True)),
    }
