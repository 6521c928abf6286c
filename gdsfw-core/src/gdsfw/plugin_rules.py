"""What a plugin's functions must look like; checked before any of them is called."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from gdsfw import hookspecs
from gdsfw.errors import PluginError
from gdsfw.hookspecs import PROJECT, REQUIRED

if TYPE_CHECKING:
    import pluggy

#: Hooks that any plugin may implement, for itself: nobody wraps them. Every other one belongs to the backend of a job.
SHARED_HOOKS = frozenset({"gdsfw_options", "gdsfw_commands", "gdsfw_job_started", "gdsfw_job_finished"})


@cache
def hook_arguments() -> Mapping[str, tuple[str, ...]]:
    """Every hook of hookspecs.py with the names of its arguments."""
    functions = {name: value for name, value in vars(hookspecs).items() if hasattr(value, f"{PROJECT}_spec")}
    return {name: tuple(inspect.signature(function).parameters) for name, function in functions.items()}


@cache
def job_hooks() -> tuple[str, ...]:
    """The hooks that are called for one backend: a job's life, its probe, devices and errors."""
    return tuple(name for name in hook_arguments() if name not in SHARED_HOOKS and name != "gdsfw_backend")


@dataclass(frozen=True)
class Implementation:
    """One marked function of a plugin and the hook it is for."""

    attribute: str
    hook: str
    function: Any
    wraps: bool
    optional: bool


def implementations(pluggy_manager: pluggy.PluginManager, plugin: object) -> list[Implementation]:
    """Every function of `plugin` that is marked with hookimpl."""
    found = []
    for attribute in dir(plugin):
        options: Any = pluggy_manager.parse_hookimpl_opts(plugin, attribute)
        if options is None:
            continue
        wraps = bool(options.get("wrapper") or options.get("hookwrapper"))
        hook = options.get("specname") or attribute
        function = inspect.unwrap(getattr(plugin, attribute))
        found.append(Implementation(attribute, hook, function, wraps, bool(options.get("optionalhook"))))
    return found


def check(plugin: object, name: str, found: list[Implementation]) -> None:
    """Refuse a plugin whose functions break a calling rule.

    Args:
        plugin: module or object with the functions.
        name: of its entry point, for the message.
        found: what `implementations` says of it.

    Raises:
        PluginError: naming plugin and hook.
    """
    _check_unmarked(plugin, name, {item.attribute for item in found})
    if not found:
        raise PluginError(f"plugin {name!r} implements no hook", hint="mark its functions with @gdsfw.hookimpl")
    for item in found:
        _check_hook(name, item)
        _check_arguments(name, item)
    _check_once(name, found)
    _check_role(name, found)


def is_backend(found: list[Implementation]) -> bool:
    """Whether a plugin is a backend: it implements gdsfw_backend itself."""
    return any(item.hook == REQUIRED[0] and not item.wraps for item in found)


def _check_unmarked(plugin: object, name: str, marked: set[str]) -> None:
    for attribute in dir(plugin):
        if attribute.startswith(f"{PROJECT}_") and attribute not in marked:
            if not inspect.isroutine(inspect.getattr_static(plugin, attribute)):
                continue
            raise PluginError(
                f"plugin {name!r}: function {attribute} is not marked and would never be called",
                hint="put @gdsfw.hookimpl above it, or give it a name that does not begin with gdsfw_",
            )


def _check_hook(name: str, item: Implementation) -> None:
    if item.optional:
        raise PluginError(
            f"plugin {name!r}, hook {item.hook}: optionalhook=True is not allowed, it would hide a misspelt name",
            hint="leave it out",
        )
    if item.hook in hook_arguments():
        return
    from difflib import get_close_matches

    near = get_close_matches(item.hook, hook_arguments(), 1, 0.6)
    raise PluginError(
        f"plugin {name!r}: there is no hook {item.hook}",
        hint=f"did you mean {near[0]}?" if near else "gdsfw/hookspecs.py has all hooks",
    )


def _check_arguments(name: str, item: Implementation) -> None:
    known = hook_arguments()[item.hook]
    here = f"plugin {name!r}, hook {item.hook}"
    for parameter in inspect.signature(item.function).parameters.values():
        if parameter.name in ("self", "cls") and parameter.name not in known:
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.KEYWORD_ONLY):
            raise PluginError(f"{here}: {parameter} would receive nothing", hint="name each argument that is needed")
        if parameter.name not in known:
            valid = f"its arguments are: {', '.join(known)}" if known else "it has no arguments"
            raise PluginError(f"{here}: unknown argument {parameter.name!r}", hint=valid)
        if parameter.default is not parameter.empty:
            raise PluginError(
                f"{here}: argument {parameter.name!r} has a default and would never receive a value",
                hint="remove the default; an argument that is not needed may be left out",
            )
    if item.wraps and not inspect.isgeneratorfunction(item.function):
        raise PluginError(f"{here}: a wrapper must be a generator", hint="write `result = yield` and `return result`")


def _check_once(name: str, found: list[Implementation]) -> None:
    seen: dict[str, str] = {}
    for item in found:
        if item.hook in seen and not item.wraps:
            raise PluginError(f"plugin {name!r}: {seen[item.hook]} and {item.attribute} both implement {item.hook}")
        if not item.wraps:
            seen[item.hook] = item.attribute


def _check_role(name: str, found: list[Implementation]) -> None:
    for item in found:
        if item.wraps and (item.hook in SHARED_HOOKS or item.hook == REQUIRED[0]):
            raise PluginError(f"plugin {name!r}: {item.hook} can be implemented, not wrapped")
    plain = {item.hook for item in found if not item.wraps}
    if is_backend(found):
        missing = [hook for hook in REQUIRED if hook not in plain]
        if missing:
            raise PluginError(
                f"plugin {name!r} is a backend (it implements gdsfw_backend) but lacks {', '.join(missing)}",
                hint=f"a backend implements {', '.join(REQUIRED)}",
            )
        if "gdsfw_options" in plain:
            raise PluginError(
                f"plugin {name!r}, hook gdsfw_options: it is for plugins that are no backend",
                hint="give the model as BackendInfo.options",
            )
        return
    for item in found:
        if not item.wraps and item.hook not in SHARED_HOOKS:
            raise PluginError(
                f"plugin {name!r}, hook {item.hook}: only the job's backend implements it; another plugin's result "
                "would take its place",
                hint="wrap it: @hookimpl(wrapper=True), `result = yield`, `return result`; "
                "a backend implements gdsfw_backend too",
            )
