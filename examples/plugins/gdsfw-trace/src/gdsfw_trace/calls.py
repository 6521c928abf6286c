"""The data plane with a span around each call."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any

from gdsfw.errors import Domain

from gdsfw_trace.lane import Lane, Span, now_ns

if TYPE_CHECKING:
    from gdsfw.backend import Completion, FileHandle, PythonIO, QueueRequest

#: What a path may offer beside reads, writes and a queue.
OTHERS = ("flush", "fill", "make_data", "verify", "copy", "register_buffer", "deregister_buffer")


def traced(calls: PythonIO, lane: Lane) -> PythonIO:
    """`calls`, noted in `lane`."""
    queued = hasattr(calls, "submit") and hasattr(calls, "reap")
    return TracedQueue(calls, lane) if queued else TracedIO(calls, lane)


class TracedIO:
    """A synchronous path. Whatever else the inner one has is passed on as it is."""

    def __init__(self, inner: Any, lane: Lane) -> None:
        self._inner = inner
        self._lane = lane
        # Only what the path has: the loop decides by what it finds.
        for name in OTHERS:
            if hasattr(inner, name):
                setattr(self, name, _spanned(lane, name, getattr(inner, name)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def read(self, file: FileHandle, size: int, file_offset: int, buffer_offset: int) -> int:
        """Read, with a span."""
        return self._move("read", file, size, file_offset, buffer_offset)

    def write(self, file: FileHandle, size: int, file_offset: int, buffer_offset: int) -> int:
        """Write, with a span."""
        return self._move("write", file, size, file_offset, buffer_offset)

    def _move(self, name: str, file: FileHandle, size: int, file_offset: int, buffer_offset: int) -> int:
        with self._lane.span("io", name, file=file.target.name, offset=file_offset, size=size) as span:
            moved: int = getattr(self._inner, name)(file, size, file_offset, buffer_offset)
            span.args["result"] = moved
        return moved


class TracedQueue(TracedIO):
    """A path with requests in flight: a span from a request's submission to its completion."""

    def submit(self, requests: Sequence[QueueRequest]) -> int:
        """Submit, and begin the spans of those that were taken."""
        before = now_ns()
        taken: int = self._inner.submit(requests)
        for request in requests[:taken]:
            args = {"file": request.file.target.name, "offset": request.file_offset, "size": request.size}
            self._lane.in_queue[request.cookie] = Span("io", request.direction, before, args=args, overlaps=True)
        return taken

    def reap(self, at_least: int, timeout_ns: int) -> Sequence[Completion]:
        """Collect completions, and end their spans."""
        found: Sequence[Completion] = self._inner.reap(at_least, timeout_ns)
        for completion in found:
            count = completion.count or 1
            for cookie in range(completion.cookie, completion.cookie + count):
                span = self._lane.in_queue.pop(cookie, None)
                if span is not None:  # a queue that makes up cookies is the loop's to judge
                    self._end(span, completion)
        return found

    def _end(self, span: Span, completion: Completion) -> None:
        if completion.domain is Domain.NONE:
            span.args["result"] = span.args["size"] if completion.count > 1 else completion.result
        elif completion.domain is Domain.ERRNO:
            span.args["error"] = errno.errorcode.get(completion.code, f"errno {completion.code}")
        else:
            span.args["error"] = f"{completion.domain.name.lower()} {completion.code}"
        self._lane.note(span)


def _spanned(lane: Lane, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(call)
    def inside(*arguments: Any, **named: Any) -> Any:
        with lane.span("call", name):
            return call(*arguments, **named)

    return inside
