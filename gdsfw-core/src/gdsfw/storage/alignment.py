"""What direct I/O on a file must be a multiple of, and which number of a request is not."""

from __future__ import annotations

import ctypes
import os
import stat
import sys
from functools import lru_cache
from pathlib import Path

from gdsfw.backend import Alignment

PAGE = os.sysconf("SC_PAGE_SIZE")

# statx(2): not in Python before 3.15. Values from <linux/stat.h> and <fcntl.h>.
_AT_EMPTY_PATH = 0x1000
_STATX_DIOALIGN = 0x2000
_MASK_AT, _MEMORY_AT, _OFFSET_AT, _SIZE = 0, 152, 156, 256


@lru_cache(maxsize=1)
def _statx() -> ctypes._NamedFuncPointer | None:
    try:
        call = ctypes.CDLL(None, use_errno=True).statx
    except (OSError, AttributeError):
        return None
    call.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p)
    call.restype = ctypes.c_int
    return call


def dioalign(fd: int) -> tuple[int, int] | None:
    """(memory, offset) alignment that the kernel states, (0, 0) for "no direct I/O", None when it says nothing."""
    call = _statx()
    answer = ctypes.create_string_buffer(_SIZE)
    if call is None or call(fd, b"", _AT_EMPTY_PATH, _STATX_DIOALIGN, answer):
        return None
    if not _word(answer.raw, _MASK_AT) & _STATX_DIOALIGN:
        return None
    return _word(answer.raw, _MEMORY_AT), _word(answer.raw, _OFFSET_AT)


def _word(raw: bytes, at: int) -> int:
    return int.from_bytes(raw[at : at + 4], sys.byteorder)


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
