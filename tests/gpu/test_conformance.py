"""The conformance kit on both GPU backends, each on its vendor's stand-in in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from fakes.driving import OnStandin

CONFORMANCE = Path(__file__).parents[1] / "conformance"


def test_the_kit_passes(on: OnStandin) -> None:
    """In one process, since the libraries are looked for when it starts; its output names what failed."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "--no-header",
            "--tb=short",
            f"--basetemp={on.folder / 'kit'}",
            str(CONFORMANCE / f"test_{on.backend}.py"),
        ],
        cwd=CONFORMANCE.parents[1],
        env=on.process_environ(),
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert "misuse" not in done.stderr
    assert " passed" in done.stdout
