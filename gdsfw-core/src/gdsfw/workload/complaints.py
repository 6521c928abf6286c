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


class _Found:
    """Problems of one kind. What is wrong with several jobs at one place is one mistake, and told once."""

    def __init__(self) -> None:
        self._jobs: dict[tuple[str, str, str | None], list[str]] = {}
        self._places: dict[tuple[str, str, str | None], str] = {}

    def add(self, where: str, shared: bool, job: str, message: str, hint: str | None) -> None:
        """Remember one; `shared` is for what is wrong with every job alike, wherever the jobs stand."""
        key = ("" if shared else where, message, hint)
        self._places.setdefault(key, where)
        jobs = self._jobs.setdefault(key, [])
        if job not in jobs:
            jobs.append(job)

    def problems(self) -> list[Problem]:
        """In the order of the file."""
        return in_order(
            Problem(self._places[key], f"{_names(jobs)}: {key[1]}", key[2]) for key, jobs in self._jobs.items()
        )


def _names(jobs: list[str]) -> str:
    if len(jobs) == 1:
        return f"job {jobs[0]}"
    more = f" and {len(jobs) - 3} more" if len(jobs) > 3 else ""
    return f"jobs {', '.join(jobs[:3])}{more}"


class Complaints:
    """Problems of the jobs of one workload, by the exit code they end with."""

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._wrong = _Found()
        self._absent = _Found()
        self._refused = _Found()

    def wrong(self, job: str, key: str, message: str, hint: str | None = None) -> None:
        """The text, options or numbers do not fit (exit 2). `key` is what to point at; "" for what no job says."""
        self._add(self._wrong, job, key, message, hint)

    def absent(self, job: str, key: str, message: str, hint: str | None = None) -> None:
        """Something is not there (exit 3)."""
        self._add(self._absent, job, key, message, hint)

    def refused(self, job: str, key: str, message: str, hint: str | None = None) -> None:
        """Refused for the safety of data (exit 4)."""
        self._add(self._refused, job, key, message, hint)

    def _add(self, found: _Found, job: str, key: str, message: str, hint: str | None) -> None:
        found.add(self._workload.place(job, key), not key, job, message, hint)

    def raise_if_any(self) -> None:
        """Raise everything collected, with the strongest exit code: refused, then absent, then wrong.

        Raises:
            RefusedError, UnavailableError, WorkloadError: one line for each problem.
        """
        refused, absent, wrong = self._refused.problems(), self._absent.problems(), self._wrong.problems()
        everything = [*refused, *absent, *wrong]
        text = "\n".join(map(str, everything))
        if refused:
            raise RefusedError(text)
        if absent:
            raise UnavailableError(text)
        if wrong:
            raise WorkloadError(everything)
