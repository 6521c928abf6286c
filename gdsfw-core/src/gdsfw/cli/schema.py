"""`gdsfw schema`: the JSON Schema of workload files."""

from __future__ import annotations

import typer


def command() -> None:
    """Print the JSON Schema of workload files, for editors that complete and check them."""
    import json

    from gdsfw.workload.schema import workload_schema

    typer.echo(json.dumps(workload_schema(), indent=2))
