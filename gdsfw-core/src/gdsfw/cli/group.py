"""A group of commands that imports a command's module when the command is called, and no other."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup


class Entry(NamedTuple):
    """A command of core: its module, which has a function `command`, and the line for the list of commands."""

    module: str
    summary: str


COMMANDS = {
    "run": Entry("gdsfw.cli.run", "Run a workload and show what it measured."),
    "validate": Entry("gdsfw.cli.validate", "Check a workload file without running it."),
    "schema": Entry("gdsfw.cli.schema", "Print the JSON Schema of workload files."),
    "init": Entry("gdsfw.cli.init", "Write a workload to start from."),
    "backends": Entry("gdsfw.cli.backends", "List backends and plugins: what is usable, and why not."),
    "devices": Entry("gdsfw.cli.devices", "List the devices that workers can be put on."),
    "doctor": Entry("gdsfw.cli.doctor", "Say why direct GPU I/O is not happening, and what mends it."),
    "compare": Entry("gdsfw.cli.compare", "Compare results, and fail beyond a limit."),
    "report": Entry("gdsfw.cli.report", "Turn a result into HTML, CSV or fio's JSON."),
    "clean": Entry("gdsfw.cli.clean", "Delete the files that gdsfw created."),
    "new-backend": Entry("gdsfw.cli.new_backend", "Write the distribution of a new backend."),
    "version": Entry("gdsfw.cli.version", "Show the versions of gdsfw, its engine and its plugins."),
}


class OutputClosedError(BrokenPipeError):
    """Stdout was closed. Without an errno, so that the command line library leaves it to `main`."""


class LazyGroup(TyperGroup):
    """The commands of COMMANDS, then those of plugins.

    Plugins are asked for commands when the commands are listed, or when a command is none of core's.
    """

    _plugins: dict[str, Any] | None = None
    _listing = False

    def list_commands(self, ctx: Any) -> list[str]:
        """Core's commands in the order of the table, then the plugins'."""
        return [*COMMANDS, *sorted(self._plugin_commands())]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name, imported now; while listing, only its summary."""
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return self._plugin_commands().get(cmd_name)
        if self._listing:
            return TyperCommand(cmd_name, help=entry.summary)
        single = typer.Typer(add_completion=False, rich_markup_mode=None)
        single.command(cmd_name)(import_module(entry.module).command)
        return typer.main.get_command(single)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The help text, for which no command is imported."""
        self._listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._listing = False

    def invoke(self, ctx: Any) -> Any:
        """Run the command; what ends a process from outside is told apart here, before the library translates it."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise typer.Abort from None
        except BrokenPipeError as error:
            raise OutputClosedError from error

    def _plugin_commands(self) -> dict[str, Any]:
        if self._plugins is None:
            self._plugins = plugin_commands(set(COMMANDS))
        return self._plugins


def plugin_commands(taken: set[str]) -> dict[str, Any]:
    """Commands of the installed plugins by name. One that cannot be used costs a line on stderr, not the others.

    Args:
        taken: names that plugins cannot have.
    """
    from gdsfw.plugins import PluginManager

    manager = PluginManager.installed(os.environ)
    found: dict[str, Any] = {}
    for plugin in manager.command_plugins():
        own = typer.Typer(add_completion=False, rich_markup_mode=None)
        try:
            manager.add_commands(plugin, own)
            commands = typer.main.get_group(own).commands
        except Exception as error:
            typer.echo(f"plugin {plugin!r}, hook gdsfw_commands: {type(error).__name__}: {error}", err=True)
            continue
        for name, command in commands.items():
            if name in taken or name in found:
                typer.echo(f"plugin {plugin!r}: command {name!r} is left out, the name is taken", err=True)
            else:
                found[name] = command
    return found
