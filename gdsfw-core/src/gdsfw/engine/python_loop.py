"""The loop for I/O paths that are Python objects: same order, same accounts as the C loop, a few microseconds more.

This module holds the synchronous loop, the twin of native/loop_sync.c; python_queue.py has the one with requests in
flight, python_state.py what both share.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any

from gdsfw.engine.offsets import READ, WRITE
from gdsfw.engine.python_queue import QueueLoop
from gdsfw.engine.python_state import NAMES, Finished, LoopState, Verdict, attempt, now_ns, verdict_of
from gdsfw.engine.spec import EndedBy, InFlight, Live, Loop, LoopResult
from gdsfw.errors import BackendError, Domain, PluginError

if TYPE_CHECKING:
    from gdsfw.backend import Buffer, IOPath
    from gdsfw.engine.offsets import PlannedIO
    from gdsfw.engine.spec import LoopSpec


class PythonLoop(Loop):
    """A loop in Python over `path.as_python(buffer)`.

    OSError and BackendError from the path become errors in the result; any other exception is a defect of the path and
    comes out of `run`.

    Raises:
        UsageError: the path lacks a method that the job needs, or verification takes too much memory.
        PluginError: the path promises a depth that it has no queue for.
    """

    def __init__(self, spec: LoopSpec, path: IOPath, buffer: Buffer) -> None:
        super().__init__(spec, path, buffer)
        self._state = LoopState(spec, path.as_python(buffer), path.files, buffer)
        if spec.iodepth > 1 and not self._state.queued:
            raise PluginError(
                f"path {path.name} is to keep {spec.iodepth} requests in flight, but has no submit and reap",
                hint="its IOPath must say iodepth=1",
            )

    def run(self) -> LoopResult:
        """Do the I/O; once.

        Raises:
            UnavailableError: the I/O log cannot be opened.
        """
        state = self._state
        try:
            state.begin()
            if state.queued:
                QueueLoop(state).run()
            elif state.ended_by is None:
                run_sync(state)
            result = state.finish()
            if self.path.python is None:
                # Made by as_python for this loop alone, while a path's own object is closed with the path.
                getattr(state.io, "close", lambda: None)()
            return result
        finally:
            state.close()

    def stop(self) -> None:
        """Ask the loop to end soon; safe from a signal handler and any thread."""
        self._state.stopping = True

    def live(self) -> Live:
        """A snapshot of the counters while the loop runs."""
        state = self._state
        pending = state.in_flight
        in_flight = None
        if pending is not None:
            operation, io, since_ns = pending
            in_flight = InFlight(operation, io.file, io.offset, io.size, since_ns)
        ios, moved = state.ios, state.bytes
        return Live((ios[0], ios[1]), (moved[0], moved[1]), state.errors, state.measuring, in_flight)


def run_sync(state: LoopState) -> None:
    """One I/O at a time, until the loop ends."""
    while state.goes_on() and _step(state):
        pass


def _step(state: LoopState) -> bool:
    io = next(state.sequence, None)
    if io is None:
        state.end(EndedBy.IO_SIZE)
        return False
    scheduled = state.schedule(io)
    if scheduled and not state.wait(scheduled):
        return False
    if io.direction == WRITE:
        failed = attempt(state.memory.prepare, io, 0)
        if failed is not None:
            return state.fail("fill", io, failed) and _think(state)
    return _issue(state, io, scheduled) and _think(state)


def _think(state: LoopState) -> bool:
    return not state.spec.think_time_ns or state.wait(now_ns() + state.spec.think_time_ns)


def _issue(state: LoopState, io: PlannedIO, scheduled: int) -> bool:
    registers = state.spec.register_per_io
    now = now_ns()
    done = Finished(io, 0, scheduled, now, now)
    if registers:
        state.in_flight = ("register", io, now)
        refused = attempt(state.io.register_buffer, state.memory.offset(0), io.size)
        if refused is not None:
            return state.fail("register", io, refused)
    state.in_flight = (NAMES[io.direction], io, now)
    move_rest(state, done)
    refused = attempt(state.io.deregister_buffer, state.memory.offset(0)) if registers else None
    done.done_ns = now_ns()
    state.in_flight = None
    if io.direction == READ:
        state.memory.was_read(0)
    if not state.complete(done):
        return False
    return refused is None or state.fail("register", io, refused)


def move_rest(state: LoopState, done: Finished) -> None:
    """Move what is left of a block of which `done.moved` bytes are done: short counts are continued."""
    io = done.io
    move: Any = state.io.read if io.direction == READ else state.io.write
    file = state.files[io.file]
    at = state.memory.offset(done.slot)
    while done.moved < io.size and done.verdict is None:
        size = min(io.size - done.moved, state.max_transfer)
        try:
            count = move(file, size, io.offset + done.moved, at + done.moved)
        except (OSError, BackendError) as error:
            done.verdict = verdict_of(error)
            return
        note_count(done, count, size)


def note_count(done: Finished, count: int, size: int) -> None:
    """A call for `size` bytes moved `count`."""
    if count < 0:
        raise ValueError(f"the I/O path returned {count} bytes; a failure is raised, as OSError or BackendError")
    if count == 0:
        done.verdict = Verdict(Domain.ERRNO, errno.ENODATA if done.io.direction == READ else errno.EIO)
    elif count > size:
        done.verdict = Verdict(Domain.ERRNO, errno.EPROTO)
    else:
        done.moved += count
        done.was_short |= count < size
