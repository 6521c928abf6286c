"""The trace file: Chrome's JSON format, as Perfetto reads it. Jobs are added as they end; never to a user's file.

Between two jobs it is always one whole document. What a run has written is never read again, so that a sweep of many
points costs each of them its own spans alone.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from gdsfw.errors import UsageError

if TYPE_CHECKING:
    from gdsfw_trace.jobs import JobTrace
    from gdsfw_trace.lane import Span

#: At the beginning of every trace, so that one can be told from a file of the user's.
FORMAT = "gdsfw-trace/1"
_BEGINNING = f'{{"otherData": {{"producer": "{FORMAT}"'
#: The end is of one length whatever the number of jobs, so that it is found again.
_END = re.compile(rb'\n\], "jobs": +(\d+)\}\n')


@dataclass(frozen=True)
class _There:
    """What is known of a trace that is there: its run, the time that is its zero, its jobs, where its end begins."""

    run: str
    begin_ns: int
    jobs: int
    length: int


def check_place(path: Path) -> None:
    """Refuse a place that no trace may go to.

    Raises:
        UsageError: what is there is no trace of gdsfw, or there is no folder to write in.
    """
    here = f"plugins.trace.file: {path}"
    if path.exists() and not path.is_file():
        raise UsageError(f"{here} is no regular file", hint="name a new file")
    if path.exists() and not _is_trace(path):
        raise UsageError(f"{here} exists and is no trace of gdsfw", hint="choose another name, or remove it")
    if not path.parent.is_dir():
        raise UsageError(f"{here}: there is no folder {path.parent}", hint=f"mkdir -p {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise UsageError(f"{here}: the folder {path.parent} cannot be written to")


def save(path: Path, trace: JobTrace, run: str) -> int:
    """Add a job to the trace of its run, which takes the place of an earlier run's; returns the number of spans.

    Raises:
        UsageError: the place has been taken since the job began.
        OSError: it cannot be written; what other jobs wrote stays.
    """
    check_place(path)
    there = _look(path)
    if there is not None and there.run == run:
        return _add(path, trace, there)
    return _begin(path, trace, run)


def _begin(path: Path, trace: JobTrace, run: str) -> int:
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    begin_ns = trace.started_ns
    try:
        with beside.open("x", encoding="utf-8") as file:
            file.write(f'{_BEGINNING}, "run": {json.dumps(run)}, "begin_ns": {begin_ns}}},\n')
            file.write('"displayTimeUnit": "ns",\n"traceEvents": [')
            spans = _write(file, trace, 1, begin_ns)
        beside.replace(path)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise
    return spans


def _add(path: Path, trace: JobTrace, there: _There) -> int:
    with path.open("r+", encoding="utf-8") as file:
        file.seek(there.length)
        try:
            file.truncate()
            file.write(",")
            return _write(file, trace, there.jobs + 1, there.begin_ns)
        except BaseException:
            with suppress(OSError), path.open("r+", encoding="utf-8") as again:
                again.truncate(there.length)
                again.seek(there.length)
                again.write(_end(there.jobs))
            raise


def _write(file: IO[str], trace: JobTrace, number: int, begin_ns: int) -> int:
    """A job's events, separated from nothing before them, and the end of the document; returns the number of spans."""
    spans, separator = 0, "\n"
    for event in _events(trace, number, begin_ns):
        file.write(separator + json.dumps(event))
        separator = ",\n"
        spans += event["ph"] in ("X", "b")
    file.write(_end(number))
    file.flush()
    os.fsync(file.fileno())
    return spans


def _end(jobs: int) -> str:
    return f'\n], "jobs": {jobs:>8}}}\n'


def _events(trace: JobTrace, pid: int, begin_ns: int) -> Iterator[dict[str, Any]]:
    """A job is a process of the trace, so that viewers put its threads together."""
    yield _metadata("process_name", pid, name=trace.title)
    yield _metadata("process_sort_index", pid, sort_index=pid)
    if trace.dropped:
        yield _metadata("process_labels", pid, labels=f"cut: {trace.dropped} calls are missing")
    for lane in (trace.lanes[number] for number in sorted(trace.lanes)):
        yield _metadata("thread_name", pid, lane.number, name=lane.name)
        yield _metadata("thread_sort_index", pid, lane.number, sort_index=lane.number)
        for count, span in enumerate(lane.everything()):
            yield from _span_events(span, {"pid": pid, "tid": lane.number}, begin_ns, f"{pid}.{lane.number}.{count}")


def _metadata(what: str, pid: int, tid: int = 0, **args: Any) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": args}


def _span_events(span: Span, place: dict[str, int], begin_ns: int, number: str) -> Iterator[dict[str, Any]]:
    """One complete event; a pair where spans of one thread overlap, which complete events may not."""
    common = {"name": span.name, "cat": span.kind, **place}
    start, end = (span.start_ns - begin_ns) / 1000, (span.end_ns - begin_ns) / 1000
    if span.overlaps:
        yield {"ph": "b", **common, "id": number, "ts": start, "args": span.args}
        yield {"ph": "e", **common, "id": number, "ts": end}
    else:
        yield {"ph": "X", **common, "ts": start, "dur": (span.end_ns - span.start_ns) / 1000, "args": span.args}


def _is_trace(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_BEGINNING)) == _BEGINNING.encode()
    except OSError:
        return False


def _look(path: Path) -> _There | None:
    """What a trace says of itself; None where there is none, or none that could be added to."""
    if not path.exists():
        return None
    size = len(_end(0))
    try:
        with path.open("rb") as file:
            head = json.loads(file.readline().rstrip(b",\n") + b"}")["otherData"]
            length = file.seek(-size, os.SEEK_END)
            end = _END.fullmatch(file.read(size))
        return None if end is None else _There(head["run"], head["begin_ns"], int(end[1]), length)
    except (OSError, ValueError, KeyError):
        return None
