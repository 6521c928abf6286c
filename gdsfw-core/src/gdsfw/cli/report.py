"""`gdsfw report`: a result in another form."""

from __future__ import annotations

from typing import Annotated

import typer

from gdsfw.results.forms import Form

#: What the default name ends with; forms that are not here go to stdout.
_ENDINGS = {Form.html: ".html", Form.csv: ".csv", Form.fio_json: ".fio.json"}


def command(
    file: Annotated[str, typer.Argument(help="Result of `gdsfw run`.")],
    form: Annotated[
        Form,
        typer.Option(
            "-f",
            "--format",
            help="html: a page; csv: a table for programs; fio-json: as fio writes it; table: as after a run.",
        ),
    ] = Form.html,
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="- is stdout. Default: the result's name, another ending; table, json: stdout.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
) -> None:
    """Turn a result into a page to read, a table, or JSON for programs that read fio's."""
    from pathlib import Path

    from gdsfw.errors import UnavailableError, UsageError
    from gdsfw.results.forms import text_of
    from gdsfw.results.load import Results

    text = text_of(Results.load(file).run, form)
    if output == "-" or (output is None and form not in _ENDINGS):
        typer.echo(text, nl=False)
        return
    place = Path(output) if output else Path(file).with_suffix(_ENDINGS[form])
    try:
        with place.open("w" if force else "x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        raise UsageError(f"{place} exists", hint="choose another name with -o, or --force to replace it") from None
    except OSError as error:
        raise UnavailableError(f"{place}: {error.strerror}") from error
    typer.echo(f"report: {place}")
