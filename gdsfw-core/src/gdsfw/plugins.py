"""The plugin manager: what is installed, what of it is usable, and the hooks of the one backend that a job picked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pluggy

from gdsfw import hookspecs
from gdsfw.errors import GdsfwError, PluginError, UnavailableError
from gdsfw.hookspecs import PROJECT
from gdsfw.job_hooks import HookCall, JobHooks
from gdsfw.plugin_defaults import companion
from gdsfw.plugin_discovery import SELECTION_VARIABLE, Offer, PluginFailure, Selection, offers, split_clashes
from gdsfw.plugin_rules import check, hook_arguments, implementations, is_backend, job_hooks

if TYPE_CHECKING:
    import typer
    from pydantic import BaseModel

    from gdsfw.backend import BackendInfo, ErrorInfo
    from gdsfw.errors import Domain


@dataclass
class Plugin:
    """One loaded plugin.

    Args:
        name: of the entry point.
        module: with the functions.
        is_backend: whether it implements gdsfw_backend.
        hooks: those it implements itself; `wraps`: those it wraps.
        distribution, version: where it comes from; empty for one registered in a test.
        info: what a backend says of itself.
        companion: core's defaults for the hooks that a backend lacks.
    """

    name: str
    module: Any
    is_backend: bool
    hooks: frozenset[str]
    wraps: frozenset[str]
    distribution: str = ""
    version: str = ""
    info: BackendInfo | None = None
    companion: ModuleType = field(default_factory=lambda: ModuleType("none"))


class PluginManager:
    """Holds plugins. Empty at first: `register` adds one, `load_installed` all that are installed.

    A plugin that fails to load or breaks a rule is set aside (`failures`) and the others still work.
    """

    def __init__(self) -> None:
        self._pluggy = pluggy.PluginManager(PROJECT)
        self._pluggy.add_hookspecs(hookspecs)
        self._plugins: dict[str, Plugin] = {}
        self._failures: list[PluginFailure] = []
        self._selection_text = ""
        self._left_out: set[str] = set()
        self._undescribed: list[str] = []

    @classmethod
    def installed(cls, environ: Mapping[str, str]) -> PluginManager:
        """A manager with every installed plugin that GDSFW_PLUGINS in `environ` leaves."""
        manager = cls()
        manager.load_installed(environ)
        return manager

    def load_installed(self, environ: Mapping[str, str], found: Iterable[Offer] | None = None) -> None:
        """Load plugins by entry point, each on its own.

        Args:
            environ: environment with GDSFW_PLUGINS.
            found: what is offered; None looks at the installed distributions.
        """
        self._selection_text = environ.get(SELECTION_VARIABLE, "")
        selection = Selection.parse(self._selection_text)
        all_offers = offers() if found is None else list(found)
        selected = [offer for offer in all_offers if offer.name in selection]
        self._left_out = {offer.name for offer in all_offers} - {offer.name for offer in selected}
        alone, clashes = split_clashes(selected)
        self._failures += clashes
        for offer in alone:
            self._load(offer)
        for name in selection.unknown(offer.name for offer in all_offers):
            reason = f"{SELECTION_VARIABLE}={self._selection_text} names it, but no installed distribution offers it"
            self._failures.append(PluginFailure(name, "", reason))

    def register(self, module: Any, name: str, *, distribution: str = "", version: str = "") -> None:
        """Add one plugin, for instance a module written in a test.

        Raises:
            PluginError: naming plugin and hook, when it breaks a rule.
        """
        self._add(module, name, distribution, version)
        self._describe(name)

    def plugins(self) -> Mapping[str, Plugin]:
        """Every usable plugin by name, backends included."""
        self._describe_all()
        return dict(self._plugins)

    def backends(self) -> dict[str, BackendInfo]:
        """What each usable backend says of itself, by name."""
        described = ((plugin.name, plugin.info) for plugin in self.plugins().values())
        return {name: info for name, info in described if info is not None}

    def failures(self) -> list[PluginFailure]:
        """Plugins that are installed but not used, with the reason."""
        self._describe_all()
        return list(self._failures)

    def backend(self, name: str) -> BackendInfo:
        """What the backend `name` says of itself.

        Raises:
            PluginError: it is installed but fails.
            UnavailableError: it is not installed, or left out by GDSFW_PLUGINS.
        """
        known = self.backends()
        if name in known:
            return known[name]
        raise self.missing_backend(name)

    def missing_backend(self, name: str) -> GdsfwError:
        """The error for a job that asks for `name`, which is no usable backend: why not, and what to do."""
        from difflib import get_close_matches

        known = sorted(self.backends())
        if name in self._plugins:
            return PluginError(f"{name!r} is a plugin but no backend", hint=f"backends: {', '.join(known)}")
        absent = self._absent("backend", name)
        if absent is not None:
            return absent
        near = get_close_matches(name, known, 1, 0.6)
        hint = f"did you mean {near[0]!r}?" if near else f"`pip install {PROJECT}-{name}`, if that is its name"
        hint += f"; installed: {', '.join(known) or 'none'}"
        return UnavailableError(f"backend {name!r} is not installed", hint=hint)

    def job_hooks(self, backend: str, active_plugins: Sequence[str] = ()) -> JobHooks:
        """The hooks of a job on `backend`.

        Args:
            backend: name of an installed backend.
            active_plugins: names that the job's `plugins` key has. A plugin with options takes part only in jobs
                that name it; one without options takes part in every job.

        Raises:
            UnavailableError: a backend or plugin of that name is not there.
        """
        self.backend(backend)
        for name in active_plugins:
            self._named_plugin(name)
        around = [plugin for plugin in self._plugins.values() if self._takes_part(plugin, active_plugins)]
        chosen = self._plugins[backend]
        taking_part = {id(item) for item in (chosen.module, chosen.companion, *(plugin.module for plugin in around))}
        removed = [module for module in self._pluggy.get_plugins() if id(module) not in taking_part]
        names = (*job_hooks(), "gdsfw_job_started", "gdsfw_job_finished")
        return JobHooks(backend, {hook: self._call(hook, chosen, around, removed) for hook in names})

    def validate_options(self, backend: str, options: Mapping[str, Any]) -> Any:
        """`options` as an instance of the backend's options model, or None when it has none.

        Raises:
            WorkloadError: with every mistake.
        """
        from gdsfw.plugin_options import validated

        return validated(self.backend(backend).options, options, f"backend_options.{backend}")

    def validate_plugin_options(self, name: str, options: Mapping[str, Any]) -> Any:
        """`options` as an instance of the model of a plugin that is no backend, or None when it has none.

        Raises:
            WorkloadError: with every mistake.
        """
        from gdsfw.plugin_options import validated

        return validated(self.options_model(name), options, f"plugins.{name}")

    def options_model(self, name: str) -> type[BaseModel] | None:
        """What options a plugin that is no backend takes, or None when it takes none.

        Raises:
            PluginError: it is a backend, or cannot be used.
            UnavailableError: it is not installed, or left out by GDSFW_PLUGINS.
        """
        from gdsfw.plugin_options import check_model

        plugin = self._named_plugin(name)
        if "gdsfw_options" not in plugin.hooks:
            return None
        model = self._only("gdsfw_options", plugin)()
        check_model(model, f"plugin {plugin.name!r}, hook gdsfw_options")
        return model  # type: ignore[no-any-return]

    def explain_error(self, backend: str, domain: Domain, code: int) -> ErrorInfo:
        """Name, text, likely cause and fix of an error code; core knows errno, the backend everything else."""
        from gdsfw.error_texts import explain

        known = explain(domain, code)
        try:
            told: ErrorInfo | None = self.job_hooks(backend).gdsfw_error(domain=domain, code=code)
        except Exception as error:  # a failing explanation must not hide what it was to explain
            failed = (
                _text(error)
                if isinstance(error, PluginError)
                else f"plugin {backend!r}, hook gdsfw_error: {_text(error)}"
            )
            return replace(known, cause=f"{known.cause} ({failed})".strip())
        return told if told is not None else known

    def notify(self, hook: str, **arguments: Any) -> list[str]:
        """Call an observer hook of every plugin that has it; a failing observer is told of and disturbs nobody.

        Returns:
            One line for each observer that failed.
        """
        failed = []
        for name, plugin in self._plugins.items():
            if hook in plugin.hooks:
                try:
                    self._only(hook, plugin)(**arguments)
                except Exception as error:
                    failed.append(f"plugin {name!r}, hook {hook}: {_text(error)}")
        return failed

    def command_plugins(self) -> list[str]:
        """Names of plugins that add commands to the command line. Asks no backend what it is."""
        return [name for name, plugin in self._plugins.items() if "gdsfw_commands" in plugin.hooks]

    def add_commands(self, name: str, app: typer.Typer) -> None:
        """Let the plugin `name` add its commands to `app`; what it raises passes through."""
        self._only("gdsfw_commands", self._plugins[name])(app=app)

    def _load(self, offer: Offer) -> None:
        try:
            module = offer.entry_point.load()
        except (Exception, SystemExit) as error:
            reason = f"importing {offer.entry_point.value} failed: {_text(error)}"
            self._failures.append(PluginFailure(offer.name, offer.source, reason))
            return
        try:
            self._add(module, offer.name, offer.distribution, offer.version)
        except PluginError as error:
            self._failures.append(PluginFailure(offer.name, offer.source, error.message, error.hint or ""))

    def _add(self, module: Any, name: str, distribution: str, version: str) -> None:
        if name in self._plugins:
            raise PluginError(f"a plugin named {name!r} is already there ({self._plugins[name].distribution})")
        found = implementations(self._pluggy, module)
        check(module, name, found)
        try:
            self._pluggy.register(module, name)
            self._pluggy.check_pending()
        except (pluggy.PluginValidationError, ValueError) as error:
            if self._pluggy.has_plugin(name):
                self._pluggy.unregister(name=name)
            raise PluginError(f"plugin {name!r}: {error}") from error
        plain = frozenset(item.hook for item in found if not item.wraps)
        wraps = frozenset(item.hook for item in found if item.wraps)
        plugin = Plugin(name, module, is_backend(found), plain, wraps, distribution, version)
        if plugin.is_backend:
            plugin.companion = companion(name, plain)
            self._pluggy.register(plugin.companion, f"{name} defaults")
        self._plugins[name] = plugin
        self._undescribed.append(name)

    def _describe_all(self) -> None:
        """Ask backends what they are. Not done while loading: a command line's help needs no options models."""
        for name in list(self._undescribed):
            plugin = self._plugins[name]
            try:
                self._describe(name)
            except PluginError as error:
                source = f"{plugin.distribution} {plugin.version}".strip()
                self._failures.append(PluginFailure(name, source, error.message, error.hint or ""))

    def _describe(self, name: str) -> None:
        self._undescribed.remove(name)
        plugin = self._plugins[name]
        if not plugin.is_backend:
            return
        try:
            plugin.info = self._ask_backend(plugin)
        except PluginError:
            self._remove(name)
            raise
        except Exception as error:
            self._remove(name)
            raise PluginError(f"plugin {name!r}, hook gdsfw_backend: {_text(error)}") from error

    def _ask_backend(self, plugin: Plugin) -> BackendInfo:
        from gdsfw.plugin_options import check_info

        info: BackendInfo = HookCall("gdsfw_backend", self._only("gdsfw_backend", plugin), plugin.name)()
        check_info(info, plugin.name, plugin.hooks)
        return info

    def _remove(self, name: str) -> None:
        plugin = self._plugins.pop(name)
        self._pluggy.unregister(plugin.module)
        self._pluggy.unregister(plugin.companion)

    def _only(self, hook: str, plugin: Plugin) -> Any:
        others = [module for module in self._pluggy.get_plugins() if module is not plugin.module]
        return self._pluggy.subset_hook_caller(hook, others)

    def _call(self, hook: str, chosen: Plugin, around: list[Plugin], removed: list[Any]) -> HookCall:
        caller = self._pluggy.subset_hook_caller(hook, removed)
        wrappers = [plugin.name for plugin in (chosen, *around) if hook in plugin.wraps]
        owner = chosen.name if hook in chosen.hooks else f"{chosen.name} defaults"
        return HookCall(hook, caller, owner, wrappers)

    def _takes_part(self, plugin: Plugin, active: Sequence[str]) -> bool:
        return not plugin.is_backend and ("gdsfw_options" not in plugin.hooks or plugin.name in active)

    def _named_plugin(self, name: str) -> Plugin:
        plugin = self.plugins().get(name)
        if plugin is not None and not plugin.is_backend:
            return plugin
        if plugin is not None:
            raise PluginError(f"{name!r} is a backend", hint=f"its options go under backend_options.{name}")
        usable = sorted(other.name for other in self._plugins.values() if not other.is_backend)
        hint = f"installed: {', '.join(usable)}" if usable else "no plugins besides backends are installed"
        raise self._absent("plugin", name) or UnavailableError(f"plugin {name!r} is not installed", hint=hint)

    def _absent(self, kind: str, name: str) -> GdsfwError | None:
        """The error for a plugin that is installed and yet not there."""
        for failure in self._failures:
            if failure.name == name:
                return PluginError(f"{kind} {name!r} cannot be used: {failure.reason}", hint=failure.hint or None)
        if name in self._left_out:
            text = f"{SELECTION_VARIABLE}={self._selection_text}"
            return UnavailableError(f"{kind} {name!r} is installed but left out by {text}")
        return None


def _text(error: BaseException) -> str:
    return str(error) if isinstance(error, GdsfwError) else f"{type(error).__name__}: {error}"


__all__ = ["JobHooks", "Plugin", "PluginFailure", "PluginManager", "hook_arguments"]
