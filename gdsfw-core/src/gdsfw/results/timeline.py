"""Intervals of a run from the samples that the main thread took."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gdsfw.results.model import Timeline, TimelineRow

if TYPE_CHECKING:
    from gdsfw.engine.stage import Sample


def timeline(
    samples: Sequence[Sample], interval_ns: int | None, started_ns: int, last: Sample | None
) -> Timeline | None:
    """One row between every two samples, the first from `started_ns`, the last up to the job's final counters.

    Args:
        samples: cumulative counters, about one for each interval.
        last: the final counters, so that the rows add up to the totals.
    """
    if interval_ns is None:
        return None
    track = [sample for sample in samples if sample.t_ns > started_ns]
    if last is not None:
        track = [sample for sample in track if sample.t_ns < last.t_ns and sample.ios <= last.ios] + [last]
    rows = []
    then, ios, nbytes = started_ns, (0, 0), (0, 0)
    for sample in track:
        rows.append(
            TimelineRow(
                t_ns=then - started_ns,
                duration_ns=sample.t_ns - then,
                read_ios=sample.ios[0] - ios[0],
                read_bytes=sample.bytes[0] - nbytes[0],
                write_ios=sample.ios[1] - ios[1],
                write_bytes=sample.bytes[1] - nbytes[1],
            )
        )
        then, ios, nbytes = sample.t_ns, sample.ios, sample.bytes
    stalls, longest = _stalls(rows)
    return Timeline(interval_ns, rows, stalls, longest)


def _stalls(rows: Sequence[TimelineRow]) -> tuple[int, int]:
    stalls = longest = current = 0
    for row in rows:
        if row.read_ios or row.write_ios:
            current = 0
            continue
        stalls += current == 0
        current += row.duration_ns
        longest = max(longest, current)
    return stalls, longest
