"""What will run: the resolved plan, as data. plan.py computes it; the runner, --plan and the result read it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gdsfw.backend import BackendInfo
    from gdsfw.workload.model import Job


@dataclass(frozen=True)
class FilePlan:
    """One file of one worker: the range [start, start + length) that the worker covers, in bytes.

    Args:
        nbytes: size the file has when the job's range is complete, at least start + length (0: decided at start).
        create: it is not there when the run begins; gdsfw creates it (layout for reads, the job itself for writes).
        owned: the file lies at a name that gdsfw makes up (`<job>.<worker>.<n>`), not one the user gave.
        decided_at_start: size and length come from a file that must exist first.
    """

    path: str
    file_id: int
    start: int
    length: int
    nbytes: int
    create: bool
    owned: bool
    decided_at_start: bool = False


@dataclass(frozen=True)
class WorkerPlan:
    """One worker: where it runs, what it touches, what it allocates.

    Args:
        io_size: bytes after which it ends, loops included; 0: as often over its files as JobPlan.planned_bytes says.
    """

    index: int
    files: tuple[FilePlan, ...]
    device: int | None
    cpus: tuple[int, ...]
    seed: int
    buffer_nbytes: int
    slot_stride: int
    io_size: int


def distinct(files: Iterable[tuple[FilePlan, ...]]) -> list[tuple[FilePlan, ...]]:
    """Each tuple once: workers that share all files share one tuple, and there may be many of both."""
    return list({id(some): some for some in files}.values())


@dataclass(frozen=True)
class JobPlan:
    """One job at one sweep point and repetition.

    Args:
        point: the sweep values of this run, e.g. {"block_size": "4KiB"}; empty without a sweep.
        repetition: number of the repeat, from 0.
        allow_destroy: block devices that may be overwritten, as the user named them.
    """

    job: Job
    backend: BackendInfo
    io_path: str
    workers: tuple[WorkerPlan, ...]
    point: dict[str, str] = field(default_factory=dict)
    repetition: int = 0
    iodepth: int = 1
    notes: tuple[str, ...] = ()
    allow_destroy: tuple[str, ...] = ()

    def distinct_files(self) -> list[tuple[FilePlan, ...]]:
        """The files of the workers, those that several workers share only once."""
        return distinct(worker.files for worker in self.workers)

    def planned_bytes(self, worker: WorkerPlan) -> int | None:
        """Bytes this worker moves unless a runtime ends it earlier; None when only the runtime says, or the files."""
        if worker.io_size:
            return worker.io_size
        if self.job.runtime or any(file.decided_at_start for file in worker.files):
            return None
        return self.job.loops * sum(file.length for file in worker.files)

    @property
    def label(self) -> str:
        """Name for tables and messages: job name, sweep point, repetition."""
        parts = [f"{key}={value}" for key, value in self.point.items()]
        if self.job.repeat > 1:
            parts.append(f"#{self.repetition + 1}")
        return f"{self.job.name} [{' '.join(parts)}]" if parts else self.job.name


@dataclass(frozen=True)
class StagePlan:
    """Jobs that run together from one barrier.

    Args:
        process: stages with one number may run in one process. More than one number in a plan: options that a
            library reads once per process differ, and each stage runs in a child process of its own.
    """

    jobs: tuple[JobPlan, ...]
    name: str | None = None
    stop_together: bool = False
    process: int = 0


@dataclass(frozen=True)
class Plan:
    """The whole run, in order."""

    stages: tuple[StagePlan, ...]
    source: str
    notes: tuple[str, ...] = ()

    @property
    def jobs(self) -> tuple[JobPlan, ...]:
        """Every job of every stage, in order."""
        return tuple(job for stage in self.stages for job in stage.jobs)

    @property
    def needs_children(self) -> bool:
        """Whether stages must run in processes of their own."""
        return len({stage.process for stage in self.stages}) > 1
