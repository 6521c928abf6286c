"""`gdsfw init`: write a workload to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gdsfw.errors import UnavailableError, UsageError


def command(
    preset: Annotated[str | None, typer.Argument(help="Name of the preset; without it all are listed.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File to write; default: print it.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
) -> None:
    """Write a commented workload to start from: bandwidth, latency, mixed load, checkpoints, KV cache, data loading."""
    from gdsfw.workload import presets

    if preset is None:
        for name, summary in presets.names().items():
            typer.echo(f"{name:<22}{summary}")
        return
    text = presets.text(preset)
    if output is None:
        typer.echo(text, nl=False)
        return
    _write(output, text, force)
    typer.echo(f"wrote {output}; look at it, then: gdsfw run --plan {output}", err=True)


def _write(output: Path, text: str, force: bool) -> None:
    try:
        with output.open("w" if force else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(f"{output} exists already", hint="--force replaces it") from None
    except OSError as error:
        raise UnavailableError(f"{output} cannot be written: {(error.strerror or str(error)).lower()}") from None
