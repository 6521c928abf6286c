"""The forms that a result can be given out in."""

from __future__ import annotations

import json
from enum import Enum
from io import StringIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gdsfw.results.model import RunResult


class Form(str, Enum):
    """Forms of a result, as `-f` names them."""

    table = "table"
    json = "json"
    html = "html"
    csv = "csv"
    fio_json = "fio-json"


def text_of(run: RunResult, form: Form) -> str:
    """The result in a form, ending with a newline."""
    if form is Form.html:
        from gdsfw.results.html import html_report

        return html_report(run)
    if form is Form.csv:
        from gdsfw.results.csv_table import csv_table

        return csv_table(run)
    if form is Form.table:
        from gdsfw.results.table import print_table

        stream = StringIO()
        print_table(run, stream)
        return stream.getvalue()
    document = run.to_json()
    if form is Form.fio_json:
        from gdsfw.results.fio_json import fio_json

        document = fio_json(run)
    return json.dumps(document, indent=1, allow_nan=False) + "\n"
