"""`gdsfw run`: run a workload."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from pathlib import Path

    from gdsfw.plugins import PluginManager
    from gdsfw.results.model import RunResult
    from gdsfw.workload.model import Workload
    from gdsfw.workload.plan_model import Plan


def command(
    file: Annotated[str, typer.Argument(help="Workload file; - is standard input.")],
    backends: Annotated[
        list[str] | None,
        typer.Option("--backend", metavar="NAME", help="Run every job on this backend; repeat it to compare several."),
    ] = None,
    sets: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Replace a value; jobs.NAME.KEY for one job.")
    ] = None,
    plan_only: Annotated[bool, typer.Option("--plan", help="Print what would run and do no I/O.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout and nothing else.")] = False,
    output: Annotated[
        str | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="Where the result goes; - is stdout. Default: gdsfw-results/."
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Let -o replace a file that is no result of gdsfw.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress, no table.")] = False,
) -> None:
    """Run a workload, show a table and keep the result.

    Exit codes: 0 done; 1 I/O or verification failed; 2 the workload is wrong or does not fit; 3 something is absent;
    4 refused for the safety of your data; 130 stopped, partial results written.
    """
    import os
    import sys
    from pathlib import Path

    from gdsfw.inventory import devices
    from gdsfw.plugins import PluginManager
    from gdsfw.results.save import check_output
    from gdsfw.workload.loader import load
    from gdsfw.workload.plan import make_plan

    destination = Path(output) if output and output != "-" else None
    if destination is not None and not plan_only:
        check_output(destination, force)
    workload = load(file, sets or ())
    plugins = PluginManager.installed(os.environ)
    plan = make_plan(
        workload,
        plugins=plugins,
        backends_override=backends or (),
        devices=lambda name: devices(plugins, name),
    )
    if plan_only:
        _show_plan(plan, as_json)
        return
    result, abandoned = _measure(plan, plugins, workload, quiet or as_json)
    _deliver(result, file, destination, to_stdout=as_json or output == "-", quiet=quiet)
    if abandoned:
        # A thread is still inside a call that does not return: nothing may wait for it.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(result.exit_code)
    raise typer.Exit(result.exit_code)


def _measure(plan: Plan, plugins: PluginManager, workload: Workload, quiet: bool) -> tuple[RunResult, bool]:
    """Run the plan; also says whether a worker had to be left behind."""
    import sys

    from gdsfw.engine.runner import Runner
    from gdsfw.results.progress import Progress
    from gdsfw.workload.dump import dump

    runner = Runner(plan, plugins, Progress(sys.stderr, quiet), sys.argv)
    return runner.run(dump(workload)), runner.abandoned


def _show_plan(plan: Plan, as_json: bool) -> None:
    import json

    from gdsfw.workload.render import plan_to_json, render_plan

    typer.echo(json.dumps(plan_to_json(plan), indent=1) if as_json else render_plan(plan), nl=as_json)


def _deliver(result: RunResult, source: str, destination: Path | None, *, to_stdout: bool, quiet: bool) -> None:
    """The document to its file or to stdout, the table to stdout unless the document is there, errors to stderr."""
    import json
    import sys

    from gdsfw.results.save import default_path, save
    from gdsfw.results.table import error_lines, print_table

    document = result.to_json()
    place = None
    if destination is not None:
        place = save(document, destination)
    elif not to_stdout:
        path = default_path(source)
        path.parent.mkdir(parents=True, exist_ok=True)
        place = save(document, path)
    if to_stdout:
        typer.echo(json.dumps(document, indent=1, allow_nan=False))
    elif not quiet:
        print_table(result, sys.stdout)
        typer.echo(f"result: {place}")
    for line in error_lines(result):
        typer.echo(line, err=True)
