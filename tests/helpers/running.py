"""Drives `gdsfw run` as a user does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass
class Ended:
    """A finished `gdsfw run`."""

    code: int
    stdout: str
    stderr: str
    result: dict[str, Any] | None

    @property
    def jobs(self) -> list[dict[str, Any]]:
        assert self.result is not None, self.stderr
        return list(self.result["jobs"])


class Gdsfw:
    """Runs workloads as a user does: as a process, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._started: list[subprocess.Popen[str]] = []

    def close(self) -> None:
        """End what a failed test left running."""
        for process in self._started:
            if process.poll() is None:
                process.kill()
                process.communicate()

    def write(self, *jobs: Mapping[str, Any], **defaults: Any) -> Path:
        """A workload file with these jobs."""
        path = self.folder / "workload.yaml"
        document = {"version": 1, "defaults": {"backend": "posix", "directory": "data", **defaults}, "jobs": jobs}
        path.write_text(json.dumps(document))
        return path

    def command(self, path: Path, *arguments: str) -> list[str]:
        """The command line, with a result file beside the workload."""
        result = str(self.folder / "result.json")
        return [sys.executable, "-m", "gdsfw", "run", str(path), "-o", result, "--force", *arguments]

    def start(self, path: Path, *arguments: str, **environ: str) -> subprocess.Popen[str]:
        """Start it; what is still running when the test ends is ended then."""
        process = subprocess.Popen(
            self.command(path, *arguments),
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "NO_COLOR": "1", **environ},
        )
        self._started.append(process)
        return process

    def start_measuring(self, job: Mapping[str, Any], *later: Mapping[str, Any]) -> subprocess.Popen[str]:
        """Start a job with a runtime and come back when its workers have had half a second of I/O."""
        self.run({**job, "runtime": "10ms"})  # lays out
        process = self.start(self.write(job, *later))
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and process.poll() is None:
            if sum(1 for _ in Path(f"/proc/{process.pid}/task").iterdir()) > job.get("numjobs", 1):
                time.sleep(0.5)
                return process
            time.sleep(0.02)
        raise AssertionError("the run did not begin")

    def ended(self, process: subprocess.Popen[str], timeout: float = 60) -> Ended:
        """Wait for it and read what it left."""
        stdout, stderr = process.communicate(timeout=timeout)
        result = self.folder / "result.json"
        document = json.loads(result.read_text()) if result.exists() else None
        return Ended(process.returncode, stdout, stderr, document)

    def run(self, *jobs: Mapping[str, Any], arguments: Sequence[str] = (), code: int = 0, **defaults: Any) -> Ended:
        """Run these jobs and check the exit code."""
        ended = self.ended(self.start(self.write(*jobs, **defaults), *arguments))
        assert ended.code == code, ended.stderr + ended.stdout
        return ended
