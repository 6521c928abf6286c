"""`gdsfw report`: a result in another form."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from gdsfw.results.model import RunResult


class Format(str, Enum):
    """Forms of a report."""

    html = "html"
    csv = "csv"
    fio_json = "fio-json"


_ENDINGS = {Format.html: ".html", Format.csv: ".csv", Format.fio_json: ".fio.json"}


def command(
    file: Annotated[str, typer.Argument(help="Result of `gdsfw run`.")],
    form: Annotated[
        Format, typer.Option("-f", "--format", help="html: a page; csv: a table; fio-json: as fio writes it.")
    ] = Format.html,
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="FILE", help="- is stdout. Default: the result's name, another ending."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
) -> None:
    """Turn a result into a page to read, a table, or JSON for programs that read fio's."""
    from pathlib import Path

    from gdsfw.errors import UnavailableError, UsageError
    from gdsfw.results.load import Results

    text = _text(Results.load(file).run, form)
    if output == "-":
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


def _text(run: RunResult, form: Format) -> str:
    if form is Format.html:
        from gdsfw.results.html import html_report

        return html_report(run)
    if form is Format.csv:
        from gdsfw.results.csv_table import csv_table

        return csv_table(run)
    import json

    from gdsfw.results.fio_json import fio_json

    return json.dumps(fio_json(run), indent=1, allow_nan=False) + "\n"
