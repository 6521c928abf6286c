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
    """Check a workload file: every mistake with its line, what is valid, and the nearest name.

    Options of backends and plugins are checked for those that are installed. No file is looked at: `gdsfw run --plan`
    compares the workload with this machine.
    """
    import os

    from gdsfw.plugins import PluginManager
    from gdsfw.workload.complaints import Complaints
    from gdsfw.workload.dump import dump
    from gdsfw.workload.loader import load
    from gdsfw.workload.options import check_installed

    workload = load(file, sets or ())
    complaints = Complaints(workload)
    notes = check_installed(workload, PluginManager.installed(os.environ), complaints)
    complaints.raise_if_any()
    for note in notes:
        typer.echo(f"note: {note}", err=True)
    if show:
        typer.echo(dump(workload), nl=False)
        return
    runs = sum(len(points) * job.repeat for job, points in zip(workload.jobs, workload.points, strict=True))
    jobs = len(workload.jobs)
    typer.echo(f"{file}: valid: {jobs} job{'s' if jobs != 1 else ''}, {runs} run{'s' if runs != 1 else ''}")
