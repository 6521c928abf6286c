"""What is wrong with a plan, collected so that all bad jobs are told at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gdsfw.errors import Problem, RefusedError, UnavailableError, WorkloadError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gdsfw.workload.model import Workload


def in_order(problems: Iterable[Problem]) -> list[Problem]:
    """Each problem once, in the order of the file, those of --set last."""

    def place(problem: Problem) -> tuple[float, float]:
        parts = problem.where.rsplit(":", 2)
        if problem.where.startswith("--set") or len(parts) < 3 or not (parts[1].isdigit() and parts[2].isdigit()):
            return (float("inf"), 0)
        return (int(parts[1]), int(parts[2]))

    return sorted(dict.fromkeys(problems), key=place)


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
        everything = [*in_order(self._refused), *in_order(self._absent), *in_order(self._wrong)]
        text = "\n".join(map(str, everything))
        if self._refused:
            raise RefusedError(text)
        if self._absent:
            raise UnavailableError(text)
        if self._wrong:
            raise WorkloadError(everything)

    def _problem(self, job: str, key: str, message: str, hint: str | None) -> Problem:
        return Problem(self._workload.place(job, key), f"job {job}: {message}", hint)
