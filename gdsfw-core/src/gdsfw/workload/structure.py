"""Rules between jobs: names, files_from, stages."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from gdsfw.errors import Problem
from gdsfw.workload.names import did_you_mean
from gdsfw.workload.sweep import MAX_POINTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gdsfw.workload.model import Job
    from gdsfw.workload.node import Node


@dataclass(frozen=True)
class Outline:
    """A job as the rules between jobs see it.

    Args:
        points: combinations of its sweep.
        node: the job merged with the defaults, with places.
        unread: keys of it that have a mistake of their own.
    """

    job: Job
    points: int
    node: Node
    unread: frozenset[str]

    def where(self, key: str) -> str:
        """Where `key` stands, or the job when it does not say it."""
        node = self.node.mapping.get(key)
        return str(node.key_where if node else self.node.where)


def problems(jobs: Sequence[Outline]) -> list[Problem]:
    """Every broken rule between jobs."""
    return [*_names(jobs), *_files_from(jobs), *_stages(jobs)]


def _names(jobs: Sequence[Outline]) -> list[Problem]:
    first: dict[str, Outline] = {}
    found = []
    for outline in jobs:
        if "name" in outline.unread:
            continue
        earlier = first.setdefault(outline.job.name, outline)
        if earlier is not outline:
            message = f"a second job named {outline.job.name!r}; the first is at {earlier.where('name')}"
            found.append(Problem(outline.where("name"), message))
    return found


def _files_from(jobs: Sequence[Outline]) -> list[Problem]:
    found = []
    names = [outline.job.name for outline in jobs if "name" not in outline.unread]
    for index, outline in enumerate(jobs):
        wanted = outline.job.files_from
        earlier = {other.job.name for other in jobs[:index]}
        if wanted is None or wanted in earlier or any("name" in other.unread for other in jobs):
            continue
        if wanted in names:
            itself = wanted == outline.job.name
            message = f"files_from names {'the job itself' if itself else f'job {wanted!r}, which runs later'}"
            found.append(Problem(outline.where("files_from"), message, "name an earlier job"))
        else:
            hint = did_you_mean(wanted, names) or f"jobs before this one: {', '.join(sorted(earlier)) or 'none'}"
            found.append(Problem(outline.where("files_from"), f"files_from names no job: {wanted!r}", hint))
    return found


def _stages(jobs: Sequence[Outline]) -> list[Problem]:
    found = []
    seen: dict[str, str] = {}
    for name, group in groupby(jobs, key=lambda outline: outline.job.stage):
        members = list(group)
        if name is None:
            found += [problem for member in members for problem in _too_many_runs([member])]
            continue
        where = members[0].where("stage")
        if name in seen:
            message = f"stage {name!r} is used again after another job; it began at {seen[name]}"
            found.append(Problem(where, message, "jobs of one stage stand next to each other"))
        seen.setdefault(name, where)
        found += _repeats(name, members)
        found += _too_many_runs(members)
    return found


def _too_many_runs(members: Sequence[Outline]) -> list[Problem]:
    """The runs of one stage: every combination of its sweeps, as often as it is repeated."""
    count = math.prod(member.points for member in members) * max(member.job.repeat for member in members)
    if count <= MAX_POINTS:
        return []
    message = f"sweep and repeat multiply to {count} runs of job {members[0].job.name!r}; the most is {MAX_POINTS}"
    return [Problem(members[0].where("sweep"), message)]


def _repeats(name: str, members: Sequence[Outline]) -> list[Problem]:
    """A stage is repeated as a whole, so its jobs may not ask for different numbers."""
    asking = [member for member in members if member.job.repeat > 1]
    numbers = sorted({member.job.repeat for member in asking})
    if len(numbers) < 2:
        return []
    message = f"jobs of stage {name!r} ask for {' and '.join(map(str, numbers))} repeats"
    return [Problem(asking[-1].where("repeat"), message, "a stage is repeated as a whole")]
