"""`gdsfw run`: run a workload."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from gdsfw.results.forms import Form

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gdsfw.plugins import PluginManager
    from gdsfw.results.model import RunResult
    from gdsfw.workload.model import Workload
    from gdsfw.workload.plan_model import Plan


_Backends = Annotated[
    list[str] | None,
    typer.Option("--backend", metavar="NAME", help="Run every job on this backend; repeat it to compare several."),
]
_Sets = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Replace a value; jobs.NAME.KEY for one job.")
]
_Form = Annotated[
    Form | None,
    typer.Option(
        "-f", "--format", help="Form of what -o gets, or stdout without -o. Default: a table, and JSON in -o."
    ),
]
_Output = Annotated[
    str | None,
    typer.Option("-o", "--output", metavar="FILE", help="Where the result goes; - is stdout. Default: gdsfw-results/."),
]
_AllowDestroy = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-destroy",
        metavar="DEVICE",
        help="Block device that jobs with `allow_overwrite: true` may overwrite; repeatable.",
    ),
]


def command(
    file: Annotated[str, typer.Argument(help="Workload file; - is standard input.")],
    backends: _Backends = None,
    sets: _Sets = None,
    plan_only: Annotated[bool, typer.Option("--plan", help="Print what would run and do no I/O.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout and nothing else.")] = False,
    form: _Form = None,
    output: _Output = None,
    allow_destroy: _AllowDestroy = None,
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

    form = _form(form, as_json, plan_only)
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
        allow_destroy=allow_destroy or (),
    )
    if plan_only:
        _show_plan(plan, form is Form.json)
        return
    to_stdout = as_json or output == "-" or (destination is None and form not in (None, Form.table))
    result, abandoned = _measure(plan, plugins, workload, quiet or to_stdout)
    places = _save(result, file, destination, form, to_stdout=to_stdout)
    _print(result, (form or Form.json) if to_stdout else None, places, quiet=quiet, backends=backends or ())
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


def _form(form: Form | None, as_json: bool, plan_only: bool) -> Form | None:
    """The form that was asked for in either way."""
    from gdsfw.errors import UsageError

    if as_json and form not in (None, Form.json):
        raise UsageError(f"--json and -f {form.value if form else ''} contradict each other", hint="leave one out")
    if plan_only and form not in (None, Form.table, Form.json):
        raise UsageError(f"--plan has no form {form.value if form else ''}", hint="-f table or -f json")
    return Form.json if as_json else form


def _save(
    result: RunResult, source: str, destination: Path | None, form: Form | None, *, to_stdout: bool
) -> dict[str, Path]:
    """The result in its form to its file; the document, unless it is given out already, to the default place."""
    from gdsfw.results.forms import text_of
    from gdsfw.results.save import default_path, save

    places = {}
    form = form or Form.json
    if destination is not None:
        name = "result" if form is Form.json else "report"
        places[name] = save(text_of(result, form), destination)
    if form is not Form.json or (destination is None and not to_stdout):
        places["result"] = save(text_of(result, Form.json), default_path(source))
    return places


def _print(
    result: RunResult, form: Form | None, places: dict[str, Path], *, quiet: bool, backends: Sequence[str]
) -> None:
    """The result to stdout in a form, or for people; where it is kept; errors to stderr."""
    import sys

    from gdsfw.results.forms import text_of
    from gdsfw.results.table import error_lines, print_table

    if form is not None:
        typer.echo(text_of(result, form), nl=False)
    elif not quiet:
        print_table(result, sys.stdout)
        _compare(result, backends)
    for name, place in () if quiet else places.items():
        typer.echo(f"{name}: {place}", err=form is not None)
    for line in error_lines(result):
        typer.echo(line, err=True)


def _compare(result: RunResult, backends: Sequence[str]) -> None:
    """The backends of one run beside each other, if at least two of them ran."""
    import sys

    from gdsfw.results.backends import compare_backends, print_backends

    comparison = compare_backends(result, list(dict.fromkeys(backends)))
    if comparison is not None:
        print_backends(comparison, sys.stdout)
