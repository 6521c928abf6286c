"""`gdsfw compare`: results beside each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gdsfw.results.compare import Comparison, Figure

#: Metrics of the table; --json has every percentile.
_SHOWN = ("iops", "bw", "mean", "p50", "p99", "p99.9")


def command(
    files: Annotated[list[str], typer.Argument(help="Results; the first one is what the others are compared with.")],
    gates: Annotated[
        list[str] | None,
        typer.Option("--gate", metavar="METRIC:CHANGE", help="Exit 1 beyond this change: iops:-5%, lat_p99:+10%."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout and nothing else.")] = False,
) -> None:
    """Compare results job by job and sweep point by sweep point: ratio to the first one, and the spread of repeats.

    Exit 2 if jobs differ in what decides when measuring begins and ends (runtime, size, ramp_time, direct ...).
    """
    import sys

    from gdsfw.results.compare import Gate, compare
    from gdsfw.results.load import Results

    limits = [Gate.parse(text) for text in gates or ()]
    comparison = compare([Results.load(path) for path in files])
    failures = comparison.failures(limits)
    if as_json:
        _print_json(comparison, failures)
    else:
        _print_table(comparison, [gate.metric for gate in limits])
    for warning in () if as_json else (*comparison.missing, *comparison.warnings):
        typer.echo(f"warning: {warning}", err=True)
    for failure in failures:
        typer.echo(f"gate: {failure}", err=True)
    sys.stdout.flush()
    raise typer.Exit(1 if failures else 0)


def _print_json(comparison: Comparison, failures: Sequence[str]) -> None:
    import json
    from dataclasses import asdict

    typer.echo(json.dumps({**asdict(comparison), "gate_failures": failures}, indent=1, allow_nan=False))


def _print_table(comparison: Comparison, also: Sequence[str]) -> None:
    import sys

    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    terminal = sys.stdout.isatty()
    console = Console(file=sys.stdout, width=None if terminal else 200, highlight=False)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for index, name in enumerate(("result", "job", "", "metric", "first", "spread", "this", "spread", "change")):
        table.add_column(name, justify="left" if index < 4 else "right", no_wrap=True)
    for row in comparison.rows:
        if row.metric in also or row.metric.rpartition("_")[2] in _SHOWN:
            change = "" if row.ratio is None else f"{100 * (row.ratio - 1):+.1f} %"
            first, this = (_cells(row.metric, figure) for figure in (row.base, row.other))
            table.add_row(escape(row.source), escape(row.job), row.direction, row.metric, *first, *this, change)
    console.print(table)


def _cells(metric: str, figure: Figure) -> tuple[str, str]:
    from gdsfw.results.table import duration, quantity, size

    if metric == "iops":
        text = quantity(figure.value)
    elif metric == "bw":
        text = f"{size(figure.value)}/s"
    else:
        text = duration(figure.value)
    return text, "" if figure.spread is None else f"{100 * figure.spread:.1f} % of {figure.runs}"
