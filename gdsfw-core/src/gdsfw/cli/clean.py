"""`gdsfw clean`: delete the files that gdsfw created."""

from __future__ import annotations

from typing import Annotated

import typer


def command(
    directories: Annotated[
        list[str] | None, typer.Argument(help="Folders to clean, not what lies below. Default: gdsfw-data.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go, delete nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Delete the files that gdsfw created in a folder: those its manifest lists and that still are what it lists.

    Every other file stays, also one that has taken the place of a listed one. The folder itself stays.
    """
    import json
    from dataclasses import asdict
    from pathlib import Path

    from gdsfw.errors import UnavailableError
    from gdsfw.storage.cleaning import clean

    report = []
    for name in directories or ["gdsfw-data"]:
        if not Path(name).is_dir():
            raise UnavailableError(f"{name} is no folder", hint="name the `directory:` of the workload")
        rows, distrust = clean(Path(name), dry_run=dry_run)
        report.append({"directory": name, "distrust": distrust, "files": [asdict(row) for row in rows]})
        if as_json:
            continue
        if distrust:
            typer.echo(f"{distrust}; nothing was deleted", err=True)
        for row in rows:
            verb = f"kept: {row.kept}" if row.kept else "would be deleted" if dry_run else "deleted"
            typer.echo(f"{row.path}: {verb}")
        freed = sum(row.nbytes for row in rows if not row.kept)
        typer.echo(f"{name}: {freed / 2**20:.1f} MiB {'would be ' if dry_run else ''}freed")
    if as_json:
        typer.echo(json.dumps(report, indent=1))
