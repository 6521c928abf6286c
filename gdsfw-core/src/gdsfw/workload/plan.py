"""From a workload to the plan of a run: every stage, job, worker, file and byte range, before any I/O."""

from __future__ import annotations

import itertools
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from gdsfw.engine.streams import GOLD, MASK64, mix
from gdsfw.errors import UsageError
from gdsfw.workload.buffers import buffer_of
from gdsfw.workload.check import check_plan
from gdsfw.workload.complaints import Complaints
from gdsfw.workload.files import FilePlanner
from gdsfw.workload.known_files import KnownFiles
from gdsfw.workload.locked import HINT, beyond_limit, insists
from gdsfw.workload.machine import Machine
from gdsfw.workload.once_options import Processes
from gdsfw.workload.placement import DeviceLister, Placement
from gdsfw.workload.plan_model import JobPlan, Plan, StagePlan, WorkerPlan
from gdsfw.workload.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gdsfw.workload.model import Job, Point, Workload
    from gdsfw.workload.options import Plugins
    from gdsfw.workload.selection import Chosen


def make_plan(
    workload: Workload,
    *,
    plugins: Plugins,
    backends_override: Sequence[str] = (),
    devices: DeviceLister | None = None,
    machine: Machine | None = None,
    check: bool = True,
    allow_destroy: Sequence[str] = (),
) -> Plan:
    """Resolve `workload` into what will run.

    Args:
        plugins: knows the installed backends.
        backends_override: run the whole workload on each of these, one after another, instead of the jobs' own.
        devices: lists a backend's devices; without it ordinals are not checked and `devices: all` is an error.
        machine: what is asked for space, memory and CPUs; this one by default.
        check: also compare the plan with the space, memory and alignment that there is.
        allow_destroy: block devices that jobs with `allow_overwrite: true` may write to.

    Raises:
        WorkloadError: options or numbers that do not fit, all of them (exit 2).
        UnavailableError: a backend or device is not there (exit 3).
        RefusedError: a target that must not be touched (exit 4).
    """
    planner = _Planner(workload, plugins, devices, machine or Machine(), _block_devices(allow_destroy))
    installed = plugins.backends()
    for name in backends_override:
        if name not in installed:
            raise plugins.missing_backend(name)
    passes: Sequence[str | None] = list(dict.fromkeys(backends_override)) or [None]
    stages = [stage for backend in passes for stage in planner.stages(backend, labelled=len(passes) > 1)]
    planner.complaints.raise_if_any()
    plan = Plan(tuple(stages), workload.source)
    if check:
        check_plan(plan, workload, planner.machine)
    return plan


class _Planner:
    """Plans stage by stage; files that one job makes are there for the next."""

    def __init__(
        self,
        workload: Workload,
        plugins: Plugins,
        devices: DeviceLister | None,
        machine: Machine,
        allow_destroy: tuple[str, ...],
    ) -> None:
        self.machine = machine
        self.complaints = Complaints(workload)
        self._workload = workload
        self._selection = Selection(plugins, self.complaints)
        self._files = FilePlanner(KnownFiles(), self.complaints)
        self._placement = Placement(machine, devices, self.complaints)
        self._processes = Processes(self.complaints)
        self._allow_destroy = allow_destroy
        #: Newest plan of each job, which is what files_from means.
        self._latest: dict[str, JobPlan] = {}

    def stages(self, backend: str | None, *, labelled: bool) -> Iterator[StagePlan]:
        """Every stage once for each repetition and combination of its sweeps.

        Args:
            backend: in place of the jobs' own.
            labelled: name the backend in each point, because the workload runs on several.
        """
        self._latest.clear()
        entries = list(zip(self._workload.jobs, self._workload.points, strict=True))
        numbered = enumerate(entries)
        for (name, _), group in groupby(numbered, key=lambda item: (item[1][0].stage, item[1][0].stage or item[0])):
            members = [entry for _, entry in group]
            stop_together = any(job.stop_together for job, _ in members)
            repeats = max(job.repeat for job, _ in members)
            for repetition in range(repeats):
                for points in itertools.product(*(points for _, points in members)):
                    jobs = self._stage_jobs(points, repetition, backend, labelled)
                    if len(jobs) == len(points):
                        yield StagePlan(tuple(jobs), name, stop_together, self._processes.number(jobs))

    def _stage_jobs(
        self, points: Sequence[Point], repetition: int, backend: str | None, labelled: bool
    ) -> list[JobPlan]:
        jobs: list[JobPlan] = []
        workers_before = 0
        for point in points:
            plan = self._job(point, repetition, backend, labelled, workers_before)
            workers_before += point.job.numjobs
            if plan is not None:
                jobs.append(plan)
                self._latest[plan.job.name] = plan
        for plan in jobs:
            self._files.release(plan.job, [worker.files for worker in plan.workers])
        return jobs

    def _job(
        self, point: Point, repetition: int, backend: str | None, labelled: bool, workers_before: int
    ) -> JobPlan | None:
        chosen = self._selection.choose(point.job, backend)
        if chosen is None:
            return None
        job = point.job.model_copy(update={"backend": chosen.backend.name})
        own_namespace = chosen.backend.namespace == "own"
        source = self._latest.get(job.files_from) if job.files_from else None
        files = self._files.assign(job, source, own_namespace=own_namespace)
        devices = self._placement.devices(job, chosen.backend)
        cpus = self._placement.cpus(job, chosen.backend, devices)
        if files is None:
            return None
        stride, nbytes = buffer_of(job, chosen.iodepth)
        workers = tuple(
            WorkerPlan(
                index=index,
                files=files[index],
                device=devices[index],
                cpus=cpus[index],
                seed=_worker_seed(job.random.seed, workers_before + index),
                buffer_nbytes=nbytes,
                slot_stride=stride,
                io_size=(job.io_size or 0) * job.loops,
            )
            for index in range(job.numjobs)
        )
        values = point.values
        if labelled:  # in the place of a sweep over backends, which --backend overrides
            values = {"backend": chosen.backend.name, **{k: v for k, v in values.items() if k != "backend"}}
        return JobPlan(
            job=job,
            backend=chosen.backend,
            io_path=chosen.io_path,
            workers=workers,
            point=dict(values),
            repetition=repetition,
            iodepth=chosen.iodepth,
            notes=(*chosen.notes, *self._locked_note(job, chosen, nbytes)),
            allow_destroy=self._allow_destroy,
        )

    def _locked_note(self, job: Job, chosen: Chosen, nbytes: int) -> Iterator[str]:
        """Buffers that will go unregistered; a job that insists on registering them is refused by the check."""
        path = chosen.backend.io_path(chosen.io_path)
        limit = self.machine.lockable_memory()
        message = beyond_limit(job, path, chosen.iodepth, nbytes * job.numjobs, limit)
        if message and not insists(job):
            yield f"{message}; they go unregistered: {HINT}"


def _block_devices(names: Sequence[str]) -> tuple[str, ...]:
    for name in names:
        if not Path(name).is_block_device():
            raise UsageError(
                f"--allow-destroy {name}: it is no block device",
                hint="name the device that may be overwritten; for files say `allow_overwrite: true` in the job",
            )
    return tuple(names)


def _worker_seed(seed: int, number: int) -> int:
    """Seed of the worker with this number in its stage; workers of one stage never draw the same sequence."""
    return mix((mix(seed & MASK64) + (number + 1) * GOLD) & MASK64)
