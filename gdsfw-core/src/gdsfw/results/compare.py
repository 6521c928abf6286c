"""Two or more results beside each other: ratios, the spread of repeats, and what makes a comparison unfair."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import copysign
from statistics import median
from typing import TYPE_CHECKING

from gdsfw.errors import UsageError

if TYPE_CHECKING:
    from gdsfw.results.load import Results
    from gdsfw.results.model import DirectionResult, JobResult

#: What decides when measuring begins and ends, and what one I/O waits for. Results that differ in one of these did
#: not measure the same thing.
PHASE_SETTINGS = (
    "runtime",
    "ramp_time",
    "size",
    "io_size",
    "loops",
    "direct",
    "invalidate",
    "sync",
    "fsync",
    "fdatasync",
    "end_fsync",
    "register_buffers",
)
_GATE = re.compile(r"(?P<metric>[a-z]+(?:_[a-z0-9.]+)?):(?P<limit>[+-]\d+(?:\.\d+)?)%")

Key = tuple[str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True)
class Figure:
    """One metric of one job and direction in one result.

    Args:
        value: the median of the repeats.
        spread: (largest - smallest) / median of the repeats; None for a single run.
        runs: how many repeats there are.
    """

    value: float
    spread: float | None
    runs: int


@dataclass(frozen=True)
class Row:
    """A metric in the first result (`base`) and in another one. ratio: other / base; None if base is 0.

    Rates in I/Os and bytes per second, latencies in nanoseconds.
    """

    source: str
    job: str
    direction: str
    metric: str
    base: Figure
    other: Figure
    ratio: float | None


@dataclass(frozen=True)
class Gate:
    """A limit on the change of a metric: -5 % is the largest loss, +5 % the largest rise that passes."""

    metric: str
    limit: float

    @classmethod
    def parse(cls, text: str) -> Gate:
        """Read `iops:-5%` or `lat_p99:+10%`.

        Raises:
            UsageError: it is written otherwise.
        """
        found = _GATE.fullmatch(text)
        if found is None:
            raise UsageError(
                f"--gate {text!r} is not METRIC:CHANGE",
                hint="--gate iops:-5% (at most 5 % less) or --gate lat_p99:+10% (at most 10 % more)",
            )
        return cls(found["metric"], float(found["limit"]) / 100)

    def holds(self, row: Row) -> bool:
        """Whether the change of this row is within the limit; an unknown ratio is not."""
        if row.ratio is None:
            return False
        change = row.ratio - 1
        # By the sign that was written: -0 % is a limit as well.
        return change >= self.limit if copysign(1, self.limit) < 0 else change <= self.limit


@dataclass(frozen=True)
class Comparison:
    """Rows in the order of the first result, and warnings for whoever reads them.

    Args:
        missing: what another result lacks, or has only a part of; each fails any gate.
    """

    rows: list[Row]
    warnings: list[str]
    missing: list[str]

    def failures(self, gates: Sequence[Gate]) -> list[str]:
        """A line for each limit that does not hold. A result that is not whole, or a metric that is absent, fails.

        Raises:
            UsageError: a gate names a metric that no job has.
        """
        known = {row.metric for row in self.rows}
        lines = list(self.missing) if gates else []
        for gate in gates:
            if gate.metric not in known:
                raise UsageError(
                    f"--gate: no job has the metric {gate.metric!r}; there are: {', '.join(sorted(known))}"
                )
            for row in self.rows:
                if row.metric == gate.metric and not gate.holds(row):
                    change = "unknown" if row.ratio is None else f"{100 * (row.ratio - 1):+.1f} %"
                    lines.append(
                        f"{row.source}: {row.job} {row.direction}: {row.metric} {change}, limit {100 * gate.limit:+g} %"
                    )
        return lines


def compare(results: Sequence[Results]) -> Comparison:
    """Compare every result with the first one, job by job and sweep point by sweep point.

    Raises:
        UsageError: fewer than two results, no job in common, or a job whose phase settings differ.
    """
    if len(results) < 2:
        raise UsageError("compare takes two results or more", hint="gdsfw compare before.json after.json")
    base, *others = results
    rows: list[Row] = []
    warnings: list[str] = []
    missing: list[str] = []
    for other in others:
        ours, theirs = _grouped(base), _grouped(other)
        common = [key for key in ours if key in theirs]
        if not common:
            raise UsageError(
                f"{base.source} and {other.source} have no job in common; jobs are matched by name and point"
            )
        missing += [f"{other.source}: {title(key)} is missing" for key in ours if key not in theirs]
        warnings += [f"{other.source}: {title(key)} is not in {base.source}" for key in theirs if key not in ours]
        for key in common:
            _same_phases(key, base, other)
            warnings += _unfair(key, ours[key], theirs[key], other.source)
            missing += _partial(key, base.source, ours[key])
            missing += _partial(key, other.source, theirs[key])
            missing += _lost(key, ours[key], theirs[key], other.source)
            rows += _rows(key, ours[key], theirs[key], other.source)
    return Comparison(rows, list(dict.fromkeys(warnings)), list(dict.fromkeys(missing)))


def title(key: Key) -> str:
    """Name and point as in a label, without the number of the repeat."""
    name, point = key
    return f"{name} [{', '.join(f'{option}={value}' for option, value in point)}]" if point else name


def measures(side: DirectionResult) -> dict[str, float]:
    """The metrics of a direction by name. Latencies: lat_ from the scheduled start; clat_ where only that is known."""
    found = {"iops": side.iops, "bw": side.bw_bytes}
    kind, latency = ("lat", side.lat_ns) if side.lat_ns else ("clat", side.clat_ns)
    if latency is not None:
        found[f"{kind}_mean"] = latency.mean
        found |= {f"{kind}_p{percent}": value for percent, value in latency.percentiles.items()}
        found[f"{kind}_max"] = latency.max
    return found


def _grouped(results: Results) -> dict[Key, list[JobResult]]:
    groups: dict[Key, list[JobResult]] = {}
    for job in results:
        groups.setdefault((job.name, tuple(job.point.items())), []).append(job)
    return groups


def _same_phases(key: Key, base: Results, other: Results) -> None:
    ours, theirs = _grouped(base)[key][0].job, _grouped(other)[key][0].job
    unlike = [name for name in PHASE_SETTINGS if ours.get(name) != theirs.get(name)]
    if unlike:
        listed = "; ".join(f"{name}: {ours.get(name)} and {theirs.get(name)}" for name in unlike)
        raise UsageError(
            f"{title(key)}: {base.source} and {other.source} did not measure the same thing: {listed}",
            hint="run both with the same settings",
        )


def _unfair(key: Key, ours: list[JobResult], theirs: list[JobResult], source: str) -> Iterator[str]:
    where = f"{source}: {title(key)}"
    for what, seen in (
        ("transport", [{job.transport.kind for job in jobs} for jobs in (ours, theirs)]),
        ("cache state", [{job.transport.cache for job in jobs} for jobs in (ours, theirs)]),
        ("loop", [{job.loop for job in jobs} for jobs in (ours, theirs)]),
    ):
        if seen[0] != seen[1]:
            yield f"{where}: another {what}: {', '.join(sorted(seen[0]))} against {', '.join(sorted(seen[1]))}"
    for jobs, which in ((ours, "the first result"), (theirs, source)):
        watched = sorted({plugin for job in jobs for plugin in job.instrumented})
        if watched:
            yield f"{title(key)}: instrumented in {which} by {', '.join(watched)}, which costs time"


def _partial(key: Key, source: str, jobs: list[JobResult]) -> Iterator[str]:
    for status in sorted({job.status for job in jobs} - {"done"}):
        yield f"{source}: {title(key)} ended as {status}: the figures are of a part"


def _lost(key: Key, ours: list[JobResult], theirs: list[JobResult], source: str) -> Iterator[str]:
    for direction in ("read", "write"):
        lost = [name for name in _figures(ours, direction) if name not in _figures(theirs, direction)]
        if lost:
            yield f"{source}: {title(key)} {direction} lacks {', '.join(lost)}"


def _rows(key: Key, ours: list[JobResult], theirs: list[JobResult], source: str) -> Iterator[Row]:
    for direction in ("read", "write"):
        base, other = _figures(ours, direction), _figures(theirs, direction)
        for metric, figure in base.items():
            if metric in other:
                ratio = other[metric].value / figure.value if figure.value else None
                yield Row(source, title(key), direction, metric, figure, other[metric], ratio)


def _figures(jobs: list[JobResult], direction: str) -> dict[str, Figure]:
    """Metrics that every repeat has."""
    sides = [job.read if direction == "read" else job.write for job in jobs]
    sets = [measures(side) for side in sides if side is not None and side.ios]
    if not sets:
        return {}
    names = [name for name in sets[0] if all(name in one for one in sets)]
    return {name: _figure([one[name] for one in sets]) for name in names}


def _figure(values: list[float]) -> Figure:
    middle = median(values)
    spread = (max(values) - min(values)) / middle if len(values) > 1 and middle else None
    return Figure(middle, spread, len(values))
