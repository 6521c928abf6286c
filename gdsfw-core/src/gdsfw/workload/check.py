"""Compare a plan with the machine before anything is touched: space, memory, alignment, writers in each other's way."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gdsfw.workload.complaints import Complaints
from gdsfw.workload.locked import HINT, beyond_limit, insists
from gdsfw.workload.units import approximate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gdsfw.backend import Alignment
    from gdsfw.workload.machine import Machine
    from gdsfw.workload.model import Job, Workload
    from gdsfw.workload.plan_model import FilePlan, JobPlan, Plan, StagePlan, WorkerPlan

#: Kinds of buffer that take the host's memory.
HOST_MEMORY = ("host", "hugepage", "pinned")
#: st_blocks counts these, whatever the file system's own blocks are.
STAT_BLOCK = 512


def check_plan(plan: Plan, workload: Workload, machine: Machine) -> None:
    """Complain about everything that would not fit.

    Raises:
        WorkloadError: what does not fit, with both numbers (exit 2).
    """
    complaints = Complaints(workload)
    _check_space(plan, machine, complaints)
    for stage in plan.stages:
        _check_memory(stage, machine, complaints)
        _check_writers(stage, complaints)
    for job in plan.jobs:
        _check_alignment(job, machine, complaints)
        _check_page_cache(job, complaints)
        _check_locked_memory(job, machine, complaints)
    _check_processes(plan, complaints)
    complaints.raise_if_any()


def _check_space(plan: Plan, machine: Machine, complaints: Complaints) -> None:
    """Space that files will take beyond what they have, at the fullest moment, for each file system."""
    space = _Space(machine)
    for stage in plan.stages:
        for job in stage.jobs:
            if job.backend.namespace == "files" and not job.job.skip_space_check:
                for path, file in _distinct_files(job).items():
                    space.fill(path, file.nbytes, job.job.name)
        for job in stage.jobs:
            if job.job.unlink:
                for path in _distinct_files(job):
                    space.free(path)
    for system in space.systems.values():
        if system.peak > system.available:
            message = (
                f"{approximate(system.peak)} needed on the file system of {system.folder}, "
                f"{approximate(system.available)} free ({system.peak} and {system.available} bytes)"
            )
            hint = "make size smaller, free space, or say skip_space_check: true"
            complaints.wrong(system.job, "size", message, hint)


def _distinct_files(job: JobPlan) -> dict[str, FilePlan]:
    """Each file of the job once, with the largest size that any worker needs."""
    files: dict[str, FilePlan] = {}
    for file in (file for worker_files in job.distinct_files() for file in worker_files):
        if file.path not in files or file.nbytes > files[file.path].nbytes:
            files[file.path] = file
    return files


class _System:
    """One file system: bytes added beyond the files that are there, now and at most."""

    def __init__(self, folder: Path, available: int) -> None:
        self.folder = folder
        self.available = available
        self.added = 0
        self.peak = 0
        self.job = ""


class _Space:
    """Follows the sizes of files through a plan."""

    def __init__(self, machine: Machine) -> None:
        self.systems: dict[int, _System] = {}
        self._machine = machine
        self._devices: dict[Path, int] = {}
        self._allocated: dict[str, int] = {}

    def fill(self, path: str, nbytes: int, job: str) -> None:
        """`path` will have `nbytes`."""
        before = self._allocated_before(path)
        if before is None or nbytes <= before:
            return
        system = self._system(Path(path).parent)
        system.added += nbytes - before
        self._allocated[path] = nbytes
        if system.added > system.peak:
            system.peak, system.job = system.added, job

    def free(self, path: str) -> None:
        """`path` is deleted."""
        if self._allocated.get(path):
            self._system(Path(path).parent).added -= self._allocated[path]
            self._allocated[path] = 0

    def _allocated_before(self, path: str) -> int | None:
        """Bytes that the file takes already; None when it takes none of a file system, like a device."""
        if path not in self._allocated:
            try:
                found = Path(path).stat()
            except OSError:
                self._allocated[path] = 0
            else:
                if not Path(path).is_file():
                    return None
                self._allocated[path] = found.st_blocks * STAT_BLOCK
        return self._allocated[path]

    def _system(self, folder: Path) -> _System:
        if folder not in self._devices:
            device, available = self._machine.free_space(folder)
            self._devices[folder] = device
            self.systems.setdefault(device, _System(folder, available))
        return self.systems[self._devices[folder]]


def _check_memory(stage: StagePlan, machine: Machine, complaints: Complaints) -> None:
    needed = sum(worker.buffer_nbytes for job in stage.jobs if _memory(job) in HOST_MEMORY for worker in job.workers)
    free = machine.free_memory() if needed else None
    if free is None or needed <= free:
        return
    largest = max(stage.jobs, key=lambda job: sum(worker.buffer_nbytes for worker in job.workers))
    message = f"{approximate(needed)} of buffers needed, {approximate(free)} of memory free ({needed} and {free} bytes)"
    complaints.wrong(largest.job.name, "iodepth", message, "make numjobs, iodepth or block_size smaller")


def _memory(job: JobPlan) -> str:
    return job.backend.memory[0] if job.job.memory == "auto" else job.job.memory


class _Span(NamedTuple):
    """Bytes of a file that a worker writes."""

    start: int
    end: int
    job: Job
    worker: int


def _check_writers(stage: StagePlan, complaints: Complaints) -> None:
    """Verified data may not be written by two workers at once: which of them wins is nobody's to say."""
    spans: dict[str, list[_Span]] = defaultdict(list)
    for job, worker in _writers(stage):
        for file in worker.files:
            end = file.start + file.length if not file.decided_at_start else 2**63
            spans[file.path].append(_Span(file.start, end, job.job, worker.index))
    for path, writers in spans.items():
        widest: _Span | None = None
        for span in sorted(writers, key=lambda span: (span.start, span.end)):
            if widest is not None and span.start < widest.end and (span.job.verify or widest.job.verify):
                _complain_overlap(path, widest, span, complaints)
                break
            widest = span if widest is None or span.end > widest.end else widest


def _writers(stage: StagePlan) -> Iterator[tuple[JobPlan, WorkerPlan]]:
    return ((job, worker) for job in stage.jobs if job.job.writes for worker in job.workers)


def _complain_overlap(path: str, one: _Span, other: _Span, complaints: Complaints) -> None:
    culprit = one.job if one.job.verify else other.job
    names = f"worker {one.worker} of {one.job.name} and worker {other.worker} of {other.job.name}"
    message = f"verify, but {names} write the same bytes of {path}"
    complaints.wrong(culprit.name, "verify", message, "share: split gives each worker its own part")


def _check_page_cache(plan: JobPlan, complaints: Complaints) -> None:
    """A path that works on the file's pages in memory cannot bypass them."""
    info = plan.backend.io_path(plan.job.io_path)
    if info is not None and info.page_cache and plan.job.direct == "true":
        message = f"direct: true, but io_path {info.name} works on the file's pages in the page cache"
        complaints.wrong(plan.job.name, "direct", message, "direct: auto or false, or another io_path")


def _check_locked_memory(plan: JobPlan, machine: Machine, complaints: Complaints) -> None:
    """A registration that the job insists on and the limit on locked memory does not allow."""
    nbytes = sum(worker.buffer_nbytes for worker in plan.workers)
    path = plan.backend.io_path(plan.io_path)
    message = beyond_limit(plan.job, path, plan.iodepth, nbytes, machine.lockable_memory())
    if message and insists(plan.job):
        complaints.wrong(plan.job.name, "register_buffers", message, HINT)


def _check_alignment(plan: JobPlan, machine: Machine, complaints: Complaints) -> None:
    """With direct: true every offset and size must be a multiple of what the file's device asks for."""
    job = plan.job
    if job.direct != "true" or plan.backend.namespace != "files":
        return
    checked: dict[Path, Alignment] = {}
    for path, file in _distinct_files(plan).items():
        place = Path(path).parent if file.create else Path(path)
        alignment = checked.get(place) or machine.alignment(place)
        checked[place] = alignment
        for key, what, value in aligned_values(job, file):
            if value % alignment.offset:
                message = f"{what} {value} is not a multiple of {alignment.offset}, which direct I/O on {path} needs"
                hint = f"{alignment.source}; direct: auto or false takes any"
                complaints.wrong(job.name, key, message, hint)
        if job.buffer_offset % alignment.memory:
            message = (
                f"buffer_offset {job.buffer_offset} is not a multiple of {alignment.memory}, which direct I/O needs"
            )
            complaints.wrong(job.name, "buffer_offset", message)


def aligned_values(job: Job, file: FilePlan) -> Iterator[tuple[str, str, int]]:
    """(key, words for it, bytes) of everything that direct I/O wants aligned; an odd tail goes another way."""
    for direction in job.directions:
        blocks = job.blocks(direction)
        yield from (("block_size", "block_size", size) for size, _ in blocks.choices)
        if blocks.step:
            yield "block_size", "the step of block_size", blocks.step
    if job.block_align and job.random_access:
        yield "block_align", "block_align", job.block_align
    yield "offset", "offset", file.start


def _check_processes(plan: Plan, complaints: Complaints) -> None:
    """Data of a backend with names of its own lives as long as its process."""
    process_of: dict[str, int] = {}
    for stage in plan.stages:
        for job in stage.jobs:
            source = job.job.files_from
            if source and job.backend.namespace == "own" and process_of.get(source) != stage.process:
                message = (
                    f"job {source} and this one run in different processes, because {job.backend.name} reads an "
                    "option once per process; its data ends with the process"
                )
                complaints.wrong(job.job.name, "files_from", message, "give both jobs the same options")
        process_of.update({job.job.name: stage.process for job in stage.jobs})
