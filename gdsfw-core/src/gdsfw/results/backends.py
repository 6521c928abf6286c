"""A run on several backends: the figures of each beside the first one's."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING

from gdsfw.results.compare import Comparison, Figure, compare
from gdsfw.results.load import Results
from gdsfw.results.table import duration, quantity, size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gdsfw.results.compare import Row
    from gdsfw.results.model import JobResult, RunResult

#: Key of a point that names the backend, when a workload runs on several.
BACKEND = "backend"
_COLUMNS = ("job", "", "backend", "IOPS", "", "bandwidth", "", "lat mean", "", "p99", "")


@dataclass(frozen=True)
class BackendComparison:
    """Jobs on other backends beside those on the `first` one."""

    first: str
    comparison: Comparison


def compare_backends(run: RunResult, backends: Sequence[str]) -> BackendComparison | None:
    """Compare the jobs of a run on each of `backends` with those on the first one; None if fewer than two ran any."""
    parts = [Results(_part(run, name), name) for name in backends]
    parts = [part for part in parts if part.run.jobs]
    return BackendComparison(parts[0].source, compare(parts)) if len(parts) > 1 else None


def print_backends(compared: BackendComparison, stream: IO[str]) -> None:
    """A line for each job, direction and backend: figures, and how many times those of the first backend they are."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    terminal = stream.isatty()
    console = Console(file=stream, width=None if terminal else 200, highlight=False, soft_wrap=not terminal)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for index, name in enumerate(_COLUMNS):
        table.add_column(name, justify="left" if index < 3 else "right", no_wrap=True)
    previous = None
    for (job, direction, source), rows in _grouped(compared.comparison).items():
        if (job, direction) != previous:
            table.add_row(*map(Text, (job, direction, compared.first, *_cells(rows, base=True))))
        table.add_row(*map(Text, ("", "", source, *_cells(rows, base=False))))
        previous = (job, direction)
    if table.row_count:
        console.print(table)
    for line in _doubts(compared.comparison):
        console.print(f"comparison: {line}", markup=False)


def _part(run: RunResult, backend: str) -> RunResult:
    return replace(run, jobs=[_unnamed(job) for job in run.jobs if job.point.get(BACKEND) == backend])


def _unnamed(job: JobResult) -> JobResult:
    """The job without the backend in its point, so that it is the same job on each."""
    return replace(job, point={key: value for key, value in job.point.items() if key != BACKEND})


def _grouped(comparison: Comparison) -> dict[tuple[str, str, str], dict[str, Row]]:
    """Rows by metric (`lat_mean` and `clat_mean` are both `mean`), by job, direction and backend, jobs together."""
    groups: dict[tuple[str, str, str], dict[str, Row]] = {}
    order = list(dict.fromkeys((row.job, row.direction) for row in comparison.rows))
    for row in sorted(comparison.rows, key=lambda row: order.index((row.job, row.direction))):
        groups.setdefault((row.job, row.direction, row.source), {})[row.metric.rpartition("_")[2]] = row
    return groups


def _cells(rows: dict[str, Row], *, base: bool) -> list[str]:
    cells = []
    for metric in ("iops", "bw", "mean", "p99"):
        row = rows.get(metric)
        figure = None if row is None else row.base if base else row.other
        ratio = "" if row is None or base or row.ratio is None else _times(row.ratio)
        cells += ["" if figure is None else _shown(metric, figure), ratio]
    return cells


def _times(ratio: float) -> str:
    return f"x {ratio:,.0f}" if ratio >= 100 else f"x {ratio:.2f}" if ratio >= 0.1 else f"x {ratio:.2g}"


def _doubts(comparison: Comparison) -> list[str]:
    """What makes the comparison unfair, each thing once with the jobs that it is true of."""
    jobs = list(dict.fromkeys(row.job for row in comparison.rows))
    sources = list(dict.fromkeys(row.source for row in comparison.rows))
    places = {f"{source}: {job}: ": (source, job) for source in sources for job in jobs}
    seen: dict[str, list[str]] = {}
    for text in (*comparison.missing, *comparison.warnings):
        prefix = next((prefix for prefix in places if text.startswith(prefix)), "")
        source, job = places.get(prefix, ("", ""))
        seen.setdefault(f"{source}: {text[len(prefix) :]}" if prefix else text, []).append(job)
    return [text if where in ([""], jobs) else f"{text} ({', '.join(where)})" for text, where in seen.items()]


def _shown(metric: str, figure: Figure) -> str:
    if metric == "iops":
        return quantity(figure.value)
    return f"{size(figure.value)}/s" if metric == "bw" else duration(figure.value)
