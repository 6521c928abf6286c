"""Runs stages in this process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from gdsfw.engine.failures import describe, error_results, exit_code_of, status_of
from gdsfw.engine.job import JobRun, LayoutProgress
from gdsfw.engine.stage import Sample, StageRun
from gdsfw.engine.written import OwnPatterns
from gdsfw.errors import ExitCode, InternalError
from gdsfw.results.build import JobFacts, job_result, phases
from gdsfw.results.model import ErrorResult, JobResult
from gdsfw.results.timeline import timeline
from gdsfw.workload.once_options import note_used

if TYPE_CHECKING:
    import threading

    from gdsfw.plugins import PluginManager
    from gdsfw.results.progress import Progress
    from gdsfw.workload.model import Job
    from gdsfw.workload.plan_model import StagePlan


@dataclass(frozen=True)
class StageEnd:
    """What a stage left.

    Args:
        abandoned: a worker is still inside a call that does not return; no other stage can follow it.
    """

    jobs: tuple[JobResult, ...]
    abandoned: bool = False


class Stages(Protocol):
    """Runs the stages of a plan, one after another."""

    def run(self, stage: StagePlan) -> StageEnd:
        """Run a stage; never raises for what a job did."""
        ...

    def close(self) -> None:
        """Let go of what the stages needed; no stage follows."""
        ...


class InProcess:
    """Runs stages in this process.

    Args:
        plugins: the plugins that are installed.
        progress: shows what is going on.
        interrupted: set when the user stops the run.
    """

    def __init__(self, plugins: PluginManager, progress: Progress, interrupted: threading.Event) -> None:
        self._plugins = plugins
        self._progress = progress
        self._interrupted = interrupted
        self._own_patterns = OwnPatterns()

    def run(self, plan: StagePlan) -> StageEnd:
        """Run a stage; never raises for what a job did."""
        note_used(plan.jobs)
        jobs = [JobRun(job, self._plugins, self._own_patterns) for job in plan.jobs]
        stage = StageRun(jobs, stop_together=plan.stop_together, interrupted=self._interrupted, observe=self._observe)
        for job in jobs:
            job.notes += self._plugins.notify("gdsfw_job_started", job=job.plan.job)
        stage.run(LayoutProgress(self._progress.layout, self._interrupted.is_set))
        for job in jobs:
            job.record_written()
        results = [self._result(plan, stage, index, job) for index, job in enumerate(jobs)]
        for job, result in zip(jobs, results, strict=True):  # after all of them, since jobs of a stage share files
            result.notes.extend(job.unlink())
            result.notes.extend(self._plugins.notify("gdsfw_job_finished", job=job.plan.job, result=result))
        return StageEnd(tuple(results), any(worker.outcome.abandoned for job in jobs for worker in job.workers))

    def close(self) -> None:
        """Nothing outlives a stage."""

    def _result(self, plan: StagePlan, stage: StageRun, index: int, job: JobRun) -> JobResult:
        outcomes = [worker.outcome for worker in job.workers]
        errors = error_results(job, self._plugins)
        code = exit_code_of(job, self._interrupted.is_set())
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
            job=job_json(job.plan.job),
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
        asked = plan.job
        paced = any((asked.rate, asked.rate_iops, asked.think_time))
        depth = 0 if paced else plan.iodepth * len(plan.workers)
        self._progress.job(plan.label, sum(sample.ios), sum(sample.bytes), share, sample.errors, depth)


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


def job_json(job: Job) -> dict[str, Any]:
    """A job as a result shows it."""
    document: dict[str, Any] = job.model_dump(mode="json", exclude_defaults=False)
    document["block_size"] = describe(job)
    return document
