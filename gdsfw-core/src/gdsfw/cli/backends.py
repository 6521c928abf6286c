"""`gdsfw backends`: what is installed, what works here, and why something does not."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from gdsfw.inventory import BackendStatus, EngineStatus
    from gdsfw.plugins import Plugin, PluginFailure


def command(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
    directory: Annotated[
        Path, typer.Option("--directory", help="Ask the backends about files here.", show_default="this folder")
    ] = Path(),
) -> None:
    """List the installed backends: version, I/O paths, memory, and whether they work here or why not.

    Plugins that are no backend and plugins that could not be used are listed too. GDSFW_PLUGINS picks plugins:
    `posix,noop` loads only those, `-NAME` leaves one out.
    """
    from gdsfw.host import Host
    from gdsfw.inventory import backend_status, engine_status
    from gdsfw.plugins import PluginManager

    manager = PluginManager.installed(os.environ)
    statuses = [backend_status(manager, name, directory, Host()) for name in manager.backends()]
    others = [plugin for plugin in manager.plugins().values() if not plugin.is_backend]
    engine = engine_status()
    if as_json:
        _print_json(statuses, others, manager.failures(), engine)
        return
    for status in statuses:
        _print_backend(status, engine)
    if not statuses:
        typer.echo("no backend is installed")
    for plugin in others:
        typer.echo(f"{_title(plugin)}: plugin, no backend; hooks {', '.join(sorted(plugin.hooks | plugin.wraps))}")
    if not engine.available:
        typer.echo(f"\nAll paths run in Python: {engine.reason}")
    for failure in manager.failures():
        typer.echo(f"{failure.name} ({failure.distribution or 'not installed'}): NOT USED")
        typer.echo(f"  why not   {failure.reason}")
        if failure.hint:
            typer.echo(f"  hint      {failure.hint}")


def _print_json(
    statuses: list[BackendStatus], others: list[Plugin], failures: list[PluginFailure], engine: EngineStatus
) -> None:
    import json
    from dataclasses import asdict

    from gdsfw.inventory import backend_data, failure_data, plugin_data

    data: dict[str, Any] = {
        "backends": [backend_data(status) for status in statuses],
        "plugins": [plugin_data(plugin) for plugin in others],
        "failures": [failure_data(failure) for failure in failures],
        "engine": asdict(engine),
    }
    typer.echo(json.dumps(data, indent=2))


def _print_backend(status: BackendStatus, engine: EngineStatus) -> None:
    info = status.info
    typer.echo(f"{_title(status.plugin)}: {'usable' if status.usable else 'NOT USABLE'}")
    if not status.usable:
        typer.echo(f"  why not   {status.reason}")
    typer.echo(f"  what      {info.title}")
    for number, path in enumerate(info.io_paths):
        kind = "native" if path.native and engine.available else "python"
        depth = f"depth up to {path.max_iodepth}" if path.max_iodepth else "any depth"
        summary = f": {path.summary}" if path.summary else ""
        typer.echo(f"  {'io paths' if number == 0 else '':<9} {path.name} ({kind}, {depth}){summary}")
    typer.echo(f"  memory    {', '.join(info.memory)}")


def _title(plugin: Plugin) -> str:
    return f"{plugin.name} ({plugin.distribution} {plugin.version})"
