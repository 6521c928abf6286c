"""Spawned processes with a time limit. One that hangs is named, killed and, where that does not help, left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import Any

#: How long a killed process may take to go; one that waits for a driver cannot.
_GRACE = 0.2


@dataclass
class Answer:
    """What one child said.

    Args:
        hung: the step that had begun and not ended when time was up; empty when the child ended.
        error: the last line on stderr of a child that died.
    """

    lines: list[dict[str, Any]] = field(default_factory=list)
    hung: str = ""
    error: str = ""

    def all(self, key: str) -> list[Any]:
        """Every value said under `key`."""
        return [line[key] for line in self.lines if key in line]


class _Child:
    def __init__(self, request: dict[str, Any], folder: str | None) -> None:
        self.answer = Answer()
        self._errors: list[str] = []
        self._process = subprocess.Popen(
            [sys.executable, "-m", "gdsfw.doctor.child", json.dumps(request)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            cwd=folder,
            start_new_session=True,
        )
        self._threads = [
            threading.Thread(target=target, daemon=True) for target in (self._read_answers, self._read_errors)
        ]
        for thread in self._threads:
            thread.start()

    def _read_answers(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.answer.lines.append(json.loads(line))

    def _read_errors(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._errors = [line.strip()] if line.strip() else self._errors

    def finish(self, deadline: float) -> Answer:
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        if any(thread.is_alive() for thread in self._threads):
            begun = self.answer.all("begin")
            self.answer.hung = begun[-1] if begun else "start of the process"
            self._kill()
        elif not self.answer.all("done"):
            self.answer.error = (self._errors or ["it ended without an answer"])[0]
        return self.answer

    def _kill(self) -> None:
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(_GRACE)
        except (ProcessLookupError, PermissionError, subprocess.TimeoutExpired):
            pass


def ask(requests: list[dict[str, Any]], seconds: float, folder: str | None = None) -> list[Answer]:
    """Start a process for each request, all at once, and give their answers in order.

    Args:
        seconds: limit for all of them together.
        folder: their working directory.
    """
    deadline = time.monotonic() + seconds
    children = [_Child(request, folder) for request in requests]
    return [child.finish(deadline) for child in children]
