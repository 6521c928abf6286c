"""Which file a name stands for: device, inode and time of birth.

An inode's number is given to another file as soon as the first one is deleted, so the number alone would let a file of
the user's pass for one of gdsfw's own. The time of birth (statx) tells them apart where the file system keeps it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from gdsfw.storage.statx import birth_time


@dataclass(frozen=True)
class Identity:
    """A file's status, and its time of birth in nanoseconds; None where the file system does not keep it."""

    status: os.stat_result
    born: int | None


def identify(place: int | Path) -> Identity:
    """The identity of an open descriptor, or of what lies at a path (a symbolic link itself, not its target).

    Raises:
        OSError: there is nothing, or it may not be looked at.
    """
    if isinstance(place, int):
        return Identity(os.fstat(place), birth_time(place))
    fd = os.open(place, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        return Identity(os.fstat(fd), birth_time(fd))
    finally:
        os.close(fd)
