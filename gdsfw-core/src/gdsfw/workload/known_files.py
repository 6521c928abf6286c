"""What a plan knows of files: those that are there now, and those that its earlier jobs will have made."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Kind = Literal["missing", "file", "directory", "block", "special", "unknown"]


@dataclass(frozen=True)
class Known:
    """A file as a job will find it.

    Args:
        kind: `unknown` for a name that only its backend can look up.
        nbytes: its size.
        exists: it is there before the run.
        made: earlier jobs of the plan create it, or make it this long.
    """

    kind: Kind
    nbytes: int = 0
    exists: bool = False
    made: bool = False


class KnownFiles:
    """Looks each file up once, then remembers what the planned jobs do to it."""

    def __init__(self) -> None:
        self._known: dict[str, Known] = {}

    def look(self, path: str, *, own_namespace: bool = False) -> Known:
        """The file at `path` as the next job will find it."""
        if path not in self._known:
            self._known[path] = Known("unknown") if own_namespace else _look_up(path)
        return self._known[path]

    def grow(self, path: str, nbytes: int) -> None:
        """A planned job leaves `path` at least this long."""
        known = self._known[path]
        if known.kind in ("missing", "unknown"):
            self._known[path] = Known("file" if known.kind == "missing" else "unknown", nbytes, made=True)
        elif known.kind == "file" and nbytes > known.nbytes:
            self._known[path] = Known("file", nbytes, known.exists, made=True)

    def remove(self, path: str) -> None:
        """A planned job deletes `path`, if gdsfw made it."""
        known = self._known[path]
        if known.made and not known.exists:
            self._known[path] = Known("missing" if known.kind == "file" else "unknown")


def _look_up(path: str) -> Known:
    try:
        found = os.stat(path)  # noqa: PTH116 - a plan may name very many files
    except OSError:
        return Known("missing")
    if stat.S_ISREG(found.st_mode):
        return Known("file", found.st_size, exists=True)
    if stat.S_ISDIR(found.st_mode):
        return Known("directory", exists=True)
    if stat.S_ISBLK(found.st_mode):
        return Known("block", _device_bytes(found.st_rdev), exists=True)
    return Known("special", exists=True)


def _device_bytes(device: int) -> int:
    """Size of a block device, without opening it. sysfs counts 512-byte sectors whatever the device's own are."""
    entry = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/size")
    try:
        return int(entry.read_text()) * 512
    except (OSError, ValueError):
        return 0


def file_id(path: str, *, own_namespace: bool = False) -> int:
    """Number of a file for its verification pattern: the same for every job and run.

    Made from the last part of a path only, as the manifest beside the file is, so that a folder can be moved. Files of
    one name in two folders differ by the seed of their pattern.
    """
    name = path if own_namespace else os.path.basename(path)  # noqa: PTH119 - very many files
    return int.from_bytes(hashlib.blake2b(os.fsencode(name), digest_size=8).digest(), "little") >> 1


def made_by_gdsfw(path: str) -> bool:
    """Whether the manifest beside the file says that gdsfw made it, so that layout may make it longer."""
    from gdsfw.storage.identity import identify
    from gdsfw.storage.manifest import Manifest

    file = Path(path)
    try:
        return Manifest.load(file.parent).owns(file.name, identify(file))
    except OSError:
        return False
