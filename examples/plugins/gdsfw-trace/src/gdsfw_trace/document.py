"""The trace file: Chrome's JSON format, as Perfetto reads it. One whole document or none; never over a user's file."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gdsfw.errors import UsageError

if TYPE_CHECKING:
    from gdsfw_trace.jobs import JobTrace
    from gdsfw_trace.lane import Lane, Span

#: At the beginning of every trace, so that one can be told from a file of the user's.
FORMAT = "gdsfw-trace/1"


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


def save(path: Path, traces: Sequence[JobTrace]) -> int:
    """Write the traces of the jobs of a run, in place of an earlier trace; returns the number of spans.

    Raises:
        UsageError: the place has been taken since the job began.
        OSError: it cannot be written.
    """
    check_place(path)
    lanes = [(number, lane, lane.everything()) for number, trace in enumerate(traces, 1) for lane in _lanes(trace)]
    begin_ns = min((span.start_ns for _, _, spans in lanes for span in spans), default=0)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with beside.open("x", encoding="utf-8") as file:
            head = {"producer": FORMAT, "dropped": sum(trace.dropped for trace in traces)}
            file.write(f'{{"otherData": {json.dumps(head)},\n"displayTimeUnit": "ns",\n"traceEvents": [')
            separator = "\n"
            for event in _events(traces, lanes, begin_ns):
                file.write(separator + json.dumps(event))
                separator = ",\n"
            file.write("\n]}\n")
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise
    return sum(len(spans) for _, _, spans in lanes)


def _lanes(trace: JobTrace) -> list[Lane]:
    return [trace.lanes[number] for number in sorted(trace.lanes)]


def _events(
    traces: Sequence[JobTrace], lanes: Sequence[tuple[int, Lane, list[Span]]], begin_ns: int
) -> Iterator[dict[str, Any]]:
    for number, trace in enumerate(traces, 1):
        yield {"ph": "M", "name": "process_name", "pid": number, "args": {"name": trace.title}}
        yield {"ph": "M", "name": "process_sort_index", "pid": number, "args": {"sort_index": number}}
    for pid, lane, spans in lanes:
        place = {"pid": pid, "tid": lane.number}
        yield {"ph": "M", "name": "thread_name", **place, "args": {"name": lane.name}}
        yield {"ph": "M", "name": "thread_sort_index", **place, "args": {"sort_index": lane.number}}
        for count, span in enumerate(spans):
            yield from _span_events(span, place, begin_ns, f"{pid}.{lane.number}.{count}")


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
        with path.open(encoding="utf-8") as file:
            return FORMAT in file.read(200)
    except (OSError, UnicodeDecodeError):
        return False
