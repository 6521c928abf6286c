"""What is wrong with a plan, collected so that all bad jobs are told at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gdsfw.errors import Problem, RefusedError, UnavailableError, WorkloadError

if TYPE_CHECKING:
    from gdsfw.workload.model import Workload


class Complaints:
    """Problems of the jobs of one workload, by the exit code they end with."""

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._wrong: dict[Problem, None] = {}
        self._absent: dict[Problem, None] = {}
        self._refused: dict[Problem, None] = {}

    def wrong(self, job: str, key: str, message: str, hint: str | None = None) -> None:
        """The text, options or numbers do not fit (exit 2). `key` is what to point at."""
        self._wrong[self._problem(job, key, message, hint)] = None

    def absent(self, job: str, key: str, message: str, hint: str | None = None) -> None:
        """Something is not there (exit 3)."""
        self._absent[self._problem(job, key, message, hint)] = None

    def refused(self, job: str, key: str, message: str, hint: str | None = None) -> None:
        """Refused for the safety of data (exit 4)."""
        self._refused[self._problem(job, key, message, hint)] = None

    def raise_if_any(self) -> None:
        """Raise everything collected, with the strongest exit code: refused, then absent, then wrong.

        Raises:
            RefusedError, UnavailableError, WorkloadError: one line for each problem.
        """
        everything = [*self._refused, *self._absent, *self._wrong]
        text = "\n".join(map(str, everything))
        if self._refused:
            raise RefusedError(text)
        if self._absent:
            raise UnavailableError(text)
        if self._wrong:
            raise WorkloadError(everything)

    def _problem(self, job: str, key: str, message: str, hint: str | None) -> Problem:
        return Problem(self._workload.place(job, key), f"job {job}: {message}", hint)
