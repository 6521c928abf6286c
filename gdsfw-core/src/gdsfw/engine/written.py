"""What jobs leave in files: seeds and ranges of the verification pattern.

Kept in the manifests; for backends with names of their own, whose data lives as long as the process, in the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from gdsfw.engine.spec import EndedBy
from gdsfw.errors import UnavailableError
from gdsfw.storage.identity import identify
from gdsfw.storage.manifest import Manifest, merge_ranges

if TYPE_CHECKING:
    from gdsfw.engine.job import JobRun
    from gdsfw.workload.model import Job
    from gdsfw.workload.plan_model import FilePlan


class OwnPatterns:
    """Patterns in the files of backends with names of their own."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], tuple[int, tuple[tuple[int, int], ...]]] = {}

    def seed(self, job: Job, file: FilePlan) -> int:
        """Seed of the pattern that is in a file.

        Raises:
            UnavailableError: no earlier job of this run wrote a pattern into the range that the job verifies.
        """
        seed, ranges = self._known.get((str(job.backend), file.path), (0, ()))
        if any(at <= file.start and file.start + file.length <= at + size for at, size in ranges):
            return seed
        raise UnavailableError(
            f"job {job.name}: verify: no earlier job of this run wrote the pattern into {file.path} from {file.start} "
            f"to {file.start + file.length}",
            hint="write it first, in the same run, with `verify: true`",
        )

    def record(self, run: JobRun, seeds: Mapping[str, int]) -> None:
        """Note for every file of a job that wrote what it holds now: the pattern where this job verified."""
        for name in run.paths:
            key = (run.plan.backend.name, name)
            kept = self._known.get(key, (0, ()))[1] if run.plan.job.reads else ()
            if run.plan.job.verify is None:
                self._known.pop(key, None)
            else:
                self._known[key] = seeds.get(name, 0), merge_ranges([*kept, *_acknowledged(run, name)])


def _acknowledged(run: JobRun, name: str) -> list[tuple[int, int]]:
    """Ranges of a file that the workers' loops say are written with the pattern."""
    return [
        (start, length)
        for worker in run.workers
        for index, start, length in (worker.outcome.result.written or () if worker.outcome.result else ())
        if worker.worker_plan.files[index].path == name
    ]


def recorded_seed(job: Job, file: FilePlan) -> int:
    """Seed of the pattern that is in a file.

    Raises:
        UnavailableError: gdsfw knows of no pattern in the range that the job verifies.
    """
    path = Path(file.path)
    manifest = Manifest.load(path.parent)
    entry = manifest.entry(path.name)
    if entry is not None and entry.is_file(identify(path)) and entry.holds_pattern(file.start, file.length):
        return entry.pattern_seed
    known = sum(length for _, length in entry.written) if entry else 0
    doubt = f" ({manifest.distrust})" if manifest.distrust else ""
    raise UnavailableError(
        f"job {job.name}: verify: {path} is not known to hold the pattern from {file.start} to "
        f"{file.start + file.length}; {known} bytes of it are{doubt}",
        hint="write it first with `verify: true`, or leave out `filename` and `files_from` so that it is laid out",
    )


def record_written(run: JobRun, seeds: Mapping[str, int]) -> None:
    """Note for every file of a job what it holds now: the pattern where this job verified, else other data."""
    job = run.plan.job
    for name, planned in run.paths.items():
        path = Path(name)
        manifest = Manifest.load(path.parent)
        entry = manifest.entry(path.name)
        if entry is None:
            continue
        results = [worker.outcome.result for worker in run.workers]
        whole = all(result is not None and result.ended_by is EndedBy.IO_SIZE for result in results)
        covered = planned.start == 0 and not job.io_size and job.share == "all" and job.offset == 0
        ranges = list(entry.written) if job.reads and job.verify else []
        if job.verify is not None:
            ranges += _acknowledged(run, name)
        manifest.update(
            path.name,
            complete=entry.complete or (whole and covered),
            pattern_seed=seeds.get(name, 0),
            generations=bool(job.verify and job.verify.generations),
            written=merge_ranges(ranges),
        )
