"""The programs of docs/reference/results.md run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from helpers.running import Gdsfw

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "results.md"


def test_the_programs_of_the_page_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    job = {"name": "kv-lookup", "backend": "noop", "rw": "randread", "size": "1MiB", "sweep": {"block_size": ["4KiB"]}}
    Gdsfw(tmp_path).run(job)
    (tmp_path / "result.json").rename(tmp_path / "run.json")
    monkeypatch.chdir(tmp_path)
    programs = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(programs) == 2
    known: dict[str, object] = {}
    for program in programs:
        exec(program, known)
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "done 0"
    assert said[1].startswith("kv-lookup [block_size=4KiB] ")
    assert float(said[2]) >= 0
