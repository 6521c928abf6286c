"""The hooks of one job as plain calls: one backend, its defaults and the plugins around it, with results checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gdsfw import backend as b
from gdsfw.errors import PluginError
from gdsfw.plugin_rules import hook_arguments


class JobHooks:
    """Calls the hooks of one backend: `hooks.gdsfw_alloc(worker=..., nbytes=..., memory=..., alignment=...)`.

    Every argument of the hook is given by name. What a plugin raises passes through. A result of the wrong type raises
    PluginError naming plugin and hook.

    Args:
        backend: the backend's name.
        calls: the callable of each hook.
    """

    def __init__(self, backend: str, calls: Mapping[str, HookCall]) -> None:
        self.backend = backend
        self._calls = dict(calls)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """The call of the hook `name`."""
        try:
            return self.__dict__["_calls"][name]  # type: ignore[no-any-return]
        except KeyError:
            raise AttributeError(f"there is no job hook {name}") from None


class HookCall:
    """One hook of one job.

    Args:
        hook: its name.
        caller: runs the implementations.
        plugin: whose result is used, for messages.
        wrappers: names of plugins that wrap it.
    """

    def __init__(self, hook: str, caller: Callable[..., Any], plugin: str, wrappers: Sequence[str] = ()) -> None:
        self._hook = hook
        self._caller = caller
        self._plugin = plugin
        self._wrappers = tuple(wrappers)
        self._arguments = frozenset(hook_arguments()[hook])

    def __call__(self, **arguments: Any) -> Any:
        """Run the hook."""
        if arguments.keys() != self._arguments:
            wrong = ", ".join(sorted(arguments.keys() ^ self._arguments))
            raise TypeError(f"{self._hook} is called with {', '.join(hook_arguments()[self._hook])}; look at: {wrong}")
        result = self._caller(**arguments)
        due = _due(self._hook, arguments)
        if due is not None and not due[1](result):
            raise PluginError(self._complaint(due[0], result))
        return result

    def _complaint(self, due: str, result: object) -> str:
        got = "None" if result is None else type(result).__name__
        text = f"plugin {self._plugin!r}, hook {self._hook}: returned {got} where {due} is due"
        if self._wrappers:
            names = ", ".join(repr(name) for name in self._wrappers)
            text += f" (wrapped by {names}: a wrapper must return the result that its yield gave)"
        return text


def _is(*types: type) -> Callable[[object], bool]:
    return lambda value: isinstance(value, types)


def _list_of(item: type) -> Callable[[object], bool]:
    return lambda value: isinstance(value, (list, tuple)) and all(isinstance(entry, item) for entry in value)


#: What a value must be, for the hooks that owe one.
_RESULTS: dict[str, tuple[str, Callable[[object], bool]]] = {
    "gdsfw_backend": ("a BackendInfo", _is(b.BackendInfo)),
    "gdsfw_probe": ("a list of Check", _list_of(b.Check)),
    "gdsfw_devices": ("a list of Device", _list_of(b.Device)),
    "gdsfw_open_file": ("a FileHandle", _is(b.FileHandle)),
    "gdsfw_alloc": ("a Buffer", _is(b.Buffer)),
    "gdsfw_io": ("an IOPath", _is(b.IOPath)),
    "gdsfw_map": ("a Mapped", _is(b.Mapped)),
    "gdsfw_error": ("an ErrorInfo or None", _is(b.ErrorInfo, type(None))),
    "gdsfw_import": ("a mapping or None", _is(Mapping, type(None))),
}
_TRANSPORT = ("a Transport", _is(b.Transport))
#: None would look like the next call's "take a snapshot".
_SNAPSHOT = ("a snapshot", lambda value: value is not None)


def _due(hook: str, arguments: Mapping[str, Any]) -> tuple[str, Callable[[object], bool]] | None:
    if hook == "gdsfw_transport":
        return _SNAPSHOT if arguments["before"] is None else _TRANSPORT
    return _RESULTS.get(hook)
