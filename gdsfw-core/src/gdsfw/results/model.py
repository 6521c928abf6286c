"""The document `gdsfw-results/1`. Sizes in bytes, times in nanoseconds or seconds as the names say; null where a
figure was not measured, never a made-up zero."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

SCHEMA = "gdsfw-results/1"

Status = Literal["done", "failed", "usage", "unavailable", "refused", "interrupted", "internal", "skipped"]


@dataclass(frozen=True)
class Latency:
    """One kind of latency, in nanoseconds. Percentiles by nearest rank, within 1/128 of the exact value.

    Args:
        percentiles: keys as written in the workload ("99.9").
    """

    min: int
    max: int
    mean: float
    stddev: float
    percentiles: dict[str, float]


@dataclass(frozen=True)
class DirectionResult:
    """One direction over the measured part.

    Args:
        runtime_ns: from the earliest start of a worker to the latest end.
        short_ios: blocks that took more than one call because a call moved less than asked.
        clat_ns: issue to completion. lat_ns: from the scheduled start. slat_ns: the submission call. None: not
            measured.
        histogram: of clat, without loss (engine.histogram.Histogram.from_json); None: not measured.
    """

    ios: int
    bytes: int
    runtime_ns: int
    iops: float
    bw_bytes: float
    short_ios: int
    errors: int
    lat_ns: Latency | None
    slat_ns: Latency | None
    clat_ns: Latency | None
    histogram: dict[str, Any] | None = None


@dataclass(frozen=True)
class WorkerRow:
    """One worker's share."""

    index: int
    device: int | None
    read_ios: int
    read_bytes: int
    write_ios: int
    write_bytes: int
    runtime_ns: int
    cpu_seconds: float
    ended_by: str
    error: str | None = None


@dataclass(frozen=True)
class DeviceRow:
    """One device's share: the sum of its workers. Rates over the job's measured time."""

    device: int
    workers: int
    read_ios: int
    read_bytes: int
    write_ios: int
    write_bytes: int
    read_iops: float
    read_bw_bytes: float
    write_iops: float
    write_bw_bytes: float


@dataclass(frozen=True)
class CpuResult:
    """CPU time: of the worker threads by themselves, and of the whole process over the stage.

    Libraries have threads of their own, hence both. `stage_shared`: other jobs ran in the same stage.
    """

    worker_seconds: float
    process_user_seconds: float
    process_system_seconds: float
    seconds_per_gib: float | None
    seconds_per_million_ios: float | None
    stage_shared: bool = False


@dataclass(frozen=True)
class PhaseResult:
    """Seconds of each phase; throughput uses `measured` alone."""

    setup: float
    layout: float
    ramp: float
    measured: float
    teardown: float


@dataclass(frozen=True)
class DepthResult:
    """Requests in flight: asked for, and seen at completions (mean, and counts at 1, 2, 4, 8 ...)."""

    asked: int
    achieved: float | None
    histogram: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class TransportResult:
    """The way the bytes took, and how that is known.

    Args:
        setup_seconds: what it took, before the first I/O, to make this data accessible; 0 for most ways.
        bw_bytes_with_setup: bytes a second of reads and writes together with that time included; null where it is 0.
    """

    kind: str
    cache: str
    required: str | None
    evidence: list[str] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)
    setup_seconds: float = 0.0
    bw_bytes_with_setup: float | None = None


@dataclass(frozen=True)
class MismatchResult:
    """First difference found in a block; bytes in hexadecimal."""

    file: str
    file_offset: int
    expected: str
    found: str
    bad_bytes: int


@dataclass(frozen=True)
class VerifyResult:
    """Verification. `checked_bytes` must equal `expected_bytes`; unknown_bytes were never known to be written."""

    checked_bytes: int
    expected_bytes: int
    checked_blocks: int
    bad_blocks: int
    unknown_bytes: int = 0
    mismatches: list[MismatchResult] = field(default_factory=list)


@dataclass(frozen=True)
class ErrorResult:
    """One failed I/O, or an error of the job itself (then file and numbers are None)."""

    message: str
    operation: str | None = None
    file: str | None = None
    offset: int | None = None
    bytes: int | None = None
    domain: str | None = None
    code: int | None = None
    name: str | None = None
    hint: str | None = None


@dataclass(frozen=True)
class TimelineRow:
    """What was completed in one interval that began at t_ns after the measured part."""

    t_ns: int
    duration_ns: int
    read_ios: int
    read_bytes: int
    write_ios: int
    write_bytes: int


@dataclass(frozen=True)
class Timeline:
    """Intervals in order, empty ones included. stalls: runs of intervals without a completed I/O."""

    interval_ns: int
    rows: list[TimelineRow]
    stalls: int
    longest_stall_ns: int


@dataclass(frozen=True)
class JobResult:
    """One job at one sweep point and repetition."""

    name: str
    label: str
    point: dict[str, str]
    repetition: int
    stage: str | None
    backend: str
    io_path_asked: str
    io_path: str
    loop: str
    status: Status
    exit_code: int
    job: dict[str, Any]
    read: DirectionResult | None
    write: DirectionResult | None
    workers: list[WorkerRow]
    cpu: CpuResult | None
    phases: PhaseResult
    depth: DepthResult
    ended_by: str | None
    transport: TransportResult
    verify: VerifyResult | None
    errors: list[ErrorResult]
    error_count: int
    timeline: Timeline | None
    flushes: int = 0
    flush_seconds: float = 0.0
    storage_seconds: float | None = None
    copy_seconds: float | None = None
    total_bytes: int = 0
    total_ios: int = 0
    files: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    instrumented: list[str] = field(default_factory=list)
    devices: list[DeviceRow] = field(default_factory=list)


@dataclass(frozen=True)
class RunResult:
    """A whole run. started and ended in UTC, ISO 8601.

    Args:
        checks: of each GPU backend that ran, what `gdsfw doctor --no-io` would say of it.
    """

    status: Status
    exit_code: int
    started: str
    ended: str
    source: str
    argv: list[str]
    workload: str
    versions: dict[str, str]
    host: dict[str, Any]
    plan: dict[str, Any]
    jobs: list[JobResult]
    notes: list[str] = field(default_factory=list)
    errors: list[ErrorResult] = field(default_factory=list)
    checks: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    schema: str = SCHEMA

    def to_json(self) -> dict[str, Any]:
        """The document, `schema` first."""
        document = asdict(self)
        return {"schema": document.pop("schema"), **document}

    @classmethod
    def from_json(cls, document: Any) -> RunResult:
        """Read a document; unknown members are allowed, since later versions may add some.

        Raises:
            UsageError: it is no result, or of another version, or malformed; names the place.
        """
        from pydantic import TypeAdapter, ValidationError

        from gdsfw.errors import UsageError

        schema = document.get("schema") if isinstance(document, dict) else None
        if schema != SCHEMA:
            raise UsageError(f"not a result of gdsfw: schema is {schema!r}, {SCHEMA!r} is due")
        try:
            return TypeAdapter(cls).validate_python(document)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            raise UsageError(f"the result is malformed at {place}: {first['msg']}") from None
