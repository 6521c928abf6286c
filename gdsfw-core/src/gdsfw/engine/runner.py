"""Runs a plan stage by stage and makes the result, whatever happens on the way."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import closing
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from gdsfw.engine.failures import status_of
from gdsfw.engine.in_children import InChildren
from gdsfw.engine.in_process import InProcess, Stages
from gdsfw.engine.interrupts import Interrupts
from gdsfw.errors import ExitCode, worst
from gdsfw.results.environment import host_facts
from gdsfw.results.model import ErrorResult, JobResult, RunResult
from gdsfw.workload.once_options import used_otherwise

if TYPE_CHECKING:
    from gdsfw.plugins import PluginManager
    from gdsfw.results.progress import Progress
    from gdsfw.workload.model import Workload
    from gdsfw.workload.plan_model import Plan


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
        self._jobs: list[JobResult] = []
        self._errors: list[ErrorResult] = []
        self.abandoned = False

    def run(self, workload: str = "") -> RunResult:
        """Run every stage; never raises for what a job did.

        Args:
            workload: the resolved workload as text, for the result.
        """
        started, began = datetime.now(timezone.utc), time.monotonic()
        with self._interrupts, closing(self._stages()) as stages:
            for stage in self._plan.stages:
                if self._interrupts.flag.is_set() or self.abandoned:
                    break
                ended = stages.run(stage)
                self._jobs += ended.jobs
                self.abandoned |= ended.abandoned
        self._progress.clear()
        codes = [job.exit_code for job in self._jobs]
        if self._interrupts.flag.is_set():
            codes.append(ExitCode.INTERRUPTED)
        code = worst(codes)
        checks, why_not_direct = self._static_checks()
        return RunResult(
            status=status_of(code),
            exit_code=int(code),
            started=_text(started),
            # By the monotonic clock: the other one may have been set meanwhile.
            ended=_text(started + timedelta(seconds=time.monotonic() - began)),
            source=self._plan.source,
            argv=self._argv,
            workload=workload,
            versions=_versions(self._plugins),
            host=host_facts(_directories(self._plan)),
            plan=_plan_json(self._plan),
            jobs=self._jobs,
            notes=[*self._plan.notes, *self._processes(), *self._left_out(), *why_not_direct],
            errors=self._errors,
            checks=checks,
        )

    def _stages(self) -> Stages:
        """Where stages run: here, unless a library must read other options than it has or will have."""
        parts = (self._plugins, self._progress, self._interrupts.flag)
        if self._plan.needs_children or used_otherwise(self._plan.jobs):
            return InChildren(self._plan, *parts)
        return InProcess(*parts)

    def _static_checks(self) -> tuple[dict[str, list[dict[str, Any]]], list[str]]:
        """Of GPU backends that ran; imported for those alone."""
        if not any("devices" in job.backend.capabilities for job in self._plan.jobs):
            return {}, []
        from gdsfw.doctor.static import static_checks

        return static_checks(self._plugins, self._jobs, _directories(self._plan))

    def _processes(self) -> list[str]:
        count = len({stage.process for stage in self._plan.stages})
        return [f"ran in {count} processes: jobs differ in options that are read once per process"] * (count > 1)

    def _left_out(self) -> list[str]:
        left = len(self._plan.jobs) - len(self._jobs)
        return [f"{left} of {len(self._plan.jobs)} jobs were not run"] if left else []


def run(
    workload: Workload,
    *,
    plugins: PluginManager | None = None,
    quiet: bool = True,
    allow_destroy: Sequence[str] = (),
) -> RunResult:
    """Run a loaded workload and return its result.

    Args:
        workload: what gdsfw.load returned.
        plugins: the plugins to use; those installed by default.
        quiet: show no progress on stderr.
        allow_destroy: block devices that jobs with `allow_overwrite: true` may write to.

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
    plan = make_plan(
        workload, plugins=manager, devices=lambda name: devices(manager, name), allow_destroy=allow_destroy
    )
    return Runner(plan, manager, Progress(sys.stderr, quiet)).run(dump(workload))


def _directories(plan: Plan) -> set[str]:
    from os.path import dirname

    return {
        dirname(file.path)  # noqa: PTH120
        for job in plan.jobs
        if job.backend.namespace == "files"
        for worker in job.workers
        for file in worker.files
    }


def _plan_json(plan: Plan) -> dict[str, Any]:
    from gdsfw.workload.render import plan_to_json

    return plan_to_json(plan)


def _versions(plugins: PluginManager) -> dict[str, str]:
    import platform

    from gdsfw import __version__

    found = {"gdsfw": __version__, "python": platform.python_version()}
    found.update({name: plugin.version for name, plugin in plugins.plugins().items() if plugin.version})
    return found


def _text(when: datetime) -> str:
    return when.isoformat(timespec="milliseconds")
