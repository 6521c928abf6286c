"""The jobs being traced, and which of them a hook is called for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gdsfw_trace.lane import Budget, Lane, now_ns
from gdsfw_trace.options import TraceOptions

if TYPE_CHECKING:
    from gdsfw.workload.model import Job

#: The main thread's lane.
MAIN = 0


@dataclass
class JobTrace:
    """What a job's threads did.

    Args:
        job: as the plan has it.
        started_ns: before its first hook, CLOCK_MONOTONIC.
        title: name, and point of a sweep; known when the job has ended.
    """

    job: Job
    options: TraceOptions
    budget: Budget
    started_ns: int = field(default_factory=now_ns)
    lanes: dict[int, Lane] = field(default_factory=dict)
    title: str = ""
    opened: bool = False
    session: Any = None

    def lane(self, number: int) -> Lane:
        """A thread's lane."""
        found = self.lanes.get(number)
        if found is None:
            found = self.lanes[number] = Lane(number, self.budget)
        return found

    @property
    def dropped(self) -> int:
        """Spans that max_events left no room for."""
        return sum(lane.dropped for lane in self.lanes.values())


class Traced:
    """Jobs under way that ask for a trace.

    A worker's hooks have the job, those of files its name. gdsfw_open and gdsfw_close have neither: the jobs of a stage
    are opened, and closed, in the order in which they were started.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: list[JobTrace] = []

    def start(self, job: Job) -> None:
        """A job begins; it is traced if it names the plugin."""
        if self._name in job.plugins:
            options = TraceOptions.model_validate(job.plugins[self._name], strict=True)
            self._jobs.append(JobTrace(job, options, Budget(options.max_events)))

    def finish(self, job: Job) -> JobTrace | None:
        """A job has ended: its trace, or None where it has none."""
        found = self.of(job)
        if found is not None:
            self._jobs.remove(found)
        return found

    def of(self, job: Job) -> JobTrace | None:
        """By the job itself."""
        return next((trace for trace in self._jobs if trace.job is job), None)

    def named(self, name: str) -> JobTrace | None:
        """By the job's name; the names of jobs that run at one time differ."""
        return next((trace for trace in self._jobs if trace.job.name == name), None)

    def opening(self) -> JobTrace | None:
        """The one whose turn it is to be opened."""
        found = next((trace for trace in self._jobs if not trace.opened), None)
        if found is not None:
            found.opened = True
        return found

    def closing(self, session: Any) -> JobTrace | None:
        """The one that this session, which may be that of several, is closed for."""
        found = next((trace for trace in self._jobs if trace.opened and trace.session is session), None)
        if found is not None:
            found.session = _CLOSED
        return found


_CLOSED = object()
