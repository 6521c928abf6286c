"""Does what a reader of a page does, in a folder and a Python environment of the page's own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

from docs.pages import ROOT

#: What a reader's shell finds; all of them are modules too.
COMMANDS = ("gdsfw", "pip", "pytest", "build")
#: Backends that need a GPU are left out: a reader who starts has not installed them.
PLUGINS = "-cufile,-hipfile"
_NUMBER = re.compile(r"(?:(?<!\S)[+-])?[\d,]*\d(\.\d+)?(e[+-]\d+)?(k|M|G| ?([KMGT]i?)?B(/s)?\b| ?(ns|us|ms|s)\b| ?%)?")
#: What depends on the file system under the reader's folder: the page cache's part, and the evidence for it.
_CACHE = re.compile(r"\b(bypassed|cold|warm|unknown)\b( \(.*\))?")
_RULED = re.compile(r"[\s─━]+")


class Reader:
    """Runs blocks one after another; each begins where the one before it ended.

    The environment sees what is installed for these tests, and what a page installs goes into it alone. Nothing is
    asked of an index: build tools are installed with the tests.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = self._cwd = folder / "reader"
        self._state = folder / "cwd"
        self._programs = folder / "environment" / "bin"
        venv.create(folder / "environment", symlinks=True)
        (site,) = (folder / "environment").glob("lib/python*/site-packages")
        (site / "installed.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
        for name in COMMANDS:
            program = self._programs / name
            program.write_text(f'#!/bin/sh\nexec "{self._programs}/python" -m {name} "$@"\n')
            program.chmod(0o755)
        # As in a clone, but for what is built or hidden there.
        ignored = shutil.ignore_patterns("__pycache__", ".*_cache", "*.egg-info", "build", "dist")
        shutil.copytree(ROOT / "examples", self.folder / "examples", ignore=ignored)

    def go(self, place: Path) -> None:
        """Stand in a folder of the clone, as a page about that folder expects."""
        self._cwd = self.folder / place

    def save(self, name: str, text: str, *, append: bool = False) -> Path:
        """Write a file of the page, or the next part of one."""
        path = self._cwd / name
        path.parent.mkdir(parents=True, exist_ok=True)
        before = path.read_text(encoding="utf-8") + "\n\n" if append else ""
        path.write_text(before + text, encoding="utf-8")
        return path

    def shell(self, commands: str, code: int = 0) -> str:
        """Run commands, the first failure being the end, and give what they print."""
        script = f"trap 'pwd >\"{self._state}\"' EXIT\n{commands}"
        done = self._run(["bash", "-euo", "pipefail", "-c", script], code)
        self._cwd = Path(self._state.read_text().strip())
        return done

    def python(self, text: str) -> str:
        """Run a program and give what it prints."""
        return self._run(["python", "-W", "error", "-c", text], 0)

    def _run(self, command: list[str], code: int) -> str:
        done = subprocess.run(
            command,
            cwd=self._cwd,
            env=self._environ(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == code, f"exit code {done.returncode}, not {code}:\n{done.stdout}"
        return done.stdout

    def _environ(self) -> dict[str, str]:
        # CI among them: where it is set, pytest prints more than a reader sees.
        tests_own = ("GDSFW_", "PIP_", "PYTEST_", "PYTHON")
        own = {name: value for name, value in os.environ.items() if name != "CI" and not name.startswith(tests_own)}
        return own | {
            "PATH": f"{self._programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(self.folder),
            "TMPDIR": str(self.folder.parent),
            "GDSFW_PLUGINS": PLUGINS,
            "NO_COLOR": "1",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_NO_BUILD_ISOLATION": "0",  # pip's way to say: without isolation
            "PIP_NO_INDEX": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
        }


def unlike(shown: str, printed: str) -> str | None:
    """What a page shows and the program does not print, or None.

    Numbers may differ, and the page cache's part. `...` stands for any lines.
    """
    found = _lines(printed)
    ends = {0}  # how many of the lines found the page may have shown so far
    for line in _lines(shown):
        if line == "...":
            ends = set(range(min(ends), len(found) + 1))
            continue
        further = {end + 1 for end in ends if end < len(found) and found[end] == line}
        if not further:
            rest = "\n".join(found[min(ends) :] or ["(nothing)"])
            return f"the page shows\n    {line}\nwhere this was printed:\n{rest}"
        ends = further
    return None if len(found) in ends else "the page does not show\n" + "\n".join(found[max(ends) :])


def _lines(text: str) -> list[str]:
    plain = (_RULED.sub(" ", line).strip() for line in text.splitlines())
    return [_NUMBER.sub("N", _CACHE.sub("C", line)) for line in plain if line]
