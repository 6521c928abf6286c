"""Runs stages in child processes, for options that a library reads once per process."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from typing import TYPE_CHECKING, Any

from gdsfw.engine.child_link import Failed, Hello, RunStage, Shown, Stop, pack
from gdsfw.engine.failures import status_of
from gdsfw.engine.in_process import StageEnd, job_json
from gdsfw.errors import ExitCode, UnavailableError
from gdsfw.results.build import JobFacts, job_result, phases
from gdsfw.results.model import ErrorResult, JobResult

if TYPE_CHECKING:
    import threading

    from gdsfw.plugins import PluginManager
    from gdsfw.results.progress import Progress
    from gdsfw.workload.plan_model import JobPlan, Plan, StagePlan

#: Seconds between two looks at the flag of the interrupts.
TICK = 0.1
#: Seconds a child gets to leave after its last stage; its library's own threads may hold it.
LEAVE_LIMIT = 5.0
#: The child imports what this process imports, whatever the working directory or the environment would add.
_START = "import sys; sys.path[:] = sys.argv[2:]; from gdsfw.engine.child import main; main(int(sys.argv[1]))"


class InChildren:
    """Runs each stage in the child process that the plan says, which lives until its last stage has ended.

    Args:
        plan: the whole run.
        plugins: those of this process; a child must find the same.
        progress: shows what is going on.
        interrupted: set when the user stops the run; passed on.
    """

    def __init__(self, plan: Plan, plugins: PluginManager, progress: Progress, interrupted: threading.Event) -> None:
        around = {name for name, plugin in plugins.plugins().items() if not plugin.is_backend}
        self._needed = around | {job.backend.name for job in plan.jobs}
        self._progress = progress
        self._interrupted = interrupted
        self._left = Counter(stage.process for stage in plan.stages)
        self._children: dict[int, _Child] = {}

    def run(self, stage: StagePlan) -> StageEnd:
        """Run a stage; never raises for what a job did."""
        number = stage.process
        try:
            child = self._children.get(number) or _Child(self._progress, self._interrupted, self._needed)
            self._children[number] = child
            end = child.run(stage)
        except UnavailableError as error:
            end = _failed(stage, Failed(error.message, error.hint, int(error.exit_code)))
        self._left[number] -= 1
        if number in self._children and (not self._left[number] or end.abandoned or self._children[number].gone):
            self._children.pop(number).close()
        # A worker that was left behind is in the child's past: this process has nothing to leave behind.
        return StageEnd(end.jobs)

    def close(self) -> None:
        """End the children that are left."""
        for child in self._children.values():
            child.close()
        self._children.clear()


class _Child:
    """One child process."""

    def __init__(self, progress: Progress, interrupted: threading.Event, needed: set[str]) -> None:
        self.gone = False
        self._needed = needed
        self._progress = progress
        self._interrupted = interrupted
        self._measured = False
        self._told_to_stop = False
        self._connection, self._process = _start()

    def run(self, stage: StagePlan) -> StageEnd:
        """Run a stage there, show its progress and pass a stop on.

        Raises:
            UnavailableError: it lacks a plugin.
        """
        self._measured = False
        with suppress(OSError):  # it has gone: recv says so
            self._connection.send(RunStage(pack(stage)))
        while not self.gone:
            self._pass_stop_on()
            try:
                message = self._connection.recv() if self._connection.poll(TICK) else None
            except (EOFError, OSError):
                self.gone = True
                break
            if isinstance(message, StageEnd):
                return message
            if isinstance(message, Failed):
                return _failed(stage, message)
            self._hear(message)
        return _failed(stage, self._lost())

    def close(self) -> None:
        """Let it leave; end it if it stays."""
        self._connection.close()
        try:
            self._process.wait(LEAVE_LIMIT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            with suppress(subprocess.TimeoutExpired):  # a call into the kernel that does not return holds it
                self._process.wait(LEAVE_LIMIT)

    def _pass_stop_on(self) -> None:
        if self._interrupted.is_set() and not self._told_to_stop:
            self._told_to_stop = True
            with suppress(OSError):
                self._connection.send(Stop())

    def _hear(self, message: Any) -> None:
        if isinstance(message, Shown):
            self._measured |= message.method == "job" and bool(message.arguments[1])
            getattr(self._progress, message.method)(*message.arguments)
        elif isinstance(message, Hello):
            lacking = sorted(self._needed - set(message.plugins))
            if lacking:
                self.gone = True
                raise UnavailableError(
                    f"jobs need processes of their own, which do not find the plugins {', '.join(lacking)}",
                    hint="install them: what is registered in a program is known to that program only",
                )

    def _lost(self) -> Failed:
        """It ended, and not by itself."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(LEAVE_LIMIT)
        code = self._process.poll()
        how = "closed its pipe" if code is None else f"ended with exit code {code}"
        if code is not None and code < 0:
            with suppress(ValueError):
                how = f"was ended by {signal.Signals(-code).name}"
        return Failed(
            f"the job's process {how}; its figures are lost",
            "what it or the backend's library said stands above; SIGKILL often means that memory ran out",
            int(ExitCode.FAILED if self._measured else ExitCode.UNAVAILABLE),
        )


def _start() -> tuple[Connection, subprocess.Popen[bytes]]:
    """A child process and this end of the pipe to it."""
    ours, theirs = Pipe()
    command = [sys.executable, "-c", _START, str(theirs.fileno()), *map(str, sys.path)]
    # Blocked until the child has its handlers, so that a Ctrl-C in its first moments is no traceback.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=2,  # this process's stdout carries the result
            pass_fds=[theirs.fileno()],
        )
    except OSError as error:
        ours.close()
        raise UnavailableError(
            f"a process for the job cannot be started: {sys.executable}: {error.strerror}"
        ) from error
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
    return ours, process


def _failed(stage: StagePlan, failed: Failed) -> StageEnd:
    """Results of jobs of which nothing is known but why."""
    return StageEnd(tuple(_failed_job(job, stage, failed) for job in stage.jobs))


def _failed_job(plan: JobPlan, stage: StagePlan, failed: Failed) -> JobResult:
    code = ExitCode(failed.exit_code)
    facts = JobFacts(
        status=status_of(code),
        exit_code=int(code),
        phases=phases(0.0, 0.0, 0.0, 0.0, 0.0),
        process_user=0.0,
        process_system=0.0,
        stage_shared=len(stage.jobs) > 1,
        timeline=None,
        errors=[ErrorResult(message=failed.message, hint=failed.hint)],
        files=[file.path for files in plan.distinct_files() for file in files],
        stage=stage.name,
        notes=list(plan.notes),
        job=job_json(plan.job),
    )
    return job_result(plan, [], facts)
