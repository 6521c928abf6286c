"""The table at the end of a run, as a user sees it."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from gdsfw.results.model import RunResult
from gdsfw.results.table import print_table
from helpers.running import Gdsfw


def test_rows_name_the_sweep_point_and_the_backend(tmp_path: Path) -> None:
    gdsfw = Gdsfw(tmp_path)
    job = {"name": "n", "rw": "randrw", "size": "1MiB", "sweep": {"block_size": ["4KiB", "64KiB"]}}
    ended = gdsfw.ended(gdsfw.start(gdsfw.write(job, backend="noop"), "--backend", "noop", "--backend", "posix"))
    assert ended.code == 0, ended.stderr
    table = ended.stdout.partition("\nn [")[0].splitlines()  # the lines of each job and the comparison follow
    rows = [line for line in table if " read " in line]
    assert [row.split("]")[0].strip() for row in rows] == [
        "n [backend=noop block_size=4KiB",
        "n [backend=noop block_size=64KiB",
        "n [backend=posix block_size=4KiB",
        "n [backend=posix block_size=64KiB",
    ]
    assert sum(" write " in line for line in table) == 4


def test_a_job_that_never_measured_has_an_error_and_no_row(tmp_path: Path) -> None:
    gdsfw = Gdsfw(tmp_path)
    absent = {"name": "absent", "rw": "read", "filename": str(tmp_path / "none"), "size": "4KiB"}
    ended = gdsfw.ended(gdsfw.start(gdsfw.write(absent)))
    assert ended.code == 3
    assert "no such file" in ended.stderr
    assert "IOPS" not in ended.stdout


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_no_figure_is_cut_on_a_narrow_terminal(document_text: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    result = RunResult.from_json(json.loads(document_text))

    class Terminal(StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    print_table(result, stream)
    shown = stream.getvalue()
    assert "…" not in shown
    assert "bandwidth" in shown
    assert ("p99.9" in shown) == (width == 200)


def test_what_is_no_terminal_gets_every_column_of_any_width(document_text: str) -> None:
    document = json.loads(document_text)
    for job in document["jobs"]:
        job["label"] = "long " * 60
    stream = StringIO()
    print_table(RunResult.from_json(document), stream)
    shown = stream.getvalue()
    assert "…" not in shown
    assert "p99.9" in shown
    assert "long " * 60 in shown
