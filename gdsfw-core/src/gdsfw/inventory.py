"""What is installed and what of it works here: the facts behind `gdsfw backends`, `devices` and `version`."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from gdsfw import __version__
from gdsfw.errors import GdsfwError

if TYPE_CHECKING:
    from pathlib import Path

    from gdsfw.backend import BackendInfo, Check, Device
    from gdsfw.host import Host
    from gdsfw.plugins import Plugin, PluginFailure, PluginManager


@dataclass(frozen=True)
class BackendStatus:
    """One backend and whether it can be used here.

    Args:
        reason: why it cannot; empty when it can.
    """

    plugin: Plugin
    info: BackendInfo
    checks: tuple[Check, ...]
    reason: str = ""

    @property
    def usable(self) -> bool:
        """Whether a job can run on it."""
        return not self.reason


@dataclass(frozen=True)
class EngineStatus:
    """Whether the C engine is there, why not, and the interface versions of engine and backend tables."""

    available: bool
    reason: str
    abi: int
    table_abi: int


def backend_status(manager: PluginManager, name: str, directory: Path, host: Host) -> BackendStatus:
    """Ask a backend what works here, with its options at their defaults.

    Args:
        directory: where files would be.
        host: the machine to look at.
    """
    info = manager.backend(name)
    plugin = manager.plugins()[name]
    try:
        options = manager.validate_options(name, {})
        checks = manager.job_hooks(name).gdsfw_probe(options=options, directory=directory, host=host)
    except Exception as error:  # a probe never raises by its rules; the list must show the others all the same
        return BackendStatus(plugin, info, (), f"its probe failed: {error_text(error)}")
    broken = next((check for check in checks if check.state == "fail" and not check.blocks_direct), None)
    return BackendStatus(plugin, info, tuple(checks), _reason(broken) if broken is not None else "")


def _reason(check: Check) -> str:
    text = f"{check.name}: {check.seen}"
    return f"{text}; {check.fix}" if check.fix else text


def devices(manager: PluginManager, name: str) -> list[Device]:
    """Devices of one backend; what its library raises passes through."""
    found: list[Device] = manager.job_hooks(name).gdsfw_devices()
    return found


def engine_status() -> EngineStatus:
    """The C engine of this installation."""
    from gdsfw.engine import native, native_abi

    try:
        usable, reason = native.available()
    except GdsfwError as error:  # a library of another version
        usable, reason = False, error.message
    return EngineStatus(usable, reason, native_abi.ENGINE_ABI, native.NativeTable.ABI)


def versions(manager: PluginManager) -> dict[str, Any]:
    """Versions that a result or a bug report needs, as JSON data."""
    engine = asdict(engine_status())
    return {
        "gdsfw": __version__,
        "python": platform.python_version(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "engine": engine,
        "plugins": [plugin_data(plugin) for plugin in manager.plugins().values()],
        "failures": [failure_data(failure) for failure in manager.failures()],
    }


def plugin_data(plugin: Plugin) -> dict[str, Any]:
    """A plugin as JSON data."""
    return {
        "name": plugin.name,
        "distribution": plugin.distribution,
        "version": plugin.version,
        "hooks": sorted(plugin.hooks),
        "wraps": sorted(plugin.wraps),
    }


def failure_data(failure: PluginFailure) -> dict[str, Any]:
    """A plugin that is not used, as JSON data."""
    return asdict(failure)


def backend_data(status: BackendStatus) -> dict[str, Any]:
    """A backend as JSON data."""
    info = status.info
    return {
        **plugin_data(status.plugin),
        "title": info.title,
        "hook_version": info.hook_version,
        "namespace": info.namespace,
        "memory": list(info.memory),
        "io_paths": [asdict(path) for path in info.io_paths],
        "capabilities": sorted(info.capabilities),
        "options": sorted(info.options.model_fields) if info.options is not None else [],
        "usable": status.usable,
        "reason": status.reason,
        "checks": [asdict(check) for check in status.checks],
    }


def error_text(error: BaseException) -> str:
    """An error in one line."""
    if isinstance(error, GdsfwError):
        return error.message
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    return f"{type(error).__name__}: {error}"
