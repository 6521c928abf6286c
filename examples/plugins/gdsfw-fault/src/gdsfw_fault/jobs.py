"""The jobs that faults are asked for in, and which of them a hook is called for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gdsfw_fault.options import FaultOptions
from gdsfw_fault.script import Script

if TYPE_CHECKING:
    from gdsfw.workload.model import Job

#: Of worker hooks and the data plane the worker's index; the main thread's hooks have this.
MAIN = -1
#: Threads whose first hits are told; the rest is in the sum.
SHOWN = 4


@dataclass
class FaultyJob:
    """A job and what its threads have met."""

    job: Job
    options: FaultOptions
    scripts: dict[int, Script] = field(default_factory=dict)
    opened: bool = False
    session: Any = None

    def script(self, number: int) -> Script:
        """That of a thread."""
        found = self.scripts.get(number)
        if found is None:
            who = "main" if number == MAIN else f"worker {number}"
            found = self.scripts[number] = Script(self.options, who)
        return found

    def notes(self) -> Iterator[str]:
        """A line for each rule: how often it was met, and at which calls first."""
        scripts = [self.scripts[number] for number in sorted(self.scripts)]
        for number, rule in enumerate(self.options.rules):
            counts = [(script.who, script.counts[number]) for script in scripts]
            hits, calls = (sum(getattr(count, name) for _, count in counts) for name in ("hits", "calls"))
            places = [f"{who}: {', '.join(map(str, count.first))}" for who, count in counts if count.first][:SHOWN]
            where = f" (first {'; '.join(places)})" if places else ""
            yield f"fault: rules[{number}] ({rule}): {hits} of {calls} calls{where}"


class Faulty:
    """Jobs under way that ask for faults.

    A worker's hooks have the job, those of files its name. gdsfw_open and gdsfw_close have neither: the jobs of a stage
    are opened, and closed, in the order in which they were started.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: list[FaultyJob] = []

    def start(self, job: Job) -> None:
        """A job begins."""
        if self._name in job.plugins:
            self._jobs.append(FaultyJob(job, FaultOptions.model_validate(job.plugins[self._name], strict=True)))

    def finish(self, job: Job) -> FaultyJob | None:
        """A job has ended; None where it asked for nothing."""
        found = self.of(job)
        if found is not None:
            self._jobs.remove(found)
        return found

    def of(self, job: Job) -> FaultyJob | None:
        """By the job itself."""
        return next((one for one in self._jobs if one.job is job), None)

    def named(self, name: str) -> FaultyJob | None:
        """By the job's name; the names of jobs that run at one time differ."""
        return next((one for one in self._jobs if one.job.name == name), None)

    def opening(self) -> FaultyJob | None:
        """The one whose turn it is to be opened."""
        found = next((one for one in self._jobs if not one.opened), None)
        if found is not None:
            found.opened = True
        return found

    def closing(self, session: Any) -> FaultyJob | None:
        """The one that this session, which may be that of several, is closed for."""
        found = next((one for one in self._jobs if one.opened and one.session is session), None)
        if found is not None:
            found.session = _CLOSED
        return found


_CLOSED = object()
