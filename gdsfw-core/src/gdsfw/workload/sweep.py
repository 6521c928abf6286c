"""Defaults merged into a job, and the combinations of its sweep."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

from gdsfw.errors import Problem, WorkloadError
from gdsfw.workload.node import Node

#: Keys whose entries merge one by one with those in defaults; every other key is replaced whole.
MERGED_KEYS = ("backend_options", "plugins", "random")
#: What files_from brings itself, so that defaults for it do not apply.
BROUGHT_BY_FILES_FROM = ("filename", "files", "directory", "size", "offset")
#: Keys that say what a job is, not how it runs.
NOT_SWEPT = ("name", "files_from", "repeat", "stage", "stop_together", "sweep")
MAX_POINTS = 10_000


def merge(defaults: Node, job: Node) -> Node:
    """The job with what it does not say itself taken from `defaults`."""
    entries = dict(defaults.mapping)
    if "files_from" in job.mapping:
        entries = {key: node for key, node in entries.items() if key not in BROUGHT_BY_FILES_FROM}
    if "sweep" in entries and "sweep" not in job.mapping:
        inherited = {key: node for key, node in entries["sweep"].mapping.items() if key not in job.mapping}
        entries["sweep"] = entries["sweep"].with_entries(inherited) if entries["sweep"].mapping else entries["sweep"]
    for key, node in job.mapping.items():
        entries[key] = _merge_entries(entries[key], node) if key in MERGED_KEYS and key in entries else node
    return job.with_entries(entries)


def _merge_entries(below: Node, above: Node) -> Node:
    if not isinstance(below.value, dict) or not isinstance(above.value, dict):
        return above
    entries = dict(below.value)
    for key, node in above.value.items():
        entries[key] = _merge_entries(entries[key], node) if key in entries else node
    return above.with_entries(entries)


def points_of(merged: Node) -> list[tuple[dict[str, str], Node]]:
    """Each combination of the job's sweep as (values for labels, the job with them), first key slowest.

    A job without a sweep has one combination with no values.

    Raises:
        WorkloadError: a key that cannot be swept, or too many combinations.
    """
    sweep = merged.mapping.get("sweep")
    base = merged.with_entries({key: node for key, node in merged.mapping.items() if key != "sweep"})
    if sweep is None or not sweep.mapping or not all(node.items for node in sweep.mapping.values()):
        return [({}, base)]
    _check(sweep)
    points = []
    for values in itertools.product(*(node.items for node in sweep.mapping.values())):
        labels: dict[str, str] = {}
        point = base
        for (key, node), value in zip(sweep.mapping.items(), values, strict=True):
            labels[key] = flow(value.data())
            point = _assign(point, key.split("."), replace(value, key_where=node.key_where))
        points.append((labels, point))
    return points


def _check(sweep: Node) -> None:
    problems = [
        Problem(str(node.key_where), f"{key!r} cannot be swept")
        for key, node in sweep.mapping.items()
        if key.split(".")[0] in NOT_SWEPT
    ]
    count = math.prod(len(node.items) for node in sweep.mapping.values())
    if count > MAX_POINTS:
        problems.append(Problem(str(sweep.key_where), f"the sweep has {count} combinations; the most is {MAX_POINTS}"))
    if problems:
        raise WorkloadError(problems)


def _assign(mapping: Node, path: list[str], value: Node) -> Node:
    if len(path) == 1:
        return mapping.with_entries({**mapping.mapping, path[0]: value})
    inner = mapping.mapping.get(path[0], Node({}, value.where, value.key_where))
    return mapping.with_entries({**mapping.mapping, path[0]: _assign(inner, path[1:], value)})


def flow(data: Any) -> str:
    """`data` in YAML's flow style without quotes, for labels."""
    if isinstance(data, dict):
        return "{" + ", ".join(f"{key}: {flow(value)}" for key, value in data.items()) + "}"
    if isinstance(data, list):
        return "[" + ", ".join(map(flow, data)) + "]"
    return {True: "true", False: "false"}[data] if isinstance(data, bool) else "null" if data is None else str(data)
