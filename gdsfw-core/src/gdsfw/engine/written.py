"""What jobs leave in files: seeds and ranges of the verification pattern.

Kept in the manifests. For backends with names of their own, whose data lives as long as the process, and for block
devices, beside which no manifest can lie, in the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gdsfw.engine.spec import EndedBy
from gdsfw.errors import UnavailableError
from gdsfw.storage.identity import identify
from gdsfw.storage.manifest import Manifest, merge_ranges

if TYPE_CHECKING:
    from gdsfw.engine.job import JobRun
    from gdsfw.workload.model import Job


@dataclass(frozen=True)
class Recorded:
    """The pattern in a file: its seed, and the merged (start, length) ranges in bytes that hold it."""

    seed: int = 0
    ranges: tuple[tuple[int, int], ...] = ()

    def known(self, start: int, length: int) -> tuple[tuple[int, int], ...] | None:
        """The ranges, for a loop that goes over these bytes; None when all of them hold the pattern."""
        whole = any(at <= start and start + length <= at + size for at, size in self.ranges)
        return None if whole else self.ranges

    def reaches(self, wanted: Iterable[tuple[int, int]]) -> bool:
        """Whether a byte of these (start, length) ranges holds the pattern."""
        return any(at < start + length and start < at + size for start, length in wanted for at, size in self.ranges)


class OwnPatterns:
    """Patterns that the run keeps: in the files of backends with names of their own, and on block devices."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Recorded] = {}

    def find(self, job: Job, path: str, wanted: Sequence[tuple[int, int]]) -> Recorded:
        """The pattern in a file, of which the job verifies the (start, length) ranges `wanted`.

        Raises:
            UnavailableError: no earlier job of this run wrote a pattern there.
        """
        recorded = self._known.get((str(job.backend), path), Recorded())
        if recorded.reaches(wanted):
            return recorded
        raise UnavailableError(
            f"job {job.name}: verify: no earlier job of this run wrote the pattern into {path} {_extent(wanted)}",
            hint="write it first, in the same run, with `verify: true`",
        )

    def record(self, run: JobRun, names: Iterable[str], seeds: Mapping[str, int]) -> None:
        """Note what these files of a job that wrote hold now: the pattern where this job verified."""
        for name in names:
            key = (run.plan.backend.name, name)
            kept = self._known.get(key, Recorded()).ranges if _keeps_pattern(run.plan.job) else ()
            if run.plan.job.verify is None:
                self._known.pop(key, None)
            else:
                ranges = merge_ranges([*kept, *_acknowledged(run, name)])
                self._known[key] = Recorded(seeds.get(name, 0), ranges)


def _acknowledged(run: JobRun, name: str) -> list[tuple[int, int]]:
    """Ranges of a file that the workers' loops say are written with the pattern."""
    return [
        (start, length)
        for worker in run.workers
        for index, start, length in (worker.outcome.result.written or () if worker.outcome.result else ())
        if worker.worker_plan.files[index].path == name
    ]


def _unrecorded(run: JobRun, name: str) -> list[str]:
    """A note when a loop wrote more ranges than it can name."""
    if run.plan.job.verify and run.plan.job.verify.generations:
        return [f"{name}: its blocks count their rewrites, so only the job that wrote them can verify them"]
    lost = any(
        worker.outcome.result is not None
        and worker.outcome.result.written is None
        and any(file.path == name for file in worker.worker_plan.files)
        for worker in run.workers
    )
    return [f"{name}: too many separate blocks were written to keep a record; they cannot be verified later"] * lost


def _keeps_pattern(job: Job) -> bool:
    """Whether what held the pattern before a job that writes still does: it repeats the same bytes."""
    return job.reads and bool(job.verify) and not (job.verify and job.verify.generations)


def _extent(wanted: Sequence[tuple[int, int]]) -> str:
    return f"from {min(start for start, _ in wanted)} to {max(start + length for start, length in wanted)}"


def recorded_pattern(job: Job, name: str, wanted: Sequence[tuple[int, int]]) -> Recorded:
    """The pattern in a file, of which the job verifies the (start, length) ranges `wanted`.

    Raises:
        UnavailableError: gdsfw knows of no pattern there.
    """
    path = Path(name)
    manifest = Manifest.load(path.parent)
    entry = manifest.entry(path.name)
    if entry is not None and entry.is_file(identify(path)):
        recorded = Recorded(entry.pattern_seed, entry.written)
        if recorded.reaches(wanted):
            return recorded
    doubt = f" ({manifest.distrust})" if manifest.distrust else ""
    raise UnavailableError(
        f"job {job.name}: verify: nothing of {path} is known to hold the pattern {_extent(wanted)}{doubt}",
        hint="write it first with `verify: true`, or leave out `filename` and `files_from` so that it is laid out",
    )


def forget_overwritten(run: JobRun) -> None:
    """Before a job writes: what it replaces is not taken for the old pattern, even if the process is killed."""
    if _keeps_pattern(run.plan.job):
        return
    for name in run.paths:
        path = Path(name)
        if run.patterns_in_run(name):
            continue
        manifest = Manifest.load(path.parent)
        entry = manifest.entry(path.name)
        if entry is not None and entry.written:
            manifest.update(path.name, written=())


def record_written(run: JobRun, names: Iterable[str], seeds: Mapping[str, int]) -> None:
    """Note what these files of a job hold now: the pattern where this job verified, else other data."""
    job = run.plan.job
    for name in names:
        planned = run.paths[name]
        path = Path(name)
        manifest = Manifest.load(path.parent)
        entry = manifest.entry(path.name)
        if entry is None:
            continue
        results = [worker.outcome.result for worker in run.workers]
        whole = all(result is not None and result.ended_by is EndedBy.IO_SIZE for result in results)
        covered = planned.start == 0 and not job.io_size and job.share == "all" and job.offset == 0
        ranges = list(entry.written) if _keeps_pattern(job) else []
        if job.verify is not None:
            ranges += _acknowledged(run, name)
            run.notes += _unrecorded(run, name)
        manifest.update(
            path.name,
            complete=entry.complete or (whole and covered),
            pattern_seed=seeds.get(name, 0),
            generations=bool(job.verify and job.verify.generations),
            written=merge_ranges(ranges),
        )
