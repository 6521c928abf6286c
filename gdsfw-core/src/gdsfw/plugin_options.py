"""Checks of what a plugin says about itself: its description and its options model, and options against the model."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from gdsfw.backend import HOOK_VERSION, BackendInfo, IOPathInfo
from gdsfw.errors import PluginError, Problem, WorkloadError
from gdsfw.workload.messages import problems_of
from gdsfw.workload.names import unknown_key_hint
from gdsfw.workload.node import Where, node_of

MEMORY_KINDS = ("host", "hugepage", "pinned", "device")


def check_info(info: BackendInfo, name: str, implemented: Collection[str]) -> None:
    """Refuse a description that contradicts the entry point, the hook version or itself.

    Args:
        info: what gdsfw_backend returned.
        name: of the entry point.
        implemented: hooks that the backend implements itself.

    Raises:
        PluginError: naming plugin and hook.
    """
    here = f"plugin {name!r}, hook gdsfw_backend"
    if info.hook_version != HOOK_VERSION:
        raise PluginError(
            f"plugin {name!r} was written for hook interface {info.hook_version}, this gdsfw has {HOOK_VERSION}",
            hint=f"install a version of {name!r} that fits, or another gdsfw-core",
        )
    if info.name != name:
        raise PluginError(f"{here}: BackendInfo.name is {info.name!r}, but the entry point is named {name!r}")
    if not info.io_paths or not all(isinstance(path, IOPathInfo) for path in info.io_paths):
        raise PluginError(f"{here}: BackendInfo.io_paths must hold at least one IOPathInfo")
    names = [path.name for path in info.io_paths]
    if len(set(names)) != len(names):
        raise PluginError(f"{here}: BackendInfo.io_paths has a name twice: {', '.join(names)}")
    strange = [kind for kind in info.memory if kind not in MEMORY_KINDS]
    if strange or not info.memory:
        valid = f"valid: {', '.join(MEMORY_KINDS)}"
        raise PluginError(f"{here}: BackendInfo.memory is {info.memory!r}", hint=valid)
    if info.namespace not in ("files", "own"):
        raise PluginError(f"{here}: BackendInfo.namespace is {info.namespace!r}", hint="valid: files, own")
    if info.namespace == "own" and "gdsfw_open_file" not in implemented:
        raise PluginError(f"plugin {name!r} has names of its own (namespace `own`) but lacks gdsfw_open_file")
    if info.options is not None:
        check_model(info.options, f"{here}, BackendInfo.options")


def check_model(model: object, where: str) -> None:
    """Refuse anything that is no pydantic model class."""
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        raise PluginError(f"{where}: {model!r} is no pydantic model class")


def validated(model: type[BaseModel] | None, options: Mapping[str, Any], where: str) -> BaseModel | None:
    """`options` as an instance of `model`; None without a model.

    Args:
        where: key in the workload, for messages, such as `backend_options.posix`.

    Raises:
        WorkloadError: with every mistake.
    """
    valid = option_names(model) if model is not None else []
    unknown = [] if model is not None and model.model_config.get("extra") == "allow" else set(options) - set(valid)
    problems = [
        Problem(where, f"unknown option {key!r}", unknown_key_hint(key, valid) if valid else "there are no options")
        for key in sorted(unknown)
    ]
    instance = None
    if model is not None:
        known = {key: value for key, value in options.items() if key not in unknown}
        try:
            instance = model.model_validate(known, strict=True)
        except ValidationError as error:
            problems += problems_of(error, node_of(known, Where(where)), model)
    if problems:
        raise WorkloadError(problems)
    return instance


def option_names(model: type[BaseModel]) -> list[str]:
    """Every name that an options model takes, aliases last."""
    aliases = [field.alias for field in model.model_fields.values() if field.alias]
    return [*model.model_fields, *aliases]
