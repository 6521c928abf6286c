"""The queue of a path, with faults at its requests.

A request that is to fail never reaches the inner queue; its completion is made here. One that is to be short is handed
on with fewer bytes. A delayed completion is held back until its time, and the others overtake it.

The inner queue sees cookies of its own: those of its requests must follow each other without a gap, because one
completion may stand for several of them. Here every completion stands for one, since a short one among them would
otherwise pass for whole.
"""

from __future__ import annotations

import heapq
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gdsfw.backend import Completion
from gdsfw.errors import BackendError, Domain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gdsfw.backend import QueueRequest

    from gdsfw_fault.script import Hit, Script

now_ns = time.monotonic_ns


@dataclass(slots=True)
class _Sent:
    """A request in the inner queue: the loop's cookie, the bytes that were asked for here, its delay."""

    cookie: int
    size: int
    delay_ns: int


#: Of a completion that nobody asked for: the loop, which has no such cookie either, is to judge it.
_NOBODY = _Sent(2**64 - 1, 0, 0)


class FaultyQueue:
    """submit, reap and cancel around those of `inner`."""

    def __init__(self, inner: Any, script: Script) -> None:
        self._inner = inner
        self._script = script
        # By the loop's cookie: what happens to a request, decided once though a full queue makes it come again.
        self._decided: dict[int, Hit] = {}
        self._sent: dict[int, _Sent] = {}
        self._next_cookie = 0
        # (when, number, completion), the earliest first; the number keeps completions of one time in their order.
        self._held: list[tuple[int, int, Completion]] = []
        self._numbered = 0
        self._cancelled = False

    def submit(self, requests: Sequence[QueueRequest]) -> int:
        """Take the first k, and fail or hand on each."""
        hits = [self._decide(request) for request in requests]
        taken = 0
        while taken < len(requests):
            if (error := hits[taken].error) is not None:
                self._fail(requests[taken], error, hits[taken].delay_ns)
                taken += 1
                continue
            end = next((i for i in range(taken, len(requests)) if hits[i].error is not None), len(requests))
            try:
                accepted = self._hand_on(requests[taken:end], hits[taken:end])
            except (OSError, BackendError):
                if taken == 0:
                    del self._decided[requests[0].cookie]  # the loop gives it up
                    raise
                return taken  # those are on their way; the refusal is met again by the next call
            taken += accepted
            if taken < end:
                break
        return taken

    def reap(self, at_least: int, timeout_ns: int) -> list[Completion]:
        """Wait until so many completions are there or the timeout has passed."""
        deadline = now_ns() + timeout_ns
        found = self._due()
        while True:
            now = now_ns()
            lacking = at_least - len(found)
            until = min(deadline, self._held[0][0]) if self._held else deadline
            patience = max(0, until - now) if lacking > 0 else 0
            try:
                self._wait(lacking, patience)
            except (OSError, BackendError):
                if not found:
                    raise
                return found  # the inner queue will say it again
            found += self._due()
            if len(found) >= at_least or now_ns() >= deadline:
                return found

    def cancel(self) -> None:
        """Let nothing be held back any longer, and ask the inner queue to end early."""
        self._cancelled = True
        self._held = [(0, number, completion) for _, number, completion in sorted(self._held)]
        getattr(self._inner, "cancel", lambda: None)()

    def _wait(self, lacking: int, patience_ns: int) -> None:
        if self._sent:
            for completion in self._inner.reap(max(0, min(lacking, len(self._sent))), patience_ns):
                self._take_back(completion)
        elif patience_ns:
            time.sleep(patience_ns / 1e9)

    def _decide(self, request: QueueRequest) -> Hit:
        if request.cookie not in self._decided:
            self._decided[request.cookie] = self._script.look(request.direction)
        return self._decided[request.cookie]

    def _fail(self, request: QueueRequest, error: OSError | BackendError, delay_ns: int) -> None:
        domain, code = (error.domain, error.code) if isinstance(error, BackendError) else (Domain.ERRNO, error.errno)
        del self._decided[request.cookie]
        self._hold(Completion(request.cookie, domain=domain, code=code or 0), delay_ns)

    def _hand_on(self, requests: Sequence[QueueRequest], hits: Sequence[Hit]) -> int:
        """Submit requests that do not fail; how many the inner queue took."""
        ours = [
            request._replace(size=min(request.size, hit.short or request.size), cookie=self._next_cookie + index)
            for index, (request, hit) in enumerate(zip(requests, hits, strict=True))
        ]
        accepted: int = self._inner.submit(ours)
        for request, mine, hit in zip(requests[:accepted], ours, hits, strict=False):
            self._sent[mine.cookie] = _Sent(request.cookie, mine.size, hit.delay_ns)
            del self._decided[request.cookie]
        self._next_cookie += accepted
        return accepted

    def _take_back(self, completion: Completion) -> None:
        """One completion for each request that an inner one stands for; times stay with the first."""
        count = completion.count or 1
        for index in range(count):
            sent = self._sent.pop(completion.cookie + index, _NOBODY)
            self._hold(
                Completion(
                    sent.cookie,
                    sent.size if count > 1 else completion.result,
                    completion.domain,
                    completion.code,
                    storage_ns=0 if index else completion.storage_ns,
                    copy_ns=0 if index else completion.copy_ns,
                ),
                sent.delay_ns,
            )

    def _hold(self, completion: Completion, delay_ns: int) -> None:
        when = now_ns() + delay_ns if delay_ns and not self._cancelled else 0
        self._numbered += 1
        heapq.heappush(self._held, (when, self._numbered, completion))

    def _due(self) -> list[Completion]:
        now = now_ns()
        found = []
        while self._held and self._held[0][0] <= now:
            found.append(heapq.heappop(self._held)[2])
        return found
