"""Up to iodepth requests in flight through a Python path's `submit` and `reap`. The twin of native/loop_queue.c.

Each turn: issue all that may be issued now, at most batch_submit in one submission, then reap. Waiting happens in reap,
in slices short enough for the stop flag. A block is one slot until it is complete: short counts and blocks above
max_transfer are continued by another request of the same slot. The loop ends only when nothing is in flight; a queue
that does not give its requests back keeps this thread, and the main thread sees the oldest request and judges.
"""

from __future__ import annotations

import errno
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gdsfw.backend import Completion, QueueRequest
from gdsfw.engine.offsets import READ, WRITE, PlannedIO
from gdsfw.engine.python_state import NAMES, Finished, LoopState, Verdict, attempt, now_ns, verdict_of
from gdsfw.engine.spec import EndedBy
from gdsfw.errors import BackendError, Domain

if TYPE_CHECKING:
    from collections.abc import Sequence

WAIT_SLICE_NS = 10_000_000
NOTHING = PlannedIO(READ, 0, 0, 0)
CANCELLED = Verdict(Domain.ERRNO, errno.ECANCELED)


@dataclass(slots=True)
class Slot:
    """A block on its way; `moved` bytes by earlier requests, `asked` by the one in flight."""

    block: Finished
    asked: int = 0
    registered: bool = False


class QueueLoop:
    """The requests of one loop.

    Buffer slots are taken oldest-freed first, so that a queue that completes in order sees adjacent buffer offsets.
    """

    def __init__(self, state: LoopState) -> None:
        self._state = state
        self._free = deque(range(state.spec.iodepth))
        # By buffer slot, in the order of issue.
        self._taken: dict[int, Slot] = {}
        self._by_cookie: dict[int, Slot] = {}
        self._prepared: deque[QueueRequest] = deque()
        self._unfinished: list[Slot] = []
        self._in_flight = 0
        self._next_cookie = 0
        self._next: PlannedIO | None = None
        self._next_scheduled_ns = 0
        self._think_until_ns = 0
        self._cancelled = False

    @property
    def _ended(self) -> bool:
        return self._state.ended_by is not None

    def run(self) -> None:
        """Issue and complete until the loop ends and nothing is in flight."""
        state = self._state
        while not self._ended or self._in_flight or self._prepared or self._unfinished:
            if (self._ended or not state.goes_on()) and (state.stopping or state.ended_by is EndedBy.ERROR):
                self._wind_down()
            self._issue(now_ns())
            self._publish_oldest()
            if self._in_flight:
                self._reap(now_ns())
            elif not self._ended and self._next is not None and not self._prepared and not self._unfinished:
                # Nothing is in flight and nothing may be issued yet.
                state.wait(max(self._next_scheduled_ns, self._think_until_ns))
            self._publish_oldest()

    def _publish_oldest(self) -> None:
        oldest = next(iter(self._taken.values()), None)
        if oldest is None:
            self._state.in_flight = None
        else:
            block = oldest.block
            self._state.in_flight = (NAMES[block.io.direction], block.io, block.started_ns)

    # ---- issue ----

    def _issue(self, now: int) -> None:
        """Fill the queue: the depth that was asked for is kept before anything is waited for."""
        while True:
            self._prepare(now)
            before = self._in_flight
            self._submit()
            if self._in_flight == before or self._prepared or not self._free:
                return

    def _prepare(self, now: int) -> None:
        while self._unfinished:
            self._prepare_request(self._unfinished.pop())
        while (
            not self._ended
            and len(self._prepared) < self._state.spec.batch_submit
            and (io := self._have_next()) is not None
            and self._may_issue(io, now)
        ):
            self._start(io, now)

    def _have_next(self) -> PlannedIO | None:
        """The next I/O, drawn if none is waiting; None at the end of the sequence."""
        if self._next is None:
            self._next = next(self._state.sequence, None)
            if self._next is None:
                self._state.end(EndedBy.IO_SIZE)
            else:
                self._next_scheduled_ns = self._state.schedule(self._next)
        return self._next

    def _may_issue(self, io: PlannedIO, now: int) -> bool:
        if not self._free or self._next_scheduled_ns > now:
            return False
        if self._state.spec.think_time_ns and (self._taken or self._think_until_ns > now):
            return False
        # With generations the order of overlapping requests decides what the bytes must be.
        track = self._state.track
        return track is None or not track.generations or not self._conflicts(io)

    def _conflicts(self, io: PlannedIO) -> bool:
        return any(
            WRITE in (io.direction, other.direction)
            and io.file == other.file
            and io.offset < other.offset + other.size
            and other.offset < io.offset + io.size
            for other in (slot.block.io for slot in self._taken.values())
        )

    def _start(self, io: PlannedIO, now: int) -> None:
        """Put the next I/O into a slot."""
        state = self._state
        index = self._free.popleft()
        slot = self._taken[index] = Slot(Finished(io, index, self._next_scheduled_ns, now))
        self._next = None
        if io.direction == WRITE:
            failed = attempt(state.memory.prepare, io, index)
            if failed is not None:
                self._give_back(slot)
                state.fail("fill", io, failed)
                return
            slot.block.started_ns = now_ns()
        if state.spec.register_per_io:
            failed = attempt(state.io.register_buffer, state.memory.offset(index), io.size)
            if failed is not None:
                self._give_back(slot)
                state.fail("register", io, failed)
                return
            slot.registered = True
        self._prepare_request(slot)

    def _prepare_request(self, slot: Slot) -> None:
        """Queue the next request for a slot: all that is left of its block, as far as one call may go."""
        state, block = self._state, slot.block
        slot.asked = min(block.io.size - block.moved, state.max_transfer)
        cookie, self._next_cookie = self._next_cookie, self._next_cookie + 1
        self._by_cookie[cookie] = slot
        self._prepared.append(
            QueueRequest(
                direction=NAMES[block.io.direction],
                file=state.files[block.io.file],
                size=slot.asked,
                file_offset=block.io.offset + block.moved,
                buffer_offset=state.memory.offset(block.slot) + block.moved,
                cookie=cookie,
            )
        )

    def _give_back(self, slot: Slot) -> None:
        del self._taken[slot.block.slot]
        self._free.append(slot.block.slot)

    def _submit(self) -> None:
        if not self._prepared:
            return
        try:
            count = self._state.io.submit(list(self._prepared))
        except (OSError, BackendError) as error:
            self._refuse_first(verdict_of(error))
            return
        if count > 0:
            now = now_ns()
            taken = min(count, len(self._prepared))
            for _ in range(taken):
                block = self._by_cookie[self._prepared.popleft().cookie].block
                block.issued_ns = block.issued_ns or now
            self._in_flight += taken
        elif self._in_flight == 0:
            # A queue that is full although nothing is in flight would never take anything.
            self._refuse_first(Verdict(Domain.ERRNO, errno.EAGAIN))

    def _refuse_first(self, verdict: Verdict) -> None:
        """The first prepared request cannot be submitted."""
        slot = self._by_cookie.pop(self._prepared.popleft().cookie)
        io = slot.block.io
        if io.direction == WRITE and self._state.track is not None:
            self._state.track.written(io, acknowledged=False)
        self._give_back(slot)
        self._state.fail("submit", io, verdict)

    # ---- completion ----

    def _reap(self, now: int) -> None:
        state = self._state
        at_least, timeout = self._patience(now)
        try:
            completions: Sequence[Completion] = state.io.reap(at_least, timeout)
        except InterruptedError:
            return
        except (OSError, BackendError) as error:
            if not self._ended:
                state.fail("reap", NOTHING, verdict_of(error))
            state.end(EndedBy.ERROR)
            # What is in flight keeps this thread; it asks again until the main thread gives up on it.
            time.sleep(WAIT_SLICE_NS / 1e9)
            return
        done = now_ns()
        bucket = min((self._in_flight | 1).bit_length() - 1, len(state.depths) - 1)
        for completion in completions:
            self._complete(completion, bucket, done)

    def _patience(self, now: int) -> tuple[int, int]:
        """For how many reap is to wait, and how long (ns)."""
        state = self._state
        if self._prepared:
            return 1, WAIT_SLICE_NS  # the queue was full
        until = now + WAIT_SLICE_NS
        if not self._ended:
            until = min(until, state.deadline_ns)
            if self._next is not None and self._next_scheduled_ns > now:
                until = min(until, self._next_scheduled_ns)
        return min(self._in_flight, state.spec.batch_complete), max(0, until - now)

    def _complete(self, completion: Completion, bucket: int, now: int) -> None:
        state = self._state
        count = completion.count or 1
        if count > self._in_flight:
            self._refuse_completion()
            return
        state.storage_ns += completion.storage_ns
        state.copy_ns += completion.copy_ns
        state.depths[bucket] += count
        for cookie in range(completion.cookie, completion.cookie + count):
            self._complete_one(completion, cookie, now)

    def _refuse_completion(self) -> None:
        """The queue gave back what it does not have."""
        self._state.fail("reap", NOTHING, Verdict(Domain.ERRNO, errno.EPROTO))

    def _complete_one(self, completion: Completion, cookie: int, now: int) -> None:
        slot = self._by_cookie.pop(cookie, None)
        if slot is None:
            self._refuse_completion()
            return
        block = slot.block
        moved = slot.asked if completion.count > 1 else max(0, completion.result)
        verdict = _judge(slot, completion, moved)
        self._in_flight -= 1
        if verdict is None:
            block.moved += moved
            block.was_short |= moved < slot.asked
            if block.moved < block.io.size:
                if not self._cancelled:
                    self._unfinished.append(slot)
                    return
                verdict = CANCELLED
        self._finish(slot, now, verdict)

    def _finish(self, slot: Slot, now: int, verdict: Verdict | None) -> None:
        """The block has come to its end: account for it and free its slot."""
        state, block = self._state, slot.block
        block.verdict, block.done_ns = verdict, now
        refused = None
        if slot.registered:
            refused = attempt(state.io.deregister_buffer, state.memory.offset(block.slot))
        if block.io.direction == READ:
            state.memory.was_read(block.slot)
        self._think_until_ns = now + state.spec.think_time_ns
        if self._cancelled and verdict == CANCELLED:
            state.withdraw(block)
        else:
            state.complete(block)
        if refused is not None:
            state.fail("register", block.io, refused)
        self._give_back(slot)

    def _wind_down(self) -> None:
        """A stop or an error withdraws what is prepared and asks for what is in flight to end early."""
        cancel = getattr(self._state.io, "cancel", None)
        if not self._cancelled and cancel is not None and self._in_flight:
            attempt(cancel)
        self._cancelled = True
        now = now_ns()
        while self._prepared:
            self._finish(self._by_cookie.pop(self._prepared.popleft().cookie), now, CANCELLED)
        while self._unfinished:
            self._finish(self._unfinished.pop(), now, CANCELLED)


def _judge(slot: Slot, completion: Completion, moved: int) -> Verdict | None:
    if completion.domain != Domain.NONE:
        return Verdict(completion.domain, completion.code)
    if moved == 0:
        return Verdict(Domain.ERRNO, errno.ENODATA if slot.block.io.direction == READ else errno.EIO)
    if moved > slot.asked:
        return Verdict(Domain.ERRNO, errno.EPROTO)
    return None
