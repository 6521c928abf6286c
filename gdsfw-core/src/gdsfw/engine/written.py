"""What jobs leave in gdsfw's files, kept in the manifests: seeds and ranges of the verification pattern."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from gdsfw.engine.spec import EndedBy
from gdsfw.errors import UnavailableError
from gdsfw.storage.manifest import Manifest, merge_ranges

if TYPE_CHECKING:
    from gdsfw.engine.job import JobRun
    from gdsfw.workload.model import Job
    from gdsfw.workload.plan_model import FilePlan


def recorded_seed(job: Job, file: FilePlan) -> int:
    """Seed of the pattern that is in a file.

    Raises:
        UnavailableError: gdsfw knows of no pattern in the range that the job verifies.
    """
    path = Path(file.path)
    manifest = Manifest.load(path.parent)
    entry = manifest.entry(path.name)
    if entry is not None and entry.is_file(path.stat()) and entry.holds_pattern(file.start, file.length):
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
            for worker in run.workers:
                result = worker.outcome.result
                for index, start, length in (result.written or ()) if result else ():
                    if worker.worker_plan.files[index].path == name:
                        ranges.append((start, length))
        manifest.update(
            path.name,
            complete=entry.complete or (whole and covered),
            pattern_seed=seeds.get(name, 0),
            generations=bool(job.verify and job.verify.generations),
            written=merge_ranges(ranges),
        )
