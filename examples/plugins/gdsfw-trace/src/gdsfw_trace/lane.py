"""What one thread of a job did: spans, noted by that thread alone, so that none waits for another."""

from __future__ import annotations

import errno
import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from gdsfw.errors import BackendError

now_ns = time.monotonic_ns


@dataclass(slots=True)
class Span:
    """One call, or one I/O from submission to completion. Times in ns of CLOCK_MONOTONIC.

    Args:
        kind: `hook`; `io` for reads and writes, `call` for the loop's other calls.
        overlaps: it was in a queue, so that others of its thread may begin or end within it.
    """

    kind: Literal["hook", "io", "call"]
    name: str
    start_ns: int
    end_ns: int = 0
    args: dict[str, Any] = field(default_factory=dict)
    overlaps: bool = False


class Budget:
    """How many spans of the data plane a job may still note; its threads share it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken = itertools.count()  # its next() is one step for the interpreter: two threads never get one number

    def take(self) -> bool:
        """Whether there is room for one more."""
        return next(self._taken) < self._most


class Lane:
    """One thread.

    Args:
        number: 0 for the main thread, worker's index + 1 for a worker.
    """

    def __init__(self, number: int, budget: Budget) -> None:
        self.number = number
        self.spans: list[Span] = []
        self.dropped = 0
        self.in_queue: dict[int, Span] = {}
        self._running: list[Span] = []
        self._budget = budget

    @property
    def name(self) -> str:
        """As a reader of the trace sees it."""
        return "main" if self.number == 0 else f"worker {self.number - 1}"

    @contextmanager
    def span(self, kind: Literal["hook", "io", "call"], name: str, **args: Any) -> Iterator[Span]:
        """Note what happens inside, whether it returns or raises."""
        span = Span(kind, name, now_ns(), args=args)
        self._running.append(span)
        try:
            yield span
        except BaseException as error:
            span.args["error"] = error_name(error)
            raise
        finally:
            self._running.pop()
            self.note(span)

    def note(self, span: Span) -> None:
        """Keep a span that ends now, if there is room for it."""
        span.end_ns = now_ns()
        if span.kind == "hook" or self._budget.take():
            self.spans.append(span)
        else:
            self.dropped += 1

    def everything(self) -> list[Span]:
        """Spans so far; of calls that have not returned, for instance those of a stuck worker, the part until now."""
        unfinished = [*self._running, *list(self.in_queue.values())]
        for span in unfinished:
            span.args["unfinished"] = True
            span.end_ns = now_ns()
        return sorted([*self.spans, *unfinished], key=lambda span: span.start_ns)


def error_name(error: BaseException) -> str:
    """`EIO`, `gpu 719`, or the class and text of what is no code."""
    if isinstance(error, BackendError):
        return f"{error.domain.name.lower()} {error.code}"
    if isinstance(error, OSError) and error.errno is not None:
        return errno.errorcode.get(error.errno, f"errno {error.errno}")
    return f"{type(error).__name__}: {error}"
