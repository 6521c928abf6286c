"""docs/reference/endings.md says what runs do: each row is what the ending, brought about, was seen to do.

`GDSFW_WRITE_DOCS=1 python -m pytest tests/run/test_endings_table.py` writes the page anew, and a result of each ending.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from gdsfw.results.load import Results
from gdsfw.storage.cleaning import clean
from gdsfw.storage.manifest import LOCK, NAME
from helpers.running import Ended
from helpers.site import Site
from run.endings import ENDINGS, Ending, Setting

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "endings.md"
RECORDED = PAGE.parent / "endings"
WRITE = bool(os.environ.get("GDSFW_WRITE_DOCS"))
HEADING = """\
# How a run can end

Made by `tests/run/test_endings_table.py`, which brings each of these about and compares. Paths are shortened. One line
on stderr says what failed, with operation, file, offset, size and the error's name; the result has the same and the
counts until then ([a result of each](endings/)). The other jobs of the run go on, except after a signal. No ending
touches a file that gdsfw did not make; those that it made are known to `gdsfw clean`.

| ending | brought about by | exit code | status | first line on stderr | kept |
| --- | --- | --- | --- | --- | --- |
"""


#: Files of the user's in the endings' data folders.
USERS = {"bystander", "image", "precious", "secret", "sparse"}


@pytest.fixture
def setting(tmp_path: Path) -> Iterator[Setting]:
    from helpers.running import Gdsfw

    folder = tmp_path / "run"
    folder.mkdir()
    (tmp_path / "site").mkdir()
    driver = Gdsfw(folder)
    yield Setting(driver, Site(tmp_path / "site"))
    driver.close()


def first_line(ended: Ended, folder: Path) -> str:
    """What the user reads first, without what differs from run to run."""
    lines = [line for line in ended.stderr.splitlines() if line.strip() and not line.startswith((" ", "read: ", "  "))]
    told = [
        line
        for line in ended.stderr.splitlines()
        if "error:" in line or "verify:" in line or "workload.yaml" in line or "result" in line
    ]
    line = (told or lines or [""])[0].replace(str(folder), "DIR")
    for pattern, text in (
        (r"/dev/loop\d+", "/dev/loopN"),
        (r"gdsfw-\d+-", "gdsfw-PID-"),
        (r"offset \d+", "offset N"),
        (r"expected [0-9a-f]+, found [0-9a-f]+", "expected ..., found ..."),
        (r"\d+(\.\d+)? s\b", "N s"),
        (r"[\d.]+ [KMG]iB free \(\d+ and \d+ bytes\)", "N free"),
    ):
        line = re.sub(pattern, text, line)
    return line.replace("|", "\\|")


def row(ending: Ending, ended: Ended, folder: Path) -> str:
    said = first_line(ended, folder)
    status = (ended.result or {}).get("status") or "-"
    told = f"`{said}`" if said else "-"
    return f"| {ending.name} | {ending.how} | {ended.code} | {status} | {told} | {ending.keeps} |"


def recorded(ending: Ending) -> Path:
    return RECORDED / f"{ending.name.replace(' ', '-').replace(chr(39), '')}.json"


def unknown_files(folder: Path) -> set[str]:
    """Files that `gdsfw clean` would leave."""
    rows, distrust = clean(folder, dry_run=True)
    assert distrust is None
    known = {Path(row.path).name for row in rows if row.kept is None}
    return {path.name for path in folder.iterdir()} - known - {NAME, LOCK}


@pytest.mark.parametrize("ending", ENDINGS, ids=lambda ending: ending.name)
def test_the_table_says_what_happens(ending: Ending, setting: Setting) -> None:
    (setting.data / "bystander").write_text("the user's")
    ended = ending.bring_about(setting)
    assert (setting.data / "bystander").read_text() == "the user's"
    assert unknown_files(setting.data) <= USERS
    assert ended.code == ending.code, ended.stderr
    assert "Traceback" not in ended.stderr
    if ending.name == "SIGINT twice":  # the first one may have been enough
        ended = replace(ended, result=None)
    assert (ended.result or {}).get("status") == ending.status
    line = row(ending, ended, setting.gdsfw.folder)
    if WRITE:
        _write(ending, line, ended, setting.gdsfw.folder)
    assert line in PAGE.read_text().splitlines()


@pytest.mark.parametrize("ending", [ending for ending in ENDINGS if ending.status], ids=lambda ending: ending.name)
def test_a_result_of_each_ending_is_recorded_and_can_be_read(ending: Ending) -> None:
    run = Results.load(recorded(ending)).run
    assert run.status == ending.status
    if ending.name != "SIGPIPE":  # the run itself was done
        assert run.exit_code == ending.code


def test_the_page_lists_these_endings_and_no_others() -> None:
    rows = [line.split(" | ")[0].removeprefix("| ") for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    assert rows[2:] == [ending.name for ending in ENDINGS]


def _write(ending: Ending, line: str, ended: Ended, folder: Path) -> None:
    lines = PAGE.read_text().splitlines() if PAGE.exists() else []
    rows = {entry.split(" | ")[0].removeprefix("| "): entry for entry in lines if entry.startswith("| ")}
    rows[ending.name] = line
    PAGE.write_text(HEADING + "\n".join(rows[known.name] for known in ENDINGS if known.name in rows) + "\n")
    if ended.result is not None:
        RECORDED.mkdir(exist_ok=True)
        text = json.dumps(_shortened(ended.result), indent=1).replace(str(folder), "DIR")
        recorded(ending).write_text(text + "\n")


def _shortened(result: dict[str, object]) -> dict[str, object]:
    """A result without what is long and says nothing of the ending, or names the machine."""
    kept = {**result, "plan": {}, "host": {}, "argv": [], "workload": ""}
    for job in result["jobs"]:  # type: ignore[attr-defined]
        for side in (job["read"], job["write"]):
            if side:
                side["histogram"] = None
        job["timeline"] = None
    return kept
