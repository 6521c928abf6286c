"""Runs a plan stage by stage and makes the result, whatever happens on the way."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from gdsfw.engine.failures import describe, error_results, exit_code_of, status_of
from gdsfw.engine.interrupts import Interrupts
from gdsfw.engine.job import JobRun, LayoutProgress
from gdsfw.engine.stage import Sample, StageRun
from gdsfw.engine.written import OwnPatterns
from gdsfw.errors import ExitCode, InternalError, UsageError, worst
from gdsfw.results.build import JobFacts, job_result, phases
from gdsfw.results.environment import host_facts
from gdsfw.results.model import ErrorResult, JobResult, RunResult
from gdsfw.results.timeline import timeline

if TYPE_CHECKING:
    from gdsfw.plugins import PluginManager
    from gdsfw.results.progress import Progress
    from gdsfw.workload.model import Workload
    from gdsfw.workload.plan_model import Plan, StagePlan


class Runner:
    """One run.

    Args:
        plan: what to run, already checked.
        plugins: the plugins that are installed.
        progress: shows what is going on.
        argv: how the run was asked for, for the result.
    """

    def __init__(self, plan: Plan, plugins: PluginManager, progress: Progress, argv: Sequence[str] = ()) -> None:
        self._plan = plan
        self._plugins = plugins
        self._progress = progress
        self._argv = list(argv)
        self._interrupts = Interrupts()
        self._own_patterns = OwnPatterns()
        self._jobs: list[JobResult] = []
        self._errors: list[ErrorResult] = []
        self.abandoned = False

    def run(self, workload: str = "") -> RunResult:
        """Run every stage; never raises for what a job did.

        Args:
            workload: the resolved workload as text, for the result.

        Raises:
            UsageError: jobs need processes of their own, which this version does not start.
        """
        if self._plan.needs_children:
            raise UsageError(
                "jobs of this workload differ in options that their library reads once per process",
                hint="run them one at a time, each from a workload of its own; `gdsfw run --plan` shows which",
            )
        started = _now()
        with self._interrupts:
            for stage in self._plan.stages:
                if self._interrupts.flag.is_set() or self.abandoned:
                    break
                self._run_stage(stage)
        self._progress.clear()
        codes = [job.exit_code for job in self._jobs]
        if self._interrupts.flag.is_set():
            codes.append(ExitCode.INTERRUPTED)
        code = worst(codes)
        return RunResult(
            status=status_of(code),
            exit_code=int(code),
            started=started,
            ended=_now(),
            source=self._plan.source,
            argv=self._argv,
            workload=workload,
            versions=_versions(self._plugins),
            host=host_facts(_directories(self._plan)),
            plan=_plan_json(self._plan),
            jobs=self._jobs,
            notes=[*self._plan.notes, *self._left_out()],
            errors=self._errors,
        )

    def _run_stage(self, plan: StagePlan) -> None:
        jobs = [JobRun(job, self._plugins, self._own_patterns) for job in plan.jobs]
        stage = StageRun(
            jobs, stop_together=plan.stop_together, interrupted=self._interrupts.flag, observe=self._observe
        )
        for job in jobs:
            job.notes += self._plugins.notify("gdsfw_job_started", job=job.plan.job)
        stage.run(LayoutProgress(self._progress.layout, self._interrupts.flag.is_set))
        for index, job in enumerate(jobs):
            job.record_written()
            result = self._result(plan, stage, index, job)
            self._jobs.append(result)
            self.abandoned |= any(worker.outcome.abandoned for worker in job.workers)
            result.notes.extend(self._plugins.notify("gdsfw_job_finished", job=job.plan.job, result=result))

    def _result(self, plan: StagePlan, stage: StageRun, index: int, job: JobRun) -> JobResult:
        outcomes = [worker.outcome for worker in job.workers]
        errors = error_results(job, self._plugins)
        code = exit_code_of(job, self._interrupts.flag.is_set())
        watch = stage.watch
        facts = JobFacts(
            status=status_of(code),
            exit_code=int(code),
            phases=phases(**vars(job.phases)),
            process_user=watch.usage.user,
            process_system=watch.usage.system,
            stage_shared=len(plan.jobs) > 1,
            timeline=timeline(
                watch.samples[index], job.plan.job.timeline, _first_start(job) or watch.ready_ns, _last_sample(job)
            ),
            errors=errors,
            files=list(job.paths),
            stage=plan.name,
            notes=job.notes,
            job=_job_json(job),
        )
        try:
            return job_result(job.plan, outcomes, facts)
        except InternalError as error:
            facts.errors.append(ErrorResult(message=error.message))
            facts.status, facts.exit_code = "internal", int(ExitCode.INTERNAL)
            return job_result(job.plan, [], facts)

    def _observe(self, job: JobRun, sample: Sample) -> None:
        plan = job.plan
        planned = [plan.planned_bytes(worker) for worker in plan.workers]
        known = [nbytes for nbytes in planned if nbytes is not None]
        share = sum(sample.bytes) / sum(known) if known and len(known) == len(planned) else None
        if plan.job.runtime and job.started_ns:
            elapsed = sample.t_ns - job.started_ns - plan.job.ramp_time
            share = max(share or 0.0, elapsed / plan.job.runtime)
        self._progress.job(plan.label, sum(sample.ios), sum(sample.bytes), share, sample.errors)

    def _left_out(self) -> list[str]:
        left = len(self._plan.jobs) - len(self._jobs)
        return [f"{left} of {len(self._plan.jobs)} jobs were not run"] if left else []


def run(workload: Workload, *, plugins: PluginManager | None = None, quiet: bool = True) -> RunResult:
    """Run a loaded workload and return its result.

    Args:
        workload: what gdsfw.load returned.
        plugins: the plugins to use; those installed by default.
        quiet: show no progress on stderr.

    Raises:
        WorkloadError: the workload does not fit this machine.
        RefusedError: for the safety of the user's data.
    """
    import os

    from gdsfw.inventory import devices
    from gdsfw.plugins import PluginManager as Manager
    from gdsfw.results.progress import Progress
    from gdsfw.workload.dump import dump
    from gdsfw.workload.plan import make_plan

    manager = plugins or Manager.installed(os.environ)
    plan = make_plan(workload, plugins=manager, devices=lambda name: devices(manager, name))
    return Runner(plan, manager, Progress(sys.stderr, quiet)).run(dump(workload))


def _last_sample(job: JobRun) -> Sample | None:
    """The final counters of a job, as the last sample of its timeline."""
    loops = [worker.outcome.result for worker in job.workers if worker.outcome.result is not None]
    if not loops:
        return None
    return Sample(
        max(loop.ended_ns for loop in loops),
        (sum(loop.read.ios for loop in loops), sum(loop.write.ios for loop in loops)),
        (sum(loop.read.bytes for loop in loops), sum(loop.write.bytes for loop in loops)),
        True,
    )


def _first_start(job: JobRun) -> int | None:
    starts = [worker.outcome.result.started_ns for worker in job.workers if worker.outcome.result is not None]
    return min(starts, default=None)


def _directories(plan: Plan) -> set[str]:
    from os.path import dirname

    return {
        dirname(file.path)  # noqa: PTH120
        for job in plan.jobs
        if job.backend.namespace == "files"
        for worker in job.workers
        for file in worker.files
    }


def _job_json(job: JobRun) -> dict[str, Any]:
    document = job.plan.job.model_dump(mode="json", exclude_defaults=False)
    document["block_size"] = describe(job.plan.job)
    return document


def _plan_json(plan: Plan) -> dict[str, Any]:
    from gdsfw.workload.render import plan_to_json

    return plan_to_json(plan)


def _versions(plugins: PluginManager) -> dict[str, str]:
    import platform

    from gdsfw import __version__

    found = {"gdsfw": __version__, "python": platform.python_version()}
    found.update({name: plugin.version for name, plugin in plugins.plugins().items() if plugin.version})
    return found


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")
