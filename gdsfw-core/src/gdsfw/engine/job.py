"""One job at one point of its sweep: its session, files and workers, in the order of a job's life."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gdsfw.backend import Target, Worker
from gdsfw.engine.direct_fit import misfit
from gdsfw.engine.io_log import begin_log, check_log
from gdsfw.engine.loop_spec import OpenFile
from gdsfw.engine.worker import Gate, Undo, WorkerThread
from gdsfw.engine.written import Recorded, forget_overwritten, record_written, recorded_pattern
from gdsfw.errors import UnavailableError

if TYPE_CHECKING:
    from gdsfw.backend import FileHandle
    from gdsfw.engine.spec import Live
    from gdsfw.engine.written import OwnPatterns
    from gdsfw.plugins import JobHooks, PluginManager
    from gdsfw.workload.plan_model import FilePlan, JobPlan, WorkerPlan


@dataclass
class Phases:
    """Seconds spent in each phase of a job."""

    setup: float = 0.0
    layout: float = 0.0
    ramp: float = 0.0
    measured: float = 0.0
    teardown: float = 0.0


@dataclass
class JobFailure:
    """An error of the job itself, and whether measuring had begun."""

    error: BaseException
    measuring: bool


@dataclass
class LayoutProgress:
    """Where layout reports to: a callback for (file, bytes done, bytes in all) and a flag to stop."""

    report: Callable[[str, int, int], None]
    stopped: Callable[[], bool]


class JobRun:
    """Opens what a job needs, makes its workers and closes everything again.

    Args:
        plan: what to run.
        plugins: where the backend and the plugins around it live.
        own_patterns: what earlier jobs of the run left in files of backends with names of their own.
    """

    def __init__(self, plan: JobPlan, plugins: PluginManager, own_patterns: OwnPatterns) -> None:
        job, backend = plan.job, plan.backend.name
        self.plan = plan
        self.hooks: JobHooks = plugins.job_hooks(backend, tuple(job.plugins))
        self.options: Any = plugins.validate_options(backend, job.backend_options.get(backend, {}))
        self.workers: list[WorkerThread] = []
        self.phases = Phases()
        self.failure: JobFailure | None = None
        self.notes: list[str] = list(plan.notes)
        self.session: Any = None
        self.started_ns = 0  # CLOCK_MONOTONIC when the workers were let go
        self._shared: dict[str, FileHandle] = {}
        self._patterns: dict[str, Recorded] = {}
        self._registered: set[int] = set()
        self._undo = Undo()
        self._own_patterns = own_patterns
        self._new_seed = job.verify.seed if job.verify and job.verify.seed is not None else secrets.randbits(63)

    @property
    def paths(self) -> dict[str, FilePlan]:
        """Every file of the job by its path; of a shared one the plan that reaches furthest."""
        found: dict[str, FilePlan] = {}
        for worker in self.plan.workers:
            for file in worker.files:
                if file.path not in found or found[file.path].nbytes < file.nbytes:
                    found[file.path] = file
        return found

    def open(self, layout: LayoutProgress) -> None:
        """Open the session, then lay out missing files: a backend that is not usable must cost no file."""
        if self.plan.job.io_log:
            check_log(self.plan.job.io_log)
        self.session = self.hooks.gdsfw_open(options=self.options)
        self._undo.push("gdsfw_close", lambda: self.hooks.gdsfw_close(session=self.session))
        began = time.monotonic()
        if self.plan.backend.namespace == "files":
            self._lay_out(layout)
        self.phases.layout = time.monotonic() - began

    def make_workers(self, gate: Gate, on_change: Callable[[], None]) -> None:
        """Open the files of every worker and prepare its thread."""
        for plan in self.plan.workers:
            files = [self._open(file) for file in plan.files]
            self.workers.append(self._worker(plan, files, gate, on_change))
        if self.plan.job.io_log:
            begin_log(self.plan.job.io_log)
        if self.plan.job.writes and self.plan.backend.namespace == "files":
            forget_overwritten(self)
        if self.plan.job.invalidate and self.plan.backend.namespace == "files":
            self._invalidate()

    def live(self) -> list[Live]:
        """Counters of the workers whose loop exists."""
        return [worker.loop.live() for worker in self.workers if worker.loop is not None]

    def close(self) -> None:
        """Close files and session; failures become notes."""
        began = time.monotonic()
        if any(worker.outcome.abandoned for worker in self.workers):
            self._undo.abandon()
        self._undo.run()
        self.notes += self._undo.failures
        self.phases.teardown += time.monotonic() - began

    def record_written(self) -> None:
        """Keep what this job left in its files: in the manifests, or for the rest of the run."""
        if not self.plan.job.writes:
            return
        seeds = {path: pattern.seed for path, pattern in self._patterns.items()}
        in_run = [path for path in self.paths if self.patterns_in_run(path)]
        self._own_patterns.record(self, in_run, seeds)
        try:
            record_written(self, [path for path in self.paths if path not in in_run], seeds)
        except OSError as error:  # a full disk: the figures are worth more than the record
            self.notes.append(f"no record of what was written, so that it cannot be verified later: {error.strerror}")

    def unlink(self) -> list[str]:
        """Delete the files that gdsfw created, where the job says so; a line for each that stays."""
        if not self.plan.job.unlink or any(worker.outcome.abandoned for worker in self.workers):
            return []
        if self.plan.backend.namespace == "own":
            return ["unlink: names of this backend are no files here: nothing was deleted"]
        from gdsfw.storage.cleaning import delete_own

        try:
            rows = delete_own(map(Path, self.paths))
        except OSError as error:
            return [f"unlink: {error.filename} cannot be deleted: {error.strerror}"]
        return [f"unlink: {row.path} stays: {row.kept}" for row in rows if row.kept]

    def patterns_in_run(self, path: str) -> bool:
        """Whether what is in a file is known for this run only: there is no manifest beside names that are no files."""
        return self.plan.backend.namespace == "own" or Path(path).is_block_device()

    def _lay_out(self, layout: LayoutProgress) -> None:
        """Files that gdsfw makes up must hold data before a job reads them."""
        job = self.plan.job
        if not job.reads or job.files_from:
            return
        from gdsfw.storage.layout import ensure_file

        for path, file in self.paths.items():
            if not file.owned:
                continue
            laid_out = ensure_file(
                self._target(file),
                pattern_seed=self._new_seed,
                need_pattern=job.verify is not None,
                progress=lambda done, total, name=Path(path).name: layout.report(name, done, total),  # type: ignore[misc]
                stop=layout.stopped,
            )
            if laid_out.created:
                self.notes.append(f"laid out {path} in {laid_out.seconds:.1f} s")

    def _target(self, file: FilePlan) -> Target:
        job = self.plan.job
        return Target(
            name=file.path,
            file_id=file.file_id,
            nbytes=file.nbytes,
            direct=self._direct(),
            allow_overwrite=job.allow_overwrite,
            create=job.writes,
            sync=job.sync,
            job=job.name,
            allow_destroy=self.plan.allow_destroy,
        )

    def _direct(self) -> Literal["auto", "true", "false"]:
        """How files are opened; a path that works on the page cache has it decided."""
        info = self.plan.backend.io_path(self.plan.job.io_path)
        return "false" if info is not None and info.page_cache else self.plan.job.direct

    def _open(self, file: FilePlan) -> OpenFile:
        handle = self._shared.get(file.path)
        if handle is None:
            target = replace(self._target(file), nbytes=self.paths[file.path].nbytes)
            mode: Literal["r", "rw"] = "rw" if self.plan.job.writes else "r"
            handle = opened = self._open_fitting(target, mode)
            self._undo.push("gdsfw_close_file", lambda: self.hooks.gdsfw_close_file(session=self.session, file=opened))
            if self.plan.job.file_handles == "shared":
                self._shared[file.path] = handle
        file = self._decide(file, handle)
        pattern = self._pattern(file.path, handle.target.nbytes)
        checks = self.plan.job.reads and self.plan.job.verify is not None
        known = pattern.known(file.start, file.length) if checks else None
        return OpenFile(file, handle, pattern.seed, known)

    def _open_fitting(self, target: Target, mode: Literal["r", "rw"]) -> FileHandle:
        """Open a file; again without direct I/O where that would not fit the job's blocks."""
        handle: FileHandle = self.hooks.gdsfw_open_file(session=self.session, target=target, mode=mode)
        if handle.tail_fd < 0:
            return handle
        files = [file for files in self.plan.distinct_files() for file in files if file.path == target.name]
        why = misfit(self.plan.job, files, handle, host_memory=self.plan.backend.memory[0] == "host")
        if not why:
            # What is read ahead of an odd end would be other pages, which direct writes then cannot drop (EIO).
            os.posix_fadvise(handle.tail_fd, 0, 0, os.POSIX_FADV_RANDOM)
            return handle
        self.hooks.gdsfw_close_file(session=self.session, file=handle)
        if target.direct == "true":
            raise UnavailableError(
                f"job {self.plan.job.name}: {target.name}: direct: true, but {why}",
                hint=f"make sizes and offsets multiples of {handle.alignment.offset}, or use `direct: auto`",
            )
        buffered = replace(target, direct="false")
        handle = self.hooks.gdsfw_open_file(session=self.session, target=buffered, mode=mode)
        handle.direct_reason = why
        return handle

    def _decide(self, file: FilePlan, handle: FileHandle) -> FilePlan:
        """Fill in what only the opened file could tell, and check that the range is there to be read."""
        nbytes = handle.target.nbytes
        if file.decided_at_start:
            file = replace(file, length=nbytes - file.start, nbytes=nbytes)
        reads_only = self.plan.job.reads and not self.plan.job.writes
        if file.length <= 0 or (reads_only and handle.fd >= 0 and nbytes < file.start + file.length):
            raise UnavailableError(
                f"job {self.plan.job.name}: {file.path} has {nbytes} bytes, "
                f"the job reads from {file.start} to {file.start + max(0, file.length)}",
                hint="lower `size` and `offset`, or write the file first: a job that reads never extends one",
            )
        return file

    def _pattern(self, path: str, nbytes: int) -> Recorded:
        """The pattern of a file of `nbytes` bytes: a new one when the job writes it all anew, else what is in it."""
        job = self.plan.job
        if path not in self._patterns:
            wanted = [
                (file.start, nbytes - file.start if file.decided_at_start else file.length)
                for worker in self.plan.workers
                for file in worker.files
                if file.path == path
            ]
            if job.verify is None:
                self._patterns[path] = Recorded()
            elif not job.reads:
                self._patterns[path] = Recorded(self._new_seed)
            elif self.patterns_in_run(path):
                self._patterns[path] = self._own_patterns.find(job, path, wanted)
            else:
                self._patterns[path] = recorded_pattern(job, path, wanted)
        return self._patterns[path]

    def _invalidate(self) -> None:
        """Drop the files from the page cache, as fio's `invalidate` does."""
        from gdsfw.storage.residency import drop_cache

        for handle in {id(file.handle): file.handle for worker in self.workers for file in worker.files}.values():
            if handle.fd >= 0:
                drop_cache(handle.tail_fd if handle.tail_fd >= 0 else handle.fd)

    def _worker(
        self, plan: WorkerPlan, files: list[OpenFile], gate: Gate, on_change: Callable[[], None]
    ) -> WorkerThread:
        worker = Worker(
            job=self.plan.job,
            index=plan.index,
            options=self.options,
            session=self.session,
            device=plan.device,
            cpus=plan.cpus,
        )
        # Each handle is registered once, by the first worker that has it.
        registers = [file.handle for file in files if id(file.handle) not in self._registered]
        self._registered.update(map(id, registers))
        return WorkerThread(
            self.hooks,
            self.plan,
            plan,
            worker=worker,
            files=files,
            registers=registers,
            gate=gate,
            on_change=on_change,
        )
