"""What a user sees while jobs run, on a terminal and without one."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import time
from contextlib import suppress

import pytest
from gdsfw.results import progress
from gdsfw.results.progress import Progress
from helpers.running import Gdsfw

JOB = {"name": "r", "backend": "noop", "rw": "read", "size": "1MiB", "runtime": "1s"}


@pytest.fixture
def gdsfw(tmp_path_factory: pytest.TempPathFactory) -> Gdsfw:
    return Gdsfw(tmp_path_factory.mktemp("progress"))


def on_terminal(gdsfw: Gdsfw, *arguments: str, **job: object) -> str:
    """What a run writes to the terminal that is its stderr."""
    ours, theirs = pty.openpty()
    command = gdsfw.command(gdsfw.write({**JOB, "stage": "both"}, {**JOB, "name": "s", "stage": "both", **job}))
    process = subprocess.Popen(
        [*command, *arguments],
        cwd=gdsfw.folder,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "120"},
    )
    os.close(theirs)
    seen = b""
    with suppress(OSError):  # EIO: the other side is closed
        while piece := os.read(ours, 4096):
            seen += piece
    os.close(ours)
    assert process.wait() == 0, seen
    return seen.decode()


def test_a_terminal_shows_a_line_for_each_running_job(gdsfw: Gdsfw) -> None:
    seen = on_terminal(gdsfw, rate_iops=500)
    assert "r: " in seen
    assert "s: " in seen
    for words in ("/s, ", " IOPS", ", mean ", " s left", "\x1b[2K"):
        assert words in seen
    assert not any("mean" in line for line in seen.splitlines() if line.startswith("s:"))  # it waits for its rate
    assert seen.rfind("\x1b[?25h") > seen.rfind("\x1b[?25l")  # the cursor is there


def test_quiet_shows_nothing(gdsfw: Gdsfw) -> None:
    assert on_terminal(gdsfw, "--quiet") == ""


def test_without_a_terminal_there_are_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PLAIN_INTERVAL", 0.0)
    clock = iter([0.0, 0.0, 1.0, 1.0, 2.0, 2.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    stream = io.StringIO()
    shown = Progress(stream)
    shown.job("r", 0, 0, 0.0, 0, 4)  # short jobs have no line
    shown.job("r", 1000, 4096000, 0.25, 0, 4)
    shown.job("r", 3000, 12288000, 0.5, 2, 4)
    lines = stream.getvalue().splitlines()
    assert lines[0].startswith("r:  25 % 3.906 MiB")
    assert lines[1] == "r:  50 % 11.72 MiB, 7.812 MiB/s, 2,000 IOPS, mean 2 ms, 2 errors, 2 s left"


def test_a_short_run_without_a_terminal_shows_none(gdsfw: Gdsfw) -> None:
    assert gdsfw.run({**JOB, "runtime": "10ms"}, arguments=["--json"]).stderr.startswith("result: ")
