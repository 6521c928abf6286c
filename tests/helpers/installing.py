"""Example distributions as pip installs them, for a child process."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path


def install(distribution: Path, folder: Path) -> None:
    """Let pip install a distribution, without what it depends on, into a folder of its own."""
    # Where the build tool is there already, pip need not fetch it.
    isolation = ["--no-build-isolation"] if find_spec("hatchling") else []
    how = ["--quiet", "--no-deps", *isolation, "--target", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", "install", *how, str(distribution)], check=True, capture_output=True)


def python(*arguments: object, folder: Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run `python -m` with what is installed in `folder`."""
    return subprocess.run(
        [sys.executable, "-m", *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(folder)},
    )


def modules_of_gdsfw(sources: Path) -> set[str]:
    """What the Python files below a folder import of gdsfw itself."""
    lines = [line.split() for path in sources.rglob("*.py") for line in path.read_text(encoding="utf-8").splitlines()]
    return {words[1] for words in lines if words[:1] == ["from"] and words[1].split(".")[0] == "gdsfw"}
