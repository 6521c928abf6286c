"""Deleting what gdsfw created: files that a manifest lists and that still are the ones it lists, and nothing else."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from gdsfw.storage.identity import identify
from gdsfw.storage.manifest import Entry, Manifest


@dataclass(frozen=True)
class Cleaned:
    """What became of one file of a manifest; `kept` says why it was left alone."""

    path: str
    nbytes: int
    kept: str | None = None


def clean(directory: Path, *, dry_run: bool = False) -> tuple[list[Cleaned], str | None]:
    """Delete gdsfw's files in a directory (not below it).

    Returns:
        One row for each file of the manifest, and why the manifest was not believed, if it was not.
    """
    manifest = Manifest.load(directory)
    rows = [_clean_file(manifest, entry, dry_run) for entry in list(manifest.entries.values())]
    return rows, manifest.distrust


def delete_own(paths: Iterable[Path]) -> list[Cleaned]:
    """Delete those of the files that gdsfw created, and say of each that is there what became of it."""
    rows = []
    for path in filter(os.path.lexists, paths):
        manifest = Manifest.load(path.parent)
        entry = manifest.entry(path.name)
        if entry is None:
            rows.append(Cleaned(str(path), 0, kept=manifest.distrust or "gdsfw did not create it"))
        else:
            rows.append(_clean_file(manifest, entry, dry_run=False))
    return rows


def _clean_file(manifest: Manifest, entry: Entry, dry_run: bool) -> Cleaned:
    path = manifest.directory / entry.name
    try:
        found = identify(path)
    except FileNotFoundError:
        if not dry_run:
            manifest.forget(entry.name)
        return Cleaned(str(path), 0, kept="it is gone already")
    reason = None
    if not entry.created:
        reason = "gdsfw wrote into it, but did not create it"
    elif not entry.is_file(found):
        reason = "another file has taken its place, or it has grown"
    elif found.status.st_nlink != 1:
        reason = f"it has {found.status.st_nlink} hard links"
    if reason is None and not dry_run:
        path.unlink()
        manifest.forget(entry.name)
    return Cleaned(str(path), found.status.st_blocks * 512, kept=reason)
