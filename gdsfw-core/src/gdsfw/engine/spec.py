"""What one worker's loop is asked to do and what it reports, in terms that the C loop and the Python loop share."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Literal

from gdsfw.engine.ranges import check_spec

if TYPE_CHECKING:
    from gdsfw.backend import Buffer, IOPath
    from gdsfw.engine.histogram import Histogram
    from gdsfw.errors import Domain


class EndedBy(IntEnum):
    """What ended a worker's loop. Values are part of native/engine.h."""

    IO_SIZE = 0
    RUNTIME = 1
    STOP = 2
    ERROR = 3


@dataclass(frozen=True)
class BlockSizes:
    """Block sizes of one direction, in bytes: weighted choices, or a range [low, high] in steps of `step`.

    A single size is one choice of weight 1. With `step` non-zero, choices hold (low, 0) and (high, 0).
    """

    choices: tuple[tuple[int, int], ...]
    step: int = 0

    @property
    def smallest(self) -> int:
        """The smallest block that can be drawn."""
        return min(size for size, _ in self.choices)

    @property
    def largest(self) -> int:
        """The largest block that can be drawn."""
        return max(size for size, _ in self.choices)


@dataclass(frozen=True)
class LoopFile:
    """One file of the worker: the byte range it may touch, and what its verification pattern is made from.

    Args:
        pattern_seed: of this file (files laid out by different runs have different seeds); unused without verify.
        known: sorted, merged (start, length) ranges in bytes that hold the pattern; None when all of the file does.
            What is read elsewhere is not verified.
    """

    file_id: int
    start: int
    length: int
    pattern_seed: int = 0
    known: tuple[tuple[int, int], ...] | None = None


@dataclass(frozen=True)
class Distribution:
    """How random offsets are drawn. theta: zipf exponent, pareto h (power), normal deviation in percent of the range;
    for runs, the mean number of consecutive blocks."""

    kind: Literal["uniform", "zipf", "pareto", "normal", "runs"] = "uniform"
    theta: float = 0.0
    once_per_block: bool = True


@dataclass(frozen=True)
class Verify:
    """How to verify. `check` verifies reads, `generations` counts rewrites of a block in the pattern."""

    check: bool = True
    generations: bool = False


@dataclass(frozen=True)
class LoopSpec:
    """All that a loop needs. Sizes in bytes, times in nanoseconds, rates per second; 0 means "no limit" or "off".

    Args:
        rw: directions; with `readwrite` each I/O is a read with probability read_percent / 100.
        seed: of this worker; equal specs give equal sequences of (direction, size, file, offset).
        io_size: bytes after which the loop ends. 0: `loops` times the sum of the files' lengths.
        runtime_ns: time after which it ends, counted from the end of the ramp. With it and without an io_size the
            files are gone over again and again.
        ramp_ns: time at the start that is not counted.
        file_service: which file the next I/O goes to.
        fsync_every, fdatasync_every: flush after so many writes. end_fsync: flush at the end, inside the runtime.
        write_fill: `random` incompressible data, `zero`, or `pattern` (verify).
        compress_percent, dedupe_percent: share of each write buffer that is compressible / repeats an earlier block.
        error_limit: errors to carry on through; 0 stops at the first.
        io_log_path: an existing file that gets one line for each I/O (engine/io_log.py).
    """

    rw: Literal["read", "write", "readwrite"]
    random: bool
    read_blocks: BlockSizes
    write_blocks: BlockSizes
    block_align: int
    files: tuple[LoopFile, ...]
    seed: int
    read_percent: int = 50
    distribution: Distribution = field(default_factory=Distribution)
    file_service: Literal["roundrobin", "random", "sequential"] = "roundrobin"
    io_size: int = 0
    loops: int = 1
    runtime_ns: int = 0
    ramp_ns: int = 0
    iodepth: int = 1
    batch_submit: int = 1
    batch_complete: int = 1
    buffer_offset: int = 0
    slot_stride: int = 0
    rate_bytes: tuple[int, int] = (0, 0)
    rate_iops: tuple[int, int] = (0, 0)
    rate_process: Literal["linear", "poisson"] = "linear"
    think_time_ns: int = 0
    fsync_every: int = 0
    fdatasync_every: int = 0
    end_fsync: bool = False
    write_fill: Literal["random", "zero", "pattern"] = "random"
    compress_percent: int = 0
    dedupe_percent: int = 0
    verify: Verify | None = None
    error_limit: int = 0
    io_timeout_ns: int = 60_000_000_000
    latencies: bool = True
    register_per_io: bool = False
    io_log_path: str | None = None


@dataclass(frozen=True)
class LoopError:
    """One failed I/O: which call on which bytes, and the code in its domain."""

    operation: Literal["read", "write", "flush", "fill", "copy", "verify", "submit", "reap", "open", "register"]
    file_index: int
    file_offset: int
    size: int
    domain: Domain
    code: int


@dataclass(frozen=True)
class Mismatch:
    """First difference that verification found in a block."""

    file_index: int
    file_offset: int
    expected: bytes
    found: bytes
    bad_bytes: int


@dataclass
class DirectionStats:
    """Counts of one direction over the measured part, and its latency histograms in nanoseconds.

    clat: issue to completion; lat: from the scheduled start (differs from clat only with a rate or a queue);
    slat: the submission call (queues only). Empty histograms where not measured.
    """

    ios: int
    bytes: int
    short_ios: int
    errors: int
    clat: Histogram
    lat: Histogram
    slat: Histogram


@dataclass
class VerifyStats:
    """Bytes checked, bytes that should have been, and what was wrong.

    unknown_bytes: read beside those, where nobody can say what should be there: the pattern was never written, or a
    write failed.
    """

    checked_bytes: int = 0
    expected_bytes: int = 0
    checked_blocks: int = 0
    bad_blocks: int = 0
    mismatches: tuple[Mismatch, ...] = ()
    unknown_bytes: int = 0


@dataclass
class LoopResult:
    """What a worker's loop did.

    started_ns, ended_ns: CLOCK_MONOTONIC around the measured part (after the ramp).
    issued_bytes: bytes asked for in all, ramp included, so that totals can be checked against the kernel's.
    depth_histogram: completions seen with 1, 2, 4, 8 ... requests in flight.
    log_errno: why the I/O log is incomplete; 0 when it is not.
    written: (file_index, start, length) acknowledged as written, in order and merged; None when not tracked.
    """

    ended_by: EndedBy
    started_ns: int
    ended_ns: int
    read: DirectionStats
    write: DirectionStats
    errors: tuple[LoopError, ...] = ()
    error_count: int = 0
    verify: VerifyStats | None = None
    total_ios: int = 0
    total_bytes: int = 0
    depth_histogram: tuple[int, ...] = ()
    flushes: int = 0
    flush_ns: int = 0
    storage_ns: int = 0
    copy_ns: int = 0
    cpu_ns: int = 0
    written: tuple[tuple[int, int, int], ...] | None = None
    log_errno: int = 0

    @property
    def stopped_by_error(self) -> bool:
        """Whether an error ended the loop (and not only counted)."""
        return self.ended_by is EndedBy.ERROR


class Loop:
    """A prepared loop of one worker: `run` on the worker's thread, everything else from the main thread.

    `gdsfw.engine.native.NativeLoop` and `gdsfw.engine.python_loop.PythonLoop` implement it.

    Raises:
        UsageError: an offset, a length or a buffer range that no backend may be asked for.
    """

    def __init__(self, spec: LoopSpec, path: IOPath, buffer: Buffer) -> None:
        check_spec(spec, buffer)
        self.spec = spec
        self.path = path
        self.buffer = buffer

    def run(self) -> LoopResult:
        """Do the I/O; returns in every ending that is the I/O's own (errors are in the result)."""
        raise NotImplementedError

    def stop(self) -> None:
        """Ask the loop to end soon; safe from a signal handler and any thread."""
        raise NotImplementedError

    def live(self) -> Live:
        """A snapshot of the counters while the loop runs."""
        raise NotImplementedError


@dataclass(frozen=True)
class InFlight:
    """The oldest request in flight."""

    operation: str
    file_index: int
    file_offset: int
    size: int
    since_ns: int


@dataclass(frozen=True)
class Live:
    """Counters of a running loop: ramp included until `measuring`, then counted from zero again."""

    ios: tuple[int, int]
    bytes: tuple[int, int]
    errors: int
    measuring: bool
    in_flight: InFlight | None
