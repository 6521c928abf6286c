"""One stage: jobs that run together from one barrier, watched from the main thread."""

from __future__ import annotations

import resource
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gdsfw.engine.job import JobFailure, JobRun, LayoutProgress
from gdsfw.engine.worker import Gate
from gdsfw.errors import IOFailedError, StoppedError

if TYPE_CHECKING:
    from gdsfw.engine.spec import InFlight
    from gdsfw.engine.worker import WorkerThread

#: Seconds between two looks at the counters.
TICK = 0.1
#: Seconds a worker gets to come back after io_timeout before it is given up.
GRACE = 2.0
#: Seconds after which a worker that was asked to stop, and has not, is given up.
STOP_LIMIT = 10.0


@dataclass(frozen=True)
class Sample:
    """Counters of one job, summed over its workers, at `t_ns` (CLOCK_MONOTONIC)."""

    t_ns: int
    ios: tuple[int, int]
    bytes: tuple[int, int]
    measuring: bool
    errors: int = 0


@dataclass
class Usage:
    """CPU seconds of the whole process over the measured part of the stage."""

    user: float = 0.0
    system: float = 0.0


@dataclass
class StageWatch:
    """What happened in a stage beside the workers' own results."""

    samples: dict[int, list[Sample]] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    ready_ns: int = 0
    measured_ns: int = 0

    def keep(self, job: int, sample: Sample, interval: int | None) -> None:
        """Remember a sample when its interval (ns) has passed since the last one that measured, and the first one."""
        if interval is None or not sample.measuring:
            return
        track = self.samples[job]
        if not track or sample.t_ns - track[-1].t_ns >= interval:
            track.append(sample)


class StageRun:
    """Runs the jobs of one stage.

    Args:
        jobs: prepared, not opened.
        stop_together: end all jobs when the first one ends.
        interrupted: set by the signal handler; looked at on every tick.
        observe: called on every tick with a job and its newest sample, for the progress line.
    """

    def __init__(
        self,
        jobs: Sequence[JobRun],
        *,
        stop_together: bool,
        interrupted: threading.Event,
        observe: Callable[[JobRun, Sample], None],
    ) -> None:
        self.jobs = jobs
        self.watch = StageWatch({index: [] for index in range(len(jobs))})
        self._stop_together = stop_together
        self._interrupted = interrupted
        self._observe = observe
        self._changed = threading.Event()
        self._stopped_ns = 0  # when the user asked to stop
        self._usage_before = resource.getrusage(resource.RUSAGE_SELF)

    def run(self, layout: LayoutProgress) -> None:
        """Open, run and close every job; failures stay with their job."""
        began = time.monotonic()
        gate = Gate(sum(len(job.plan.workers) for job in self.jobs), self._on_ready, self._on_measured)
        try:
            if self._open(gate, layout):
                self._run_workers(gate, began)
        finally:
            for job in self.jobs:
                job.close()

    def _open(self, gate: Gate, layout: LayoutProgress) -> bool:
        """Open every job of the stage; a job that fails takes the stage with it, since they start together."""
        for job in self.jobs:
            try:
                job.open(layout)
                job.make_workers(gate, self._changed.set)
            except StoppedError:
                return False
            except Exception as error:
                job.failure = JobFailure(error, measuring=False)
                return False
            if self._interrupted.is_set():
                return False
        return True

    def _run_workers(self, gate: Gate, began: float) -> None:
        workers = [worker for job in self.jobs for worker in job.workers]
        for worker in workers:
            worker.start()
        while not all(worker.outcome.finished or worker.outcome.abandoned for worker in workers):
            self._changed.wait(min(TICK, self._seconds_to_boundary()))
            self._changed.clear()
            self._sample()
            self._react(gate, workers)
        for worker in workers:
            if not worker.outcome.abandoned:
                worker.join(GRACE)
        self._record_phases(began)

    def _react(self, gate: Gate, workers: Sequence[WorkerThread]) -> None:
        if self._interrupted.is_set():
            self._stopped_ns = self._stopped_ns or time.monotonic_ns()
            gate.abort_start()
            for worker in workers:
                worker.stop()
        for job in self.jobs:
            self._stop_failed(job)
            self._judge_timeouts(job, gate)
        if self._stop_together and any(self._ended(job) for job in self.jobs):
            for worker in workers:
                worker.stop()

    def _ended(self, job: JobRun) -> bool:
        return all(worker.outcome.result is not None or worker.outcome.finished for worker in job.workers)

    def _stop_failed(self, job: JobRun) -> None:
        """A worker that failed stops its job, unless the job goes on through errors."""
        for worker in job.workers:
            result = worker.outcome.result
            failed = worker.outcome.error is not None or (result is not None and result.stopped_by_error)
            if failed:
                for other in job.workers:
                    other.stop()

    def _judge_timeouts(self, job: JobRun, gate: Gate) -> None:
        """A stuck call cannot report itself: the main thread compares its start with the clock."""
        now = time.monotonic_ns()
        for worker in job.workers:
            if worker.outcome.finished or worker.outcome.abandoned:
                continue
            error = self._stuck(job, worker, now)
            if error is None:
                continue
            for other in job.workers:
                other.stop()
            if not worker.returns_within(GRACE):
                worker.abandon()
                gate.abort()
                job.failure = JobFailure(error, measuring=True)

    def _stuck(self, job: JobRun, worker: WorkerThread, now: int) -> IOFailedError | None:
        """Why a worker counts as stuck: an I/O in flight for too long, a queue that does not open, a stop unheeded."""
        limit = job.plan.job.io_timeout
        live = worker.loop.live() if worker.loop is not None else None
        if live is not None and live.in_flight is not None and now - live.in_flight.since_ns >= limit:
            return _timeout_error(job, worker, live.in_flight, now)
        silent = live is not None and live.in_flight is None and not any(live.ios) and worker.outcome.result is None
        if silent and job.started_ns and now - job.started_ns >= limit:
            return _silent_error(job, "has issued no I/O", limit)
        stopped = self._stopped_ns
        if stopped and now - stopped >= STOP_LIMIT * 10**9 and worker.outcome.result is None:
            return _silent_error(job, "does not stop", int(STOP_LIMIT * 10**9))
        return None

    def _sample(self) -> None:
        now = time.monotonic_ns()
        for index, job in enumerate(self.jobs):
            live = job.live()
            sample = Sample(
                now,
                (sum(w.ios[0] for w in live), sum(w.ios[1] for w in live)),
                (sum(w.bytes[0] for w in live), sum(w.bytes[1] for w in live)),
                bool(live) and all(w.measuring for w in live),
                sum(w.errors for w in live),
            )
            self._observe(job, sample)
            self.watch.keep(index, sample, job.plan.job.timeline)

    def _seconds_to_boundary(self) -> float:
        """Time until the next sample that the timeline keeps, so that its intervals are as even as they can be."""
        now = time.monotonic_ns()
        due = [
            track[-1].t_ns + job.plan.job.timeline - now
            for job, track in zip(self.jobs, self.watch.samples.values(), strict=True)
            if track and job.plan.job.timeline
        ]
        return max(0.001, min(due, default=10**9) / 1e9)

    def _on_ready(self) -> None:
        self.watch.ready_ns = time.monotonic_ns()
        for job in self.jobs:
            job.started_ns = self.watch.ready_ns
        self._usage_before = resource.getrusage(resource.RUSAGE_SELF)

    def _on_measured(self) -> None:
        self.watch.measured_ns = time.monotonic_ns()
        after = resource.getrusage(resource.RUSAGE_SELF)
        self.watch.usage = Usage(
            after.ru_utime - self._usage_before.ru_utime, after.ru_stime - self._usage_before.ru_stime
        )

    def _record_phases(self, began: float) -> None:
        ended = time.monotonic()
        ready = self.watch.ready_ns / 1e9 or ended
        measured = self.watch.measured_ns / 1e9 or ended
        for job in self.jobs:
            job.phases.setup = max(0.0, ready - began - job.phases.layout)
            job.phases.ramp = job.plan.job.ramp_time / 1e9
            job.phases.measured = max(0.0, measured - ready - job.phases.ramp)
            job.phases.teardown = max(0.0, ended - measured)


def _timeout_error(job: JobRun, worker: WorkerThread, stuck: InFlight, now: int) -> IOFailedError:
    name = worker.worker_plan.files[stuck.file_index].path
    waited = (now - stuck.since_ns) / 1e9
    return IOFailedError(
        f"job {job.plan.job.name}: {stuck.operation} of {stuck.size} bytes at offset {stuck.file_offset} of {name} "
        f"has been in flight for {waited:.0f} s (io_timeout {job.plan.job.io_timeout / 1e9:.0f} s)",
        hint="the device or the library under it does not answer; the worker is left behind and the process ends",
    )


def _silent_error(job: JobRun, what: str, after_ns: int) -> IOFailedError:
    return IOFailedError(
        f"job {job.plan.job.name}: a worker {what} after {after_ns / 1e9:.0f} s",
        hint="a call into the backend's library does not return; the worker is left behind and the process ends",
    )
