"""What direct I/O on a file must be a multiple of, and which number of a request is not."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from gdsfw.backend import Alignment
from gdsfw.storage.statx import dioalign

PAGE = os.sysconf("SC_PAGE_SIZE")


def _sector(device: int) -> int | None:
    """Logical sector size of the block device `device` (st_dev or st_rdev), a partition's from its disk."""
    folder = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
    for place in (folder / "queue", folder / ".." / "queue"):
        try:
            return int((place / "logical_block_size").read_text())
        except (OSError, ValueError):
            continue
    return None


def file_alignment(place: int | str | Path) -> Alignment:
    """Alignment of direct I/O on an open descriptor, or on a path that exists.

    Asked in this order: statx, the logical sector of the block device below, the page size.
    """
    if not isinstance(place, int):
        fd = os.open(place, os.O_PATH | os.O_CLOEXEC)
        try:
            return file_alignment(fd)
        finally:
            os.close(fd)
    stated = dioalign(place)
    if stated and all(stated):
        return Alignment(offset=stated[1], memory=stated[0], source="statx")
    status = os.fstat(place)
    device = status.st_rdev if stat.S_ISBLK(status.st_mode) else status.st_dev
    sector = _sector(device)
    if sector:
        return Alignment(offset=sector, memory=sector, source="logical sector")
    return Alignment(offset=PAGE, memory=PAGE, source="page size")


def misalignment(alignment: Alignment, *, size: int, offset: int, address: int = 0) -> str | None:
    """Which of buffer, offset or length direct I/O refuses, and the multiple it needs; None when all fit."""
    for name, value, needed in (
        ("buffer address", address, alignment.memory),
        ("offset", offset, alignment.offset),
        ("length", size, alignment.offset),
    ):
        if value % needed:
            return f"{name} {value} is not a multiple of {needed} (from the {alignment.source})"
    return None
