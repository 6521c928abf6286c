"""Options that a library reads once per process: which stages of a plan can share a process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gdsfw.backend import BackendInfo
    from gdsfw.workload.complaints import Complaints
    from gdsfw.workload.model import Job
    from gdsfw.workload.plan_model import JobPlan

#: How an options model marks such a field: Field(json_schema_extra={"once_per_process": True}).
MARK = "once_per_process"
#: (backend, option) -> value
Values = dict[tuple[str, str], Any]
#: What libraries have read in this process; a program may run several workloads.
_used: Values = {}


def once_values(job: Job, backend: BackendInfo) -> Values:
    """Values of the job's once-per-process options, defaults included."""
    if backend.options is None:
        return {}
    given = job.backend_options.get(backend.name, {})
    values: Values = {}
    for name, field in backend.options.model_fields.items():
        extra = field.json_schema_extra
        if isinstance(extra, dict) and extra.get(MARK):
            values[backend.name, name] = given.get(name, field.get_default(call_default_factory=True))
    return values


def note_used(jobs: Sequence[JobPlan]) -> None:
    """Remember that libraries read these jobs' values in this process."""
    for plan in jobs:
        _used.update(once_values(plan.job, plan.backend))


def used_otherwise(jobs: Sequence[JobPlan]) -> bool:
    """Whether a library has read another value in this process than one of these jobs needs."""
    return any(
        _used.get(key, value) != value for plan in jobs for key, value in once_values(plan.job, plan.backend).items()
    )


class Processes:
    """Numbers the processes that stages run in, so that none needs an option twice with different values."""

    def __init__(self, complaints: Complaints) -> None:
        self._complaints = complaints
        self._values: list[Values] = []

    def number(self, jobs: Sequence[JobPlan]) -> int:
        """The process for a stage of `jobs`: the first whose values do not differ."""
        return self._fitting(self._wanted(jobs))

    def _wanted(self, jobs: Sequence[JobPlan]) -> Values:
        wanted: Values = {}
        for plan in jobs:
            for (backend, option), value in once_values(plan.job, plan.backend).items():
                before = wanted.setdefault((backend, option), value)
                if before != value:
                    message = (
                        f"{backend} reads {option} once per process, and jobs of one stage give it "
                        f"{before!r} and {value!r}"
                    )
                    self._complaints.wrong(plan.job.name, "backend_options", message, "put the jobs into two stages")
        return wanted

    def _fitting(self, wanted: Values) -> int:
        for number, values in enumerate(self._values):
            if all(values.get(key, value) == value for key, value in wanted.items()):
                values.update(wanted)
                return number
        self._values.append(wanted)
        return len(self._values) - 1
