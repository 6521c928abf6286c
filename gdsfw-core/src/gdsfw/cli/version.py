"""`gdsfw version`: what a bug report should say."""

from __future__ import annotations

import os
from typing import Annotated

import typer


def command(as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False) -> None:
    """Show the versions of gdsfw, Python, the kernel, the C engine and the plugins."""
    from gdsfw.inventory import versions
    from gdsfw.plugins import PluginManager

    facts = versions(PluginManager.installed(os.environ))
    if as_json:
        import json

        typer.echo(json.dumps(facts, indent=2))
        return
    engine = facts["engine"]
    state = f"interface {engine['abi']}, backend tables {engine['table_abi']}"
    typer.echo(f"gdsfw   {facts['gdsfw']}")
    typer.echo(f"python  {facts['python']}")
    typer.echo(f"kernel  {facts['kernel']} {facts['machine']}")
    typer.echo(f"engine  {state if engine['available'] else 'Python loop only: ' + engine['reason']}")
    for plugin in facts["plugins"]:
        typer.echo(f"plugin  {plugin['name']} ({plugin['distribution']} {plugin['version']})")
    for failure in facts["failures"]:
        typer.echo(f"plugin  {failure['name']} ({failure['distribution'] or 'not installed'}): not used")
