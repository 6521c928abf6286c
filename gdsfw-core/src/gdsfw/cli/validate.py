"""`gdsfw validate`: check a workload file without running it."""

from __future__ import annotations

from typing import Annotated

import typer


def command(
    file: Annotated[str, typer.Argument(help="Workload file; - is standard input.")],
    sets: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Replace a value; jobs.NAME.KEY for one job.")
    ] = None,
    show: Annotated[
        bool, typer.Option("--show", help="Print the workload with defaults and variables resolved.")
    ] = False,
) -> None:
    """Check a workload file: every mistake with its line, what is valid, and the nearest name."""
    from gdsfw.workload.dump import dump
    from gdsfw.workload.loader import load

    workload = load(file, sets or ())
    if show:
        typer.echo(dump(workload), nl=False)
        return
    runs = sum(len(points) * job.repeat for job, points in zip(workload.jobs, workload.points, strict=True))
    jobs = len(workload.jobs)
    typer.echo(f"{file}: valid: {jobs} job{'s' if jobs != 1 else ''}, {runs} run{'s' if runs != 1 else ''}")
