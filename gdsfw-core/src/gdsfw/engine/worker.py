"""One worker: the hooks of its life in their order, in its own thread, each undone in every ending."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gdsfw.backend import Transport, Worker
from gdsfw.engine import native
from gdsfw.engine.loop_spec import OpenFile, loop_spec, request
from gdsfw.engine.numa import bind_memory
from gdsfw.errors import UnavailableError

if TYPE_CHECKING:
    from gdsfw.backend import Buffer, FileHandle, IOPath, Request
    from gdsfw.engine.spec import Loop, LoopResult
    from gdsfw.plugins import JobHooks
    from gdsfw.workload.plan_model import JobPlan, WorkerPlan

PAGE = os.sysconf("SC_PAGE_SIZE")


class Undo:
    """Steps to undo, last first. A failing step is noted and the others still run."""

    def __init__(self) -> None:
        self._steps: list[tuple[str, Callable[[], Any]]] = []
        self.failures: list[str] = []

    def push(self, name: str, step: Callable[[], Any]) -> None:
        """Remember to call `step` at the end."""
        self._steps.append((name, step))

    def run(self) -> None:
        """Call every step, last first, once."""
        while self._steps:
            name, step = self._steps.pop()
            try:
                step()
            except Exception as error:
                self.failures.append(f"{name}: {error}")

    def abandon(self) -> None:
        """Forget the steps: what they would release is still in use by a call that does not return."""
        self._steps.clear()


class Gate:
    """The barriers that all workers of a stage pass together.

    registered: shared file handles are registered. ready: everybody is about to measure. measured: nobody measures
    any more, so teardown disturbs no one.
    """

    def __init__(self, workers: int, on_ready: Callable[[], None], on_measured: Callable[[], None]) -> None:
        self.registered = threading.Barrier(workers)
        self.ready = threading.Barrier(workers, action=on_ready)
        self.measured = threading.Barrier(workers, action=on_measured)

    def abort_start(self) -> None:
        """Let nobody wait for the start any longer: a worker failed, or the user stopped the run."""
        self.registered.abort()
        self.ready.abort()

    def abort(self) -> None:
        """Let nobody wait for anything any longer: a worker will not come."""
        self.abort_start()
        self.measured.abort()


class GateClosedError(Exception):
    """This worker was ready, another one was not."""


@dataclass
class WorkerOutcome:
    """What became of a worker. `error` is what it raised itself; `result` is None when it never measured."""

    result: LoopResult | None = None
    error: BaseException | None = None
    transport: Transport = field(default_factory=lambda: Transport("unknown"))
    io_path: str = ""
    python_loop: str | None = None
    notes: list[str] = field(default_factory=list)
    instrumented: tuple[str, ...] = ()
    finished: bool = False
    abandoned: bool = False


class WorkerThread:
    """A worker and its thread. `start`, then `stop` and `live` from the main thread; `outcome` when finished."""

    def __init__(
        self,
        hooks: JobHooks,
        plan: JobPlan,
        worker_plan: WorkerPlan,
        *,
        worker: Worker,
        files: Sequence[OpenFile],
        registers: Sequence[FileHandle],
        gate: Gate,
        on_change: Callable[[], None],
    ) -> None:
        self.plan = plan
        self.worker_plan = worker_plan
        self.worker = worker
        self.outcome = WorkerOutcome()
        self.loop: Loop | None = None
        self._hooks = hooks
        self.files = files
        self._registers = registers
        self._gate = gate
        self._on_change = on_change
        self._undo = Undo()
        self._buffer: Buffer | None = None
        self._returned = threading.Event()
        name = f"{plan.job.name}.{worker_plan.index}"
        # A daemon, so that a call that never returns cannot keep the process alive after the result is written.
        self._thread = threading.Thread(target=self._body, name=name, daemon=True)

    def start(self) -> None:
        """Begin; errors end up in `outcome`."""
        self._thread.start()

    def join(self, timeout: float) -> bool:
        """Wait until the thread has ended; False when it has not."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def returns_within(self, seconds: float) -> bool:
        """Wait until the loop has come back; False when it has not."""
        return self._returned.wait(seconds)

    def stop(self) -> None:
        """Ask the loop to end."""
        if self.loop is not None:
            self.loop.stop()

    def abandon(self) -> None:
        """Give up on a worker that is stuck in a call: nothing of what it holds is released."""
        self._undo.abandon()
        self.outcome.abandoned = True

    def _body(self) -> None:
        try:
            self._live()
        except GateClosedError:
            pass
        except BaseException as error:
            self.outcome.error = error
            self._gate.abort()
        finally:
            self._undo.run()
            self.outcome.notes += self._undo.failures
            self.outcome.finished = True
            self._returned.set()
            self._on_change()

    def _live(self) -> None:
        path, buffer = self._set_up()
        loop = self._make_loop(path, buffer)
        self.outcome.io_path = path.name
        self.outcome.notes += path.notes
        self.outcome.instrumented = path.instrumented
        before = self._check_transport(path)
        self.loop = loop
        self._wait(self._gate.ready)
        self.outcome.result = loop.run()
        self._returned.set()
        if self.outcome.result.log_errno:
            why = os.strerror(self.outcome.result.log_errno)
            self.outcome.notes.append(f"worker {self.worker.index}: the io_log is incomplete: {why}")
        with suppress(threading.BrokenBarrierError):
            self._gate.measured.wait()
        self.outcome.transport = self._hooks.gdsfw_transport(worker=self.worker, path=path, before=before)

    def _set_up(self) -> tuple[IOPath, Buffer]:
        hooks, worker, undo = self._hooks, self.worker, self._undo
        if worker.cpus:
            os.sched_setaffinity(0, worker.cpus)
        if self.plan.job.numa is not None:
            bind_memory(self.plan.job.numa)
        worker.state = hooks.gdsfw_worker_start(session=worker.session, worker=worker)
        undo.push("gdsfw_worker_stop", lambda: hooks.gdsfw_worker_stop(worker=worker))
        buffer = self._allocate()
        handles = [file.handle for file in self.files]
        wanted = request(self.plan, self.files)
        for handle in self._registers:
            self._register_file(handle, wanted)
        self._wait(self._gate.registered)
        path = hooks.gdsfw_io(worker=worker, files=handles, buffer=buffer, request=wanted)
        undo.push("IOPath.close", path.close)
        return path, buffer

    def _allocate(self) -> Buffer:
        hooks, worker, undo = self._hooks, self.worker, self._undo
        asked = self.plan.job.memory
        memory = self.plan.backend.memory[0] if asked == "auto" else asked
        buffer: Buffer = hooks.gdsfw_alloc(
            worker=worker, nbytes=self.worker_plan.buffer_nbytes, memory=memory, alignment=PAGE
        )
        self._buffer = buffer
        undo.push("gdsfw_free", lambda: hooks.gdsfw_free(worker=worker, buffer=buffer))
        if self.plan.job.register_buffers == "once":
            hooks.gdsfw_register_buffer(worker=worker, buffer=buffer)
            undo.push("gdsfw_deregister_buffer", lambda: hooks.gdsfw_deregister_buffer(worker=worker, buffer=buffer))
        return buffer

    def _register_file(self, handle: FileHandle, wanted: Request) -> None:
        hooks, worker = self._hooks, self.worker
        hooks.gdsfw_register_file(worker=worker, file=handle, request=wanted)
        self._undo.push("gdsfw_deregister_file", lambda: hooks.gdsfw_deregister_file(worker=worker, file=handle))

    def _make_loop(self, path: IOPath, buffer: Buffer) -> Loop:
        spec = loop_spec(self.plan, self.worker_plan, self.files, path)
        usable, reason = native.available()
        if path.native is not None and usable:
            return native.NativeLoop(spec, path, buffer)
        from gdsfw.engine.python_loop import PythonLoop

        self.outcome.python_loop = reason if path.native is not None else _why_python(path)
        return PythonLoop(spec, path, buffer)

    def _check_transport(self, path: IOPath) -> Any:
        """Snapshot for the evidence; with `require_transport`, one test read first decides whether to go on."""
        hooks, worker = self._hooks, self.worker
        required = self.plan.job.require_transport
        if required is None:
            return hooks.gdsfw_transport(worker=worker, path=path, before=None)
        before = hooks.gdsfw_transport(worker=worker, path=path, before=None)
        self._test_read(path)
        seen: Transport = hooks.gdsfw_transport(worker=worker, path=path, before=before)
        if seen.kind != required:
            evidence = "; ".join(seen.evidence) or "no evidence"
            raise UnavailableError(
                f"job {self.plan.job.name}: require_transport is {required}, but a test read went by {seen.kind}",
                hint=evidence,
            )
        return hooks.gdsfw_transport(worker=worker, path=path, before=None)

    def _test_read(self, path: IOPath) -> None:
        file = self.files[0]
        size = min(self.plan.job.blocks("read").largest, file.plan.length)
        assert self._buffer is not None
        path.as_python(self._buffer).read(file.handle, size, file.plan.start, self.plan.job.buffer_offset)

    def _wait(self, barrier: threading.Barrier) -> None:
        try:
            barrier.wait()
        except threading.BrokenBarrierError:
            raise GateClosedError from None


def _why_python(path: IOPath) -> str:
    """Why a path without a native table has none."""
    if path.instrumented:
        return f"calls of {', '.join(path.instrumented)} go around the backend's own"
    return "the backend's path is written in Python"
