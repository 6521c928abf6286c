"""Load a workload: parse, apply --set, expand variables, merge defaults, check, and tell all mistakes at once."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import ValidationError

from gdsfw.errors import Problem, WorkloadError
from gdsfw.workload import overrides, structure, variables
from gdsfw.workload.complaints import in_order
from gdsfw.workload.messages import problems_of
from gdsfw.workload.model import Job, Point, Workload
from gdsfw.workload.names import near, unknown_key_hint, with_canonical_keys
from gdsfw.workload.node import Node, Where, node_of
from gdsfw.workload.rules import breaches
from gdsfw.workload.sweep import merge, points_of
from gdsfw.workload.units import shown
from gdsfw.workload.yaml_loader import parse, read_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

TOP_KEYS = ("version", "defaults", "jobs")
VERSION = 1
#: Keys that say something about one job only.
NOT_IN_DEFAULTS = ("name", "files_from")


def load(path: str | Path, sets: Sequence[str] = (), environ: Mapping[str, str] | None = None) -> Workload:
    """Load a workload file.

    Args:
        path: the YAML file; "-" is standard input.
        sets: `key=value` texts as `--set` takes them, applied in order.
        environ: variables for `${NAME}`; the process's own by default.

    Raises:
        WorkloadError: every mistake in the file, each with its place.
    """
    return load_text(read_text(path), str(path), sets, environ)


def load_text(
    text: str, source: str = "workload", sets: Sequence[str] = (), environ: Mapping[str, str] | None = None
) -> Workload:
    """Load a workload from YAML text; `source` is its name in messages. Raises as `load`."""
    tree, problems = parse(text, source)
    return _assemble(tree, source, sets, os.environ if environ is None else environ, problems)


def load_data(
    data: Mapping[str, Any],
    source: str = "workload",
    sets: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
) -> Workload:
    """Load a workload from plain data with the keys of a workload file. Raises as `load`."""
    tree = node_of(dict(data), Where(source))
    return _assemble(tree, source, sets, os.environ if environ is None else environ, [])


def _assemble(
    tree: Node, source: str, sets: Sequence[str], environ: Mapping[str, str], problems: list[Problem]
) -> Workload:
    tree = _top_level(tree, problems)
    tree = overrides.apply(tree, sets, problems)
    before = len(problems)
    tree = variables.expand(tree, environ, problems)
    reading = _Reading(problems, unset={problem.where for problem in problems[before:]})
    workload = reading.workload(tree, source)
    if reading.problems:
        raise WorkloadError(in_order(reading.problems))
    return workload


def _places(node: Node, path: str = "") -> Iterator[tuple[str, str]]:
    """(dotted key, where it stands) of everything below `node`; items of a list are `key[0]`."""
    for key, entry in node.mapping.items():
        name = f"{path}.{key}" if path else key
        yield name, str(entry.key_where)
        yield from _places(entry, name)
    for index, item in enumerate(node.items):
        name = f"{path}[{index}]"
        yield name, str(item.where)
        yield from _places(item, name)


def _top_level(tree: Node, problems: list[Problem]) -> Node:
    """The tree with known top-level keys of the right shape, and canonical names of keys inside."""
    if not isinstance(tree.value, dict):
        raise WorkloadError([Problem(str(tree.where), "is no workload", f"valid keys: {', '.join(TOP_KEYS)}")])
    entries: dict[str, Node] = {}
    for key, node in tree.value.items():
        if key not in TOP_KEYS:
            hint = "belongs into a job or into defaults" if key in Job.model_fields else None
            hint = hint or unknown_key_hint(key, TOP_KEYS)
            problems.append(Problem(str(node.key_where), f"unknown key {key!r} at the top of the file", hint))
        else:
            entries[key] = node
    entries = {key: node for key, node in entries.items() if _has_shape(key, node, problems)}
    if "jobs" not in tree.value and not any(near(key, ["jobs"]) for key in tree.value):
        problems.append(Problem(str(tree.where), "'jobs' is missing", "jobs: [{name: a, rw: read, ...}]"))
    if "defaults" in entries:
        entries["defaults"] = with_canonical_keys(entries["defaults"], problems)
    if "jobs" in entries:
        jobs = [with_canonical_keys(job, problems) for job in entries["jobs"].items]
        entries["jobs"] = replace(entries["jobs"], value=jobs)
    return tree.with_entries(entries)


def _has_shape(key: str, node: Node, problems: list[Problem]) -> bool:
    if key == "version":
        if node.value != VERSION or isinstance(node.value, bool):
            hint = f"this gdsfw reads version: {VERSION}"
            problems.append(Problem(str(node.where), f"version: {shown(node.data())} is not known", hint))
        return False
    if key == "defaults" and not isinstance(node.value, dict):
        problems.append(Problem(str(node.where), "defaults is no mapping", "defaults: {key: value}"))
        return False
    if key == "jobs" and (not isinstance(node.value, list) or not node.value):
        problems.append(Problem(str(node.where), "jobs is no list of jobs", "jobs: [{name: a, rw: read, ...}]"))
        return False
    return True


class _Point(NamedTuple):
    """A combination of a sweep: its values, the job with them, keys that could not be read."""

    values: dict[str, str]
    job: Job
    unread: frozenset[str]


class _Entry(NamedTuple):
    """A job as it was read: itself, its points, where its keys stand, keys that could not be read."""

    job: Job
    points: tuple[Point, ...]
    node: Node
    unread: frozenset[str]


@dataclass
class _Reading:
    """Reads jobs from nodes and collects what is wrong.

    Args:
        unset: places of variables that could not be expanded; what follows from that is not told again.
    """

    problems: list[Problem]
    unset: set[str] = field(default_factory=set)

    def workload(self, tree: Node, source: str) -> Workload:
        """The workload in `tree`; meaningless when there are problems."""
        defaults = tree.mapping.get("defaults", Node({}, tree.where, tree.where))
        self._check_defaults(defaults)
        jobs: list[Job] = []
        points: list[tuple[Point, ...]] = []
        places: dict[tuple[str, str], str] = {}
        outline: list[structure.Outline] = []
        for node in tree.mapping.get("jobs", Node([], tree.where, tree.where)).items:
            if not isinstance(node.value, dict):
                self.problems.append(
                    Problem(str(node.where), f"{shown(node.data())} is no job", "valid: {name: a, ...}")
                )
                continue
            entry = self._job(merge(defaults, node), node)
            jobs.append(entry.job)
            points.append(entry.points)
            outline.append(structure.Outline(entry.job, len(entry.points), entry.node, entry.unread))
            places.setdefault((entry.job.name, ""), str(node.where))
            for key, where in _places(entry.node):
                places.setdefault((entry.job.name, key), where)
        self.problems += structure.problems(outline)
        return Workload(tuple(jobs), tuple(points), source, VERSION, defaults.data(), places)

    def _check_defaults(self, defaults: Node) -> None:
        for key in NOT_IN_DEFAULTS:
            if key in defaults.mapping:
                where = str(defaults.mapping[key].key_where)
                self.problems.append(Problem(where, f"{key!r} cannot stand in defaults: it belongs to one job"))
        entries = {key: node for key, node in defaults.mapping.items() if key not in NOT_IN_DEFAULTS}
        entries["name"] = node_of("defaults", defaults.where)
        self._read(defaults.with_entries(entries))

    def _job(self, merged: Node, own: Node) -> _Entry:
        """The job in `merged` with its points; a default that has no effect on it is left out."""
        while True:
            base, unread = self._read(merged)
            points = self._points(merged, base, unread)
            idle = self._check_rules(merged, points)
            inherited = {key for key in idle if key in merged.mapping and key not in own.mapping}
            if not inherited:
                self.problems += [problem for key, problem in idle.items() if key in own.mapping]
                return _Entry(base, tuple(Point(point.values, point.job) for point in points), merged, unread)
            kept = {key: node for key, node in merged.mapping.items() if key not in inherited}
            merged = merged.with_entries(kept)

    def _points(self, merged: Node, base: Job, unread: frozenset[str]) -> list[_Point]:
        """Each combination of the job's sweep, read."""
        try:
            combinations = points_of(merged)
        except WorkloadError as error:
            self.problems += error.problems
            return []
        return [_Point(values, *(self._read(node) if values else (base, unread))) for values, node in combinations]

    def _check_rules(self, merged: Node, points: Sequence[_Point]) -> dict[str, Problem]:
        """Tell broken rules; give back keys that have no effect at any point, with what to say of each."""
        idle: dict[str, Problem] | None = None
        for point in points:
            here: dict[str, Problem] = {}
            for breach in breaches(point.job, point.unread):
                node = merged.mapping.get(breach.key, merged)
                problem = Problem(str(node.key_where), breach.message, breach.hint)
                if breach.no_effect:
                    here[breach.key] = problem
                else:
                    self.problems.append(problem)
            idle = here if idle is None else {key: problem for key, problem in idle.items() if key in here}
        return idle or {}

    def _read(self, merged: Node) -> tuple[Job, frozenset[str]]:
        """The job in `merged`, and the keys that could not be read and hold their defaults."""
        data = merged.data()
        open_keys = {key for key, node in merged.mapping.items() if self.unset and self._is_unset(node)}
        try:
            return Job.model_validate(data), frozenset(open_keys)
        except ValidationError as error:
            found = problems_of(error, merged, Job)
            self.problems += [problem for problem in found if problem.where not in self.unset]
            bad = open_keys | {str(detail["loc"][0]) for detail in error.errors(include_url=False) if detail["loc"]}
            good = {key: value for key, value in data.items() if key not in bad}
            if "name" in bad or "name" not in good:
                good["name"] = "unnamed"
            return Job.model_validate(good), frozenset(bad)

    def _is_unset(self, node: Node) -> bool:
        """Whether a variable in the value could not be expanded."""
        inside = [*node.mapping.values(), *node.items]
        return str(node.where) in self.unset or any(self._is_unset(child) for child in inside)
