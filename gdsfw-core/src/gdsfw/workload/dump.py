"""A loaded workload as YAML again: defaults merged, variables and --set applied, only what differs from a default."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from gdsfw.workload.scalars import resolve
from gdsfw.workload.variables import escape

if TYPE_CHECKING:
    from gdsfw.workload.model import Job, Workload


def to_data(workload: Workload) -> dict[str, Any]:
    """`workload` as plain data that `load_data` reads back to an equal workload."""
    return {"version": workload.version, "jobs": [job_to_data(job) for job in workload.jobs]}


def job_to_data(job: Job) -> dict[str, Any]:
    """One job as plain data, without keys that hold their defaults."""
    data: dict[str, Any] = job.model_dump(mode="json", exclude_defaults=True)
    if data.get("verify") == {}:
        data["verify"] = True
    escaped: dict[str, Any] = _escaped(data)
    return escaped


def dump(workload: Workload) -> str:
    """`workload` as YAML text that `load_text` reads back to an equal workload."""
    return yaml.dump(
        to_data(workload), Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=None, width=120
    )


def _escaped(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _escaped(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_escaped(value) for value in data]
    return escape(data) if isinstance(data, str) else data


class _Dumper(yaml.SafeDumper):
    """Quotes text that YAML 1.2's core rules would read as something else; PyYAML knows 1.1's only."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write repeated values out."""
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    quoted = not isinstance(resolve(text), str)
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"' if quoted else None)


_Dumper.add_representer(str, _represent_text)
