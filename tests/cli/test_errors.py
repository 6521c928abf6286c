"""What a user sees when a command fails: one message on stderr, a documented exit code, no traceback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Protocol

import pytest

COMMANDS = """
import typer
from gdsfw import errors, hookimpl
from gdsfw.errors import Domain, Problem

def io_failed(): raise errors.IOFailedError("3 reads failed")
def usage(): raise errors.UsageError("size: 3 is too small", hint="at least 4096")
def workload(): raise errors.WorkloadError([Problem("w.yaml:3:5", "unknown key 'sizee'", "did you mean 'size'?"),
                                            Problem("w.yaml:4:5", "no value")])
def unavailable(): raise errors.UnavailableError("no such library")
def plugin(): raise errors.PluginError("plugin 'x', hook gdsfw_io: no")
def refused(): raise errors.RefusedError("/dev/sda is mounted")
def backend(): raise errors.BackendError("open", Domain.ERRNO, 24, "file 7")
def vendor(): raise errors.BackendError("handle_register", Domain.FILE, 5027)
def os_error(): open("/no/such/file")
def defect(): return {}["key"]
def internal(): raise errors.InternalError("the plan has no jobs")
def number(): return 4
def leaves(): raise typer.Exit(3)
def interrupted(): raise KeyboardInterrupt
def waits():
    import time
    print("waiting", flush=True)
    time.sleep(60)
def prints():
    for _ in range(100_000):
        print("a line of text")

@hookimpl
def gdsfw_commands(app):
    for command in (io_failed, usage, workload, unavailable, plugin, refused, backend, vendor, os_error, defect,
                    internal, number, leaves, interrupted, waits, prints):
        app.command(command.__name__)(command)
"""


class Site(Protocol):
    folder: Path

    def distribution(self, name: str, source: str, *, entry_points: dict[str, str], version: str = "1.0") -> None: ...
    def run(self, *arguments: str, code: int = 0, **environ: Any) -> Any: ...


@pytest.fixture
def failing(site: Site) -> Site:
    """A plugin whose commands end in every way there is."""
    site.distribution("gdsfw-failing", COMMANDS, entry_points={"failing": "gdsfw_failing"})
    (site.folder / "tmp").mkdir()
    return site


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        ("io_failed", 1, "error: 3 reads failed\n"),
        ("usage", 2, "error: size: 3 is too small\n  hint: at least 4096\n"),
        ("workload", 2, "w.yaml:3:5: unknown key 'sizee' (did you mean 'size'?)\nw.yaml:4:5: no value\n"),
        ("unavailable", 3, "error: no such library\n"),
        ("plugin", 3, "error: plugin 'x', hook gdsfw_io: no\n"),
        ("refused", 4, "error: /dev/sda is mounted\n"),
        ("vendor", 3, "error: handle_register: file error 5027\n"),
        ("number", 4, ""),
        ("leaves", 3, ""),
        ("interrupted", 130, "stopped\n"),
    ],
)
def test_an_error_is_one_message_and_its_exit_code(failing: Site, command: str, code: int, message: str) -> None:
    done = failing.run(command, code=code)
    assert done.stderr == message
    assert done.stdout == ""


def test_an_error_of_the_kernel_has_its_name_and_a_hint(failing: Site) -> None:
    message = failing.run("backend", code=3).stderr
    assert message.startswith("error: open (file 7): too many open files (EMFILE)\n  hint: ")
    message = failing.run("os_error", code=3).stderr
    assert message.startswith("error: /no/such/file: no such file or directory (ENOENT)\n")
    assert "Traceback" not in message


@pytest.mark.parametrize(("command", "what"), [("defect", "KeyError: 'key'"), ("internal", "the plan has no jobs")])
def test_a_defect_leaves_a_report_and_says_where(failing: Site, command: str, what: str) -> None:
    done = failing.run(command, code=70, TMPDIR=str(failing.folder / "tmp"))
    (report,) = (failing.folder / "tmp").glob("gdsfw-report-*.txt")
    assert done.stderr.splitlines()[:2] == [
        f"internal error: {what}",
        f"  a report for the developers is in {report}",
    ]
    assert "Traceback" not in done.stderr
    text = report.read_text()
    assert f"command: gdsfw {command}" in text
    assert "Traceback" in text
    assert report.stat().st_mode & 0o077 == 0


def test_a_defect_without_a_place_for_the_report_is_still_told(failing: Site) -> None:
    done = failing.run("defect", code=70, TMPDIR="/no/such/folder")
    assert done.stderr.startswith("internal error: KeyError: 'key'\n")


@pytest.mark.parametrize("arguments", [("--debug", "refused"), ("refused", "--debug")])
def test_debug_shows_the_traceback_wherever_it_stands(failing: Site, arguments: tuple[str, ...]) -> None:
    done = failing.run(*arguments, code=4)
    assert "Traceback (most recent call last)" in done.stderr
    assert done.stderr.endswith("error: /dev/sda is mounted\n")


@pytest.mark.parametrize(
    "arguments",
    [("--no-such-option",), ("backends", "--no-such-option"), ("devices", "a", "b"), ("no-such-command",), ()],
)
def test_a_wrong_command_line_ends_with_2(site: Site, arguments: tuple[str, ...]) -> None:
    done = site.run(*arguments, code=2)
    assert "Usage: gdsfw" in done.stderr + done.stdout
    assert "Traceback" not in done.stderr


def process(site: Site, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "gdsfw", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(site.folder)},
    )


def test_ctrl_c_ends_with_130(failing: Site) -> None:
    with process(failing, "waits") as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "waiting\n"
        running.send_signal(signal.SIGINT)
        assert running.wait(30) == 130
        assert running.stderr is not None
        assert running.stderr.read() == "stopped\n"


def test_a_reader_that_goes_away_is_no_error(failing: Site) -> None:
    with process(failing, "prints") as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "a line of text\n"
        running.stdout.close()
        assert running.wait(30) == 128 + signal.SIGPIPE
        assert running.stderr is not None
        assert running.stderr.read() == ""


def test_a_reader_that_never_was_is_no_error(site: Site) -> None:
    line = f"{sys.executable} -m gdsfw version | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() in ("0", "141")
    assert done.stderr == ""


def test_a_file_name_that_is_no_text_does_not_break_the_message(failing: Site) -> None:
    name = os.fsencode(failing.folder) + b"/w\xff.yaml"
    done = subprocess.run(
        [os.fsencode(sys.executable), b"-m", b"gdsfw", b"validate", name], capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert b"w\\udcff.yaml" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("stream", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_a_closed_standard_stream_is_nobodys_file(stream: str, tmp_path: Path) -> None:
    """A file opened first would get the stream's number, and what is printed would go into it."""
    job = {"name": "w", "backend": "posix", "rw": "write", "size": "64KiB", "verify": True}
    jobs = [job, {**job, "name": "r", "rw": "read", "files_from": "w"}]
    (tmp_path / "w.yaml").write_text(json.dumps({"version": 1, "jobs": jobs}))
    command = f"{sys.executable} -m gdsfw run w.yaml -o r.json {stream}"
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "r.json").read_text())["jobs"][1]["verify"]["checked_bytes"] == 65536
