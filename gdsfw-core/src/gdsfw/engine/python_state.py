"""State of a running Python loop: its begin, its end, its clock and its accounts. The twin of native/worker.c."""

from __future__ import annotations

import errno
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from gdsfw.engine.histogram import Histogram
from gdsfw.engine.io_log import IoLog
from gdsfw.engine.offsets import READ, WRITE, IOSequence, PlannedIO
from gdsfw.engine.pace import paces
from gdsfw.engine.python_memory import Memory
from gdsfw.engine.spec import DirectionStats, EndedBy, LoopError, LoopResult
from gdsfw.engine.track import TooLargeError, Track, generations_too_large
from gdsfw.errors import BackendError, Domain, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gdsfw.backend import Buffer, FileHandle, PythonIO
    from gdsfw.engine.spec import LoopSpec

    Operation = Literal["read", "write", "flush", "fill", "copy", "verify", "submit", "reap", "open", "register"]

#: Errors that are described; the rest is counted.
DESCRIBED = 16
#: Merged ranges of acknowledged writes that are reported; more than that are not worth a manifest entry each.
MOST_RANGES = 1 << 14
#: A deadline that never comes, a size that no block has.
NEVER = 2**64 - 1
#: A sleeping thread wakes up this late; the rest of a wait is spun.
WAKE_LATE_NS = 100_000
#: Longest sleep, in ns: a stop is noticed after that.
LONGEST_SLEEP_NS = 5_000_000

#: Names of the directions READ and WRITE.
NAMES: tuple[Literal["read"], Literal["write"]] = ("read", "write")

now_ns = time.monotonic_ns


class Verdict(NamedTuple):
    """Why a call failed."""

    domain: Domain
    code: int


def verdict_of(error: OSError | BackendError) -> Verdict:
    """The error code of a failure of a Python path."""
    if isinstance(error, BackendError):
        return Verdict(error.domain, error.code)
    return Verdict(Domain.ERRNO, error.errno or errno.EIO)


@dataclass(slots=True)
class Finished:
    """An I/O that has ended: `moved` bytes of it, all of them unless `verdict` says why not. Times in ns.

    Args:
        scheduled_ns: 0 without a rate for its direction.
    """

    io: PlannedIO
    slot: int
    scheduled_ns: int = 0
    started_ns: int = 0
    issued_ns: int = 0
    done_ns: int = 0
    moved: int = 0
    was_short: bool = False
    verdict: Verdict | None = None


@dataclass(slots=True)
class Tally:
    """What the measured part counts beside the live counters, for one direction."""

    short_ios: int = 0
    errors: int = 0
    clat: Histogram = field(default_factory=Histogram)
    lat: Histogram = field(default_factory=Histogram)
    slat: Histogram = field(default_factory=Histogram)


class LoopState:
    """One run of a loop.

    The main thread reads ios, bytes, errors, measuring and in_flight meanwhile, and sets stopping.

    Raises:
        UsageError: the path lacks a method that the job needs, or verification takes too much memory.
        ValueError: the spec cannot issue anything.
    """

    def __init__(self, spec: LoopSpec, io: PythonIO, files: Sequence[FileHandle], buffer: Buffer) -> None:
        self.spec = spec
        self.io: Any = io
        self.max_transfer: int = getattr(io, "max_transfer", 0) or NEVER
        self.files = tuple(files)
        self.sequence = IOSequence(spec)
        self.writes = spec.rw != "read"
        self.checks = spec.verify is not None and spec.verify.check
        self.track = self._make_track()
        self.memory = Memory(spec, io, buffer, self.track)
        self._refuse_missing_methods()
        self.queued = hasattr(io, "submit") and hasattr(io, "reap")
        self.paces = paces(spec)
        self.paced = any(pace.limits for pace in self.paces)
        self._separate_lat = self.paced or self.queued
        self._unsynced = [False] * len(self.files)
        self._writes_to_fsync = spec.fsync_every
        self._writes_to_fdatasync = spec.fdatasync_every
        self._failures: list[LoopError] = []
        self._failure_count = 0
        self._totals = [0, 0]
        self.stopping = False
        self.ended_by: EndedBy | None = None
        self.measuring = False
        self.in_flight: tuple[Operation, PlannedIO, int] | None = None
        self.deadline_ns = NEVER
        self._begun_ns = 0
        self._clear()
        self._log: IoLog | None = None

    def _make_track(self) -> Track | None:
        spec = self.spec
        generations = spec.verify is not None and spec.verify.generations
        if not generations and not (self.writes and spec.write_fill == "pattern"):
            return None
        try:
            return Track(spec, self.sequence.cell if self.sequence.once else 0, generations=generations)
        except TooLargeError:
            if generations:
                raise generations_too_large() from None
            return None  # without the record of what was written the job still runs

    def _refuse_missing_methods(self) -> None:
        spec = self.spec
        needs = {
            "flush": self.writes and (spec.fsync_every or spec.fdatasync_every or spec.end_fsync),
            "register_buffer": spec.register_per_io,
            "deregister_buffer": spec.register_per_io,
            "fill": self.writes and spec.write_fill == "pattern" and not self.memory.can_fill,
            "verify": self.checks and not self.memory.can_verify,
        }
        for name, needed in needs.items():
            if needed and not hasattr(self.io, name):
                raise UsageError(
                    f"the I/O path has no method {name}, which this job needs",
                    hint="leave out fsync, fdatasync, end_fsync, verify, register_buffers: per_io, or change io_path",
                )

    def _clear(self) -> None:
        """Counters that begin at zero with the measured part."""
        self.ios = [0, 0]
        self.bytes = [0, 0]
        self.errors = 0
        self.tallies = (Tally(), Tally())
        self.flushes = self.flush_ns = self.storage_ns = self.copy_ns = 0
        self.depths = [0] * 16

    # ---- begin and end ----

    def begin(self) -> None:
        """Open the log, fill the buffer, start the clock.

        Raises:
            UnavailableError: the I/O log cannot be opened.
        """
        if self.spec.io_log_path:
            self._log = IoLog(self.spec.io_log_path)
        try:
            self.memory.fill_slots()
        except (OSError, BackendError) as error:
            self.fail(self.memory.filling, PlannedIO(READ, 0, 0, 0), verdict_of(error))
        now = self._begun_ns = now_ns()
        for pace in self.paces:
            pace.start_ns = now
        if self.spec.ramp_ns:
            self.deadline_ns = now + self.spec.ramp_ns
        else:
            self._begin_measuring(now)

    def _begin_measuring(self, now: int) -> None:
        self._add_totals()
        self._clear()
        self.measuring = True
        self.started_ns = now
        self.deadline_ns = now + self.spec.runtime_ns if self.spec.runtime_ns else NEVER
        self._cpu_start = time.thread_time_ns()

    def _add_totals(self) -> None:
        self._totals[0] += sum(self.ios)
        self._totals[1] += sum(self.bytes)

    def finish(self) -> LoopResult:
        """Flush if asked to, stop the clock and sum up."""
        if self.spec.end_fsync and self.ended_by is not EndedBy.ERROR and not self.flush(data_only=False):
            self.ended_by = EndedBy.ERROR
        self.in_flight = None
        now = now_ns()
        if not self.measuring:
            self._begin_measuring(now)
        cpu_ns = time.thread_time_ns() - self._cpu_start
        self._add_totals()
        assert self.ended_by is not None
        return LoopResult(
            ended_by=self.ended_by,
            started_ns=self.started_ns,
            ended_ns=now,
            read=self._stats(READ),
            write=self._stats(WRITE),
            errors=tuple(self._failures),
            error_count=self._failure_count,
            verify=self.memory.stats if self.spec.verify is not None else None,
            total_ios=self._totals[0],
            total_bytes=self._totals[1],
            depth_histogram=self._depths(),
            flushes=self.flushes,
            flush_ns=self.flush_ns,
            storage_ns=self.storage_ns,
            copy_ns=self.copy_ns,
            cpu_ns=cpu_ns,
            written=self._written(),
            log_errno=self._log_errno(),
        )

    def _log_errno(self) -> int:
        if self._log is None:
            return 0
        self._log.flush()
        return self._log.error

    def close(self) -> None:
        """Close the I/O log."""
        if self._log is not None:
            self._log.close()

    def _stats(self, direction: int) -> DirectionStats:
        tally = self.tallies[direction]
        lat = tally.lat if self._separate_lat else Histogram.merged([tally.clat])
        return DirectionStats(
            self.ios[direction], self.bytes[direction], tally.short_ios, tally.errors, tally.clat, lat, tally.slat
        )

    def _depths(self) -> tuple[int, ...]:
        used = max((i + 1 for i, count in enumerate(self.depths) if count), default=0)
        return tuple(self.depths[:used])

    def _written(self) -> tuple[tuple[int, int, int], ...] | None:
        if self.track is None or self.track.generations:
            return None
        ranges = self.track.ranges()
        return ranges if len(ranges) <= MOST_RANGES else None

    # ---- control ----

    def end(self, reason: EndedBy) -> None:
        """End the loop for a reason; the first reason stays."""
        if self.ended_by is None:
            self.ended_by = reason

    def goes_on(self) -> bool:
        """Look at the stop flag and the clock."""
        if self.stopping:
            self.end(EndedBy.STOP)
            return False
        return self.deadline_ns == NEVER or (now := now_ns()) < self.deadline_ns or self._deadline(now)

    def _deadline(self, now: int) -> bool:
        """deadline_ns has come: the measured part begins, or it is over (False)."""
        if not self.measuring:
            self._begin_measuring(now)
            return True
        self.end(EndedBy.RUNTIME)
        return False

    def wait(self, until_ns: int) -> bool:
        """Sleep until then; False when the loop is to end before."""
        while (now := now_ns()) < until_ns:
            if not self.goes_on():
                return False
            left = min(until_ns, self.deadline_ns) - now - WAKE_LATE_NS
            if left > 0:
                time.sleep(min(left, LONGEST_SLEEP_NS) / 1e9)
        return True

    def schedule(self, io: PlannedIO) -> int:
        """When the I/O is to start (ns), 0 without a rate for its direction."""
        pace = self.paces[io.direction]
        return pace.schedule(io.size) if pace.limits else 0

    # ---- accounts ----

    def fail(self, operation: Operation, io: PlannedIO, verdict: Verdict) -> bool:
        """Record a failed call; False when that ends the loop."""
        if len(self._failures) < DESCRIBED:
            self._failures.append(LoopError(operation, io.file, io.offset, io.size, verdict.domain, verdict.code))
        self._failure_count += 1
        self.tallies[io.direction].errors += 1
        self.errors += 1
        if self._failure_count <= self.spec.error_limit:
            return True
        self.end(EndedBy.ERROR)
        return False

    def complete(self, done: Finished) -> bool:
        """Account for an I/O that has ended: log, counts, latencies, flushes, verification; False ends the loop."""
        io = done.io
        if self._log is not None:
            self._log_io(self._log, done)
        # A write that failed may have moved a part.
        self._unsynced[io.file] |= io.direction == WRITE
        if done.verdict is not None:
            self._totals[1] += done.moved
            if io.direction == WRITE and self.track is not None:
                self.track.written(io, acknowledged=False)
            return self.fail(NAMES[io.direction], io, done.verdict)
        self.ios[io.direction] += 1
        self.bytes[io.direction] += io.size
        tally = self.tallies[io.direction]
        tally.short_ios += done.was_short
        if self.spec.latencies:
            self._record_latencies(tally, done)
        if io.direction == WRITE:
            return self._after_write(io)
        return not self.checks or self.memory.check(io, done.slot, lambda error: self._unverified(io, error))

    def withdraw(self, block: Finished) -> None:
        """Asked to end early, this block is neither done nor an error."""
        self._totals[1] += block.moved
        if block.io.direction == WRITE and self.track is not None:
            self.track.written(block.io, acknowledged=False)

    def _record_latencies(self, tally: Tally, done: Finished) -> None:
        tally.clat.record(done.done_ns - done.issued_ns)
        if self._separate_lat:
            tally.lat.record(done.done_ns - (done.scheduled_ns or done.started_ns))
        if self.queued:
            tally.slat.record(done.issued_ns - done.started_ns)

    def _after_write(self, io: PlannedIO) -> bool:
        if self.track is not None:
            self.track.written(io, acknowledged=True)
        if self._writes_to_fsync:
            self._writes_to_fsync -= 1
            if self._writes_to_fsync == 0:
                self._writes_to_fsync = self.spec.fsync_every
                return self.flush(data_only=False)
        if self._writes_to_fdatasync:
            self._writes_to_fdatasync -= 1
            if self._writes_to_fdatasync == 0:
                self._writes_to_fdatasync = self.spec.fdatasync_every
                return self.flush(data_only=True)
        return True

    def _unverified(self, io: PlannedIO, error: OSError | BackendError) -> bool:
        return self.fail("verify", io, verdict_of(error))

    def _log_io(self, log: IoLog, done: Finished) -> None:
        io = done.io
        domain, code = done.verdict or (0, 0)
        latency = done.done_ns - (done.scheduled_ns or done.started_ns)
        place = f"{NAMES[io.direction]},{io.file},{io.offset},{io.size}"
        log.add(f"{done.done_ns - self._begun_ns},{place},{latency},{int(domain)},{code}\n")

    def flush(self, *, data_only: bool) -> bool:
        """Flush every file written to since the last time; False when that ends the loop."""
        for index, file in enumerate(self.files):
            if not self._unsynced[index]:
                continue
            self._unsynced[index] = False
            io = PlannedIO(WRITE, index, 0, 0)
            before = now_ns()
            self.in_flight = ("flush", io, before)
            verdict = attempt(self.io.flush, file, data_only)
            self.in_flight = None
            self.flush_ns += now_ns() - before
            self.flushes += 1
            if verdict is not None and not self.fail("flush", io, verdict):
                return False
        return True


def attempt(call: Callable[..., Any], *arguments: Any) -> Verdict | None:
    """Call a method of a path; why it failed, or None."""
    try:
        call(*arguments)
    except (OSError, BackendError) as error:
        return verdict_of(error)
    return None
