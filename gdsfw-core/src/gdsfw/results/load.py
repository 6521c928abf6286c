"""Results from their files, for programs: `gdsfw.Results.load("run.json")`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from gdsfw.engine.histogram import Histogram
from gdsfw.errors import UnavailableError, UsageError
from gdsfw.results.model import DirectionResult, JobResult, RunResult


class Results:
    """One result document.

    Args:
        run: the document, typed.
        source: the file it came from.
    """

    def __init__(self, run: RunResult, source: str = "") -> None:
        self.run = run
        self.source = source

    @classmethod
    def load(cls, path: str | Path) -> Results:
        """Read a result file.

        Raises:
            UnavailableError: there is no such file, or it may not be read (exit 3).
            UsageError: it is no result of gdsfw (exit 2).
        """
        try:
            text = Path(path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise UsageError(f"{path}: not a result of gdsfw: it is no text") from None
        except OSError as error:
            raise UnavailableError(f"{path}: {error.strerror}") from error
        try:
            return cls(RunResult.from_json(json.loads(text)), str(path))
        except json.JSONDecodeError as error:
            raise UsageError(f"{path}:{error.lineno}:{error.colno}: not JSON: {error.msg}") from None
        except UsageError as error:
            raise UsageError(f"{path}: {error.message}", hint=error.hint) from None

    def __iter__(self) -> Iterator[JobResult]:
        """Every job at every sweep point, in order."""
        return iter(self.run.jobs)

    def job(self, label: str) -> JobResult:
        """The job with this label (`name`, or `name [block_size=4KiB]`), or the only one of this name.

        Raises:
            KeyError: there is none, or several.
        """
        found = [job for job in self.run.jobs if job.label == label] or [j for j in self.run.jobs if j.name == label]
        if len(found) != 1:
            labels = ", ".join(job.label for job in self.run.jobs)
            raise KeyError(f"{len(found)} jobs are called {label!r}; there are: {labels}")
        return found[0]


def histogram(direction: DirectionResult) -> Histogram:
    """The completion latencies of a direction, to be merged or asked for other percentiles; empty if not measured."""
    return Histogram.from_json(direction.histogram) if direction.histogram else Histogram()
