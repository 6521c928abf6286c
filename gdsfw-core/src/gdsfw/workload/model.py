"""What a workload says: jobs with every key of the language, each described with its unit.

Field types are what Python code sees (bytes, nanoseconds, tuples); what a file may say instead ("4KiB", "5s") is in
fields.py. Unknown keys and loose types are refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from gdsfw.workload import fields as f
from gdsfw.workload.values import Direction, Rates, single_block

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gdsfw.engine.spec import BlockSizes

#: Seed of all random choices when a job gives none: fixed, so that two runs of one file do the same I/O.
DEFAULT_SEED = 1
DEFAULT_PERCENTILES = (1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99)
#: theta of each distribution when it is not given. Zipf: that of YCSB (Cooper and others, 2010); pareto: fio's 0.2;
#: normal: a deviation of 10 % of the range; runs: 8 consecutive blocks.
DEFAULT_THETA = {"uniform": 0.0, "zipf": 0.99, "pareto": 0.2, "normal": 10.0, "runs": 8.0}

_STRICT = ConfigDict(strict=True, extra="forbid", frozen=True)


class Random(BaseModel):
    """How random offsets, sizes and directions are drawn."""

    model_config = _STRICT

    distribution: Literal["uniform", "zipf", "pareto", "normal", "runs"] = Field(
        "uniform", description="Distribution of random offsets."
    )
    theta: float = Field(
        0.0,
        description="Shape, without unit: zipf exponent (above 0, not 1; default 0.99), pareto h (between 0 and 1; "
        "default 0.2), normal deviation in percent of the range (above 0, at most 100; default 10), runs mean number "
        "of consecutive blocks (at least 1; default 8).",
    )
    seed: int = Field(
        DEFAULT_SEED, ge=0, lt=2**63, description="Seed, no unit; each worker derives its own. Equal seeds, equal I/O."
    )
    once_per_block: bool = Field(
        True,
        description="Visit every block once before any is visited again, as fio does. Default: true when uniform.",
    )

    @model_validator(mode="before")
    @classmethod
    def _follow_distribution(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        distribution = data.get("distribution", "uniform")
        theta = DEFAULT_THETA.get(distribution, 0.0) if isinstance(distribution, str) else 0.0
        return {"theta": theta, "once_per_block": distribution == "uniform", **data}


class Verify(BaseModel):
    """How data is verified."""

    model_config = _STRICT

    seed: int | None = Field(
        None, ge=0, lt=2**63, description="Seed of the pattern, no unit. Default: new each run, kept in the manifest."
    )
    generations: bool = Field(
        False, description="Count rewrites of each block, so that a lost rewrite is found; workers may not overlap."
    )


class Job(BaseModel):
    """One job. Sizes, rates and depths are per worker, as in fio; times are nanoseconds for Python code."""

    model_config = _STRICT

    name: f.Name = Field(description="Name of the job; part of its files' names.")
    backend: str | None = Field(
        None, min_length=1, description="Backend that moves the bytes. Default: the one installed besides noop."
    )
    backend_options: dict[str, dict[str, Any]] = Field(
        default_factory=dict, description="Options of backends, keyed by backend name; the others' are ignored."
    )
    plugins: dict[str, dict[str, Any]] = Field(
        default_factory=dict, description="Plugins that wrap this job, keyed by plugin name, with their options."
    )
    io_path: str = Field("auto", min_length=1, description="How the backend moves bytes; `gdsfw backends` lists them.")
    require_transport: Literal["p2p", "compat", "staged", "mapped", "host"] | None = Field(
        None, description="Way the bytes must take; otherwise the job fails before measuring."
    )
    devices: f.Devices | None = Field(
        None, description="Device ordinals that workers are spread over in turn, or `all`. Default: none, or device 0."
    )

    rw: f.Access = Field("read", description="Access pattern. `rw` is fio's spelling of readwrite.")
    rwmixread: f.PercentNumber = Field(50, description="Reads in a mixed pattern, in percent of the I/Os.")
    block_size: f.BlockSize = Field(
        single_block(4096),
        description="Bytes of one I/O: a size, a range, a weighted split, or a {read, write} pair of these.",
    )
    block_align: f.PositiveSize | None = Field(
        None, description="Random offsets are multiples of this many bytes. Default: the smallest block."
    )
    offset: f.SizeOrPercent = Field(0, description="Where in each file the range begins: bytes or percent of the file.")
    size: f.PositiveSizeOrPercent | None = Field(
        None,
        description="Range each worker covers, in bytes or percent of the file, shared out over its files. "
        "Default: existing files whole.",
    )
    io_size: f.PositiveSize | None = Field(
        None, description="Bytes after which a worker ends. Default: its size, or no limit with a runtime."
    )
    files: int = Field(1, ge=1, le=1_000_000, description="Files of each worker, a number.")
    filename: str | None = Field(None, min_length=1, description="The one file or device that all workers share.")
    files_from: f.Name | None = Field(None, description="Name of an earlier job whose files this job works on.")
    directory: str = Field(".", min_length=1, description="Folder of the files; a relative one is below the current.")
    share: Literal["all", "split"] = Field(
        "all", description="Whether each worker covers all of a shared range, or the workers split it."
    )
    file_service: Literal["roundrobin", "random", "sequential"] = Field(
        "roundrobin", description="Which of its files a worker's next I/O goes to."
    )
    file_handles: Literal["per_worker", "shared"] = Field(
        "shared", description="Whether each worker opens a shared file for itself."
    )
    unlink: bool = Field(False, description="Delete the files that gdsfw created when the job has ended.")
    numjobs: int = Field(1, ge=1, le=4096, description="Workers (threads), a number.")

    iodepth: int = Field(1, ge=1, le=65536, description="I/Os in flight per worker, a number.")
    iodepth_batch: int = Field(1, ge=1, le=65536, description="I/Os submitted and collected at once, a number.")
    direct: f.Direct = Field("auto", description="Bypass the page cache: true insists, auto tries and says.")
    invalidate: bool = Field(True, description="Drop the files from the page cache before the job.")
    sync: Literal["none", "dsync", "sync"] = Field("none", description="Open files with O_DSYNC or O_SYNC.")
    fsync: int = Field(0, ge=0, lt=2**63, description="fsync after this many writes; 0: never.")
    fdatasync: int = Field(0, ge=0, lt=2**63, description="fdatasync after this many writes; 0: never.")
    end_fsync: bool | None = Field(
        None, description="fsync at the end, inside the runtime. Default: true when the job writes."
    )
    runtime: f.PositiveDuration | None = Field(
        None, description="Time the job runs, over and over its size; with io_size, whichever comes first."
    )
    ramp_time: f.Duration = Field(0, description="Time at the start that is not measured, before the runtime.")
    loops: int = Field(1, ge=1, lt=2**31, description="Times the size (or io_size) is gone over, without a runtime.")
    rate: f.ByteRates | None = Field(None, description="Limit in bytes per second, for each direction on its own.")
    rate_iops: f.IopsRates | None = Field(None, description="Limit in I/Os per second, for each direction on its own.")
    rate_process: Literal["linear", "poisson"] = Field("linear", description="Arrivals under a rate: even or random.")
    think_time: f.Duration = Field(0, description="Pause after each I/O.")
    random: Random = Field(default_factory=Random, description="How random offsets, sizes and directions are drawn.")

    memory: Literal["auto", "host", "hugepage", "pinned", "device"] = Field(
        "auto", description="Kind of buffer. auto: the backend's own choice."
    )
    register_buffers: Literal["once", "per_io", "none"] = Field(
        "once", description="When buffers are registered with the backend's library."
    )
    buffer_offset: f.Size = Field(0, description="Where in the worker's buffer the first block begins, in bytes.")
    buffer_compress: f.PercentNumber = Field(0, description="Compressible part of written data, in percent.")
    buffer_dedupe: f.PercentNumber = Field(0, description="Written blocks that repeat earlier ones, in percent.")
    cpus: f.Cpus | None = Field(
        None, description="CPUs that the workers may run on; auto: one each, near the worker's device."
    )
    numa: Annotated[int, Field(ge=0, le=1023)] | None = Field(
        None, description="NUMA node, by number, whose CPUs the workers run on and whose memory they use."
    )

    verify: Annotated[Verify | None, f.VerifySwitch] = Field(
        None, description="Check every byte read against its pattern: true, or {seed, generations}."
    )
    io_timeout: f.PositiveDuration = Field(
        60_000_000_000, description="Time after which an I/O counts as stuck. Default 60s."
    )
    continue_on_error: bool = Field(False, description="Go on after a failed I/O.")
    max_errors: Annotated[int, Field(ge=1, lt=2**63)] | None = Field(
        None, description="Failed I/Os to carry on through with continue_on_error, a number. Default: no limit."
    )
    allow_overwrite: bool = Field(False, description="Existing data of yours in `filename` may be overwritten.")
    skip_space_check: bool = Field(False, description="Do not compare the space needed with the space free.")

    stage: f.Name | None = Field(None, description="Adjacent jobs of one stage run together.")
    stop_together: bool = Field(False, description="The stage ends with the first of its jobs, not the last.")
    sweep: f.SweepValues = Field(
        default_factory=dict, description="Lists of values by key; the job runs once for each combination, in order."
    )
    repeat: int = Field(1, ge=1, le=10_000, description="Times the job (or its whole stage) runs, a number.")
    percentiles: f.Percentiles = Field(
        DEFAULT_PERCENTILES, description="Latency percentiles to report, or none for no latencies at all."
    )
    timeline: f.Timeline = Field(1_000_000_000, description="Interval of the timeline, or none. Default 1s.")
    io_log: str | None = Field(None, min_length=1, description="File that gets one line per I/O.")

    def blocks(self, direction: Direction) -> BlockSizes:
        """Block sizes of one direction, in bytes."""
        return self.block_size.read if direction == "read" else self.block_size.write

    @property
    def directions(self) -> tuple[Direction, ...]:
        """The directions this job issues."""
        if self.rw in ("readwrite", "randrw"):
            return ("read", "write")
        return ("read",) if self.rw in ("read", "randread") else ("write",)

    @property
    def reads(self) -> bool:
        """Whether the job reads."""
        return "read" in self.directions

    @property
    def writes(self) -> bool:
        """Whether the job writes."""
        return "write" in self.directions

    @property
    def random_access(self) -> bool:
        """Whether offsets are random."""
        return self.rw.startswith("rand")

    @property
    def largest_block(self) -> int:
        """Largest block of the directions in use, in bytes."""
        return max(self.blocks(direction).largest for direction in self.directions)

    @property
    def smallest_block(self) -> int:
        """Smallest block of the directions in use, in bytes."""
        return min(self.blocks(direction).smallest for direction in self.directions)

    def rates(self, key: Literal["rate", "rate_iops"]) -> tuple[int, int]:
        """Limits per second for (reads, writes), in bytes or I/Os; 0 for none."""
        limits: Rates | None = self.rate if key == "rate" else self.rate_iops
        return (limits.read, limits.write) if limits else (0, 0)


@dataclass(frozen=True)
class Point:
    """One combination of a sweep: the values as written, and the job with them."""

    values: dict[str, str]
    job: Job


@dataclass(frozen=True)
class Workload:
    """A whole workload file, defaults merged into the jobs.

    Args:
        jobs: as written, in order; a sweep is still a list of values here.
        points: for each job, its combinations in order; one with no values when it has no sweep.
        source: the file it came from, for messages.
        defaults: what the file's `defaults` said, as plain values.
        places: file:line:column of (job name, dotted key), and of (job name, ""), for messages.
    """

    jobs: tuple[Job, ...]
    points: tuple[tuple[Point, ...], ...]
    source: str = field(default="workload", compare=False)
    version: int = 1
    defaults: Mapping[str, Any] = field(default_factory=dict, compare=False)
    places: Mapping[tuple[str, str], str] = field(default_factory=dict, compare=False)

    def place(self, job: str, key: str = "") -> str:
        """Where the job, or this (dotted) key of it, stands in the file; for messages."""
        while key:
            if (job, key) in self.places:
                return self.places[job, key]
            key = key[: max(0, key.rfind("."), key.rfind("["))]
        return self.places.get((job, ""), self.source)
