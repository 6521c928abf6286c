"""Whether the pieces that a GPU backend needs are on a machine: its bindings, libraries, driver and devices.

Looks at files and installed distributions only, so that it works before any library can be loaded, and for files also
on a tree recorded elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING

from gdsfw.backend import Check

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gdsfw.host import Host


@dataclass(frozen=True)
class Piece:
    """Something a backend cannot work without. It is there if one of its files or distributions is.

    Args:
        name: for messages.
        fix: what brings it.
        files: absolute paths; a last part with `*` stands for any name that begins so.
        distributions: Python distributions.
    """

    name: str
    fix: str
    files: tuple[str, ...] = ()
    distributions: tuple[str, ...] = ()


def check(piece: Piece, host: Host) -> Check:
    """One finding: `ok` with what was seen, `fail` with the fix, `unknown` where only this machine could tell."""
    for path in piece.files:
        seen = _seen(path, host)
        if seen:
            return Check(piece.name, "ok", seen)
    if not host.live and piece.distributions:
        return Check(piece.name, "unknown", "a recorded tree does not show Python distributions")
    for name in piece.distributions:
        version = _version(name)
        if version:
            return Check(piece.name, "ok", f"{name} {version}")
    places = [*piece.files, *(f"the Python distribution {name}" for name in piece.distributions)]
    return Check(piece.name, "fail", "not found", needed=" or ".join(places), fix=piece.fix)


def missing(pieces: Sequence[Piece], host: Host) -> list[Check]:
    """The findings of pieces that are not there."""
    return [found for found in (check(piece, host) for piece in pieces) if found.state == "fail"]


def _seen(path: str, host: Host) -> str | None:
    folder, _, name = path.rpartition("/")
    if not name.endswith("*"):
        return path if host.exists(path) else None
    names = [entry for entry in host.listdir(folder) if entry.startswith(name[:-1])]
    return f"{folder}/{names[0]}" if names else None


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None
