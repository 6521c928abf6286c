"""Throw-away distributions for a child process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any


class Site:
    """A folder on a child process's module path, with distributions that no installer put there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def distribution(self, name: str, source: str, *, entry_points: dict[str, str], version: str = "1.0") -> None:
        """Write a distribution: module `source` under its normalised name, and its metadata."""
        module = name.replace("-", "_")
        (self.folder / f"{module}.py").write_text(source)
        info = self.folder / f"{module}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        lines = [f"{key} = {value}" for key, value in entry_points.items()]
        (info / "entry_points.txt").write_text("\n".join(["[gdsfw]", *lines, ""]))

    def run(self, *arguments: str, code: int = 0, **environ: Any) -> subprocess.CompletedProcess[str]:
        """Run `gdsfw` with these distributions and check its exit code."""
        done = subprocess.run(
            [sys.executable, "-m", "gdsfw", *arguments],
            capture_output=True,
            text=True,
            timeout=60,
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(self.folder), **environ},
            check=False,
        )
        assert done.returncode == code, done.stderr
        return done

    def backends(self, **environ: Any) -> Any:
        """What `gdsfw backends --json` says."""
        return json.loads(self.run("backends", "--json", **environ).stdout)
