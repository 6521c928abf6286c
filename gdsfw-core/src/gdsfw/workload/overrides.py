"""`--set key=value`: values from the command line in place of those in the file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gdsfw.errors import Problem, WorkloadError
from gdsfw.workload.names import canonical, did_you_mean
from gdsfw.workload.node import Node, Where
from gdsfw.workload.yaml_loader import parse

if TYPE_CHECKING:
    from collections.abc import Sequence

VALID = "valid: --set KEY=VALUE for all jobs, --set jobs.NAME.KEY=VALUE, --set defaults.KEY=VALUE"


@dataclass(frozen=True)
class Override:
    """One --set: the dotted path before the equals sign, and the value after it as YAML."""

    where: Where
    path: str
    value: Node


def apply(tree: Node, sets: Sequence[str], problems: list[Problem]) -> Node:
    """`tree` with every --set applied in order; mistakes in them go to `problems`."""
    for text in sets:
        override = _parse(text, problems)
        if override is not None:
            tree = _apply_one(tree, override, problems)
    return tree


def _parse(text: str, problems: list[Problem]) -> Override | None:
    where = Where(f"--set {text}")
    path, equals, value = text.partition("=")
    if not equals or not all(path.strip().split(".")):
        problems.append(Problem(str(where), "is no assignment", VALID))
        return None
    try:
        node, repeated = parse(value, str(where)) if value.strip() else (Node("", where, where), [])
    except WorkloadError as error:
        problems += [replace(problem, where=str(where)) for problem in error.problems]
        return None
    problems += [replace(problem, where=str(where)) for problem in repeated]
    return Override(where, path.strip(), _placed(node, where))


def _placed(node: Node, where: Where) -> Node:
    """`node` with every part of it at the --set."""
    value = node.value
    if isinstance(value, dict):
        value = {key: _placed(child, where) for key, child in value.items()}
    elif isinstance(value, list):
        value = [_placed(child, where) for child in value]
    return replace(node, value=value, where=where, key_where=where)


def _apply_one(tree: Node, override: Override, problems: list[Problem]) -> Node:
    first, _, rest = override.path.partition(".")
    entries = dict(tree.mapping)
    if first == "defaults" and rest:
        defaults = entries.get("defaults", Node({}, override.where, override.where))
        entries["defaults"] = _assign(defaults, rest.split("."), override.value)
        return tree.with_entries(entries)
    jobs = entries.get("jobs")
    if jobs is None or not isinstance(jobs.value, list):
        return tree
    if first != "jobs":
        path = override.path.split(".")
        entries["jobs"] = replace(jobs, value=[_assign(job, path, override.value) for job in jobs.value])
        return tree.with_entries(entries)
    target = _find_job(jobs, rest, override, problems)
    if target is None:
        return tree
    index, path = target
    changed = [_assign(job, path, override.value) if index == i else job for i, job in enumerate(jobs.value)]
    entries["jobs"] = replace(jobs, value=changed)
    return tree.with_entries(entries)


def _find_job(jobs: Node, rest: str, override: Override, problems: list[Problem]) -> tuple[int, list[str]] | None:
    """Which job `NAME.KEY` means; names may hold dots, so the longest that fits."""
    names = {str(job.mapping["name"].value): i for i, job in enumerate(jobs.items) if "name" in job.mapping}
    fitting = [name for name in names if rest.startswith(f"{name}.") and len(rest) > len(name) + 1]
    if fitting:
        name = max(fitting, key=len)
        return names[name], rest[len(name) + 1 :].split(".")
    name = rest.split(".")[0]
    if rest in names or not name:
        problems.append(Problem(str(override.where), "names no key of the job", VALID))
    else:
        hint = did_you_mean(name, names) or f"valid: {', '.join(names)}"
        problems.append(Problem(str(override.where), f"there is no job {name!r}", hint))
    return None


def _assign(mapping: Node, path: list[str], value: Node) -> Node:
    """`mapping` with `value` at the end of `path`; what is no mapping on the way becomes one."""
    key = canonical(path[0])
    entries = dict(mapping.mapping)
    if key == "sweep" and len(path) > 1:
        path = [path[0], canonical(path[1]), *path[2:]]
    if len(path) > 1:
        inner = entries.get(key, Node({}, value.where, value.where))
        entries[key] = replace(_assign(inner, path[1:], value), key_where=value.where)
    else:
        entries[key] = value
        if "sweep" in entries and key in entries["sweep"].mapping:
            swept = {name: node for name, node in entries["sweep"].mapping.items() if name != key}
            entries["sweep"] = entries["sweep"].with_entries(swept)
    return mapping.with_entries(entries)
