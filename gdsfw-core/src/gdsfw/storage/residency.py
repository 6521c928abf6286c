"""The page cache: how much of a file is in it, getting a file out of it, and what that says of a read."""

from __future__ import annotations

import ctypes
import mmap
import os
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gdsfw.backend import CacheState

PAGE = os.sysconf("SC_PAGE_SIZE")
#: Bytes of a file that are looked at in one call: bounds the address space and the answer (one byte a page).
WINDOW = 1 << 30
#: Above this many bytes only evenly spread windows are looked at: 1 GiB takes about 11 ms.
WHOLE = 64 << 30


@lru_cache(maxsize=1)
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.argtypes = (ctypes.c_uint64, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64)
    libc.mmap.restype = ctypes.c_uint64
    libc.munmap.argtypes = (ctypes.c_uint64, ctypes.c_size_t)
    libc.munmap.restype = ctypes.c_int
    libc.mincore.argtypes = (ctypes.c_uint64, ctypes.c_size_t, ctypes.c_char_p)
    libc.mincore.restype = ctypes.c_int
    return libc


def tells_truth(fd: int) -> bool:
    """Whether the kernel answers mincore honestly: only to a file's owner or somebody who may write it."""
    owner = os.fstat(fd).st_uid
    return os.geteuid() in (0, owner) or os.access(f"/proc/self/fd/{fd}", os.W_OK)


def resident_bytes(fd: int, nbytes: int | None = None) -> int | None:
    """Bytes of the file's first `nbytes` (default: all) that are in the page cache; None when nobody can tell.

    Files above 64 GiB are sampled in 64 windows and the answer scaled.
    """
    there = os.lseek(fd, 0, os.SEEK_END)  # fstat knows no block device's size
    size = there if nbytes is None else min(nbytes, there)
    if size <= 0 or not tells_truth(fd):
        return 0 if size <= 0 else None
    if size <= WHOLE:
        parts = [_window(fd, start, min(WINDOW, size - start)) for start in range(0, size, WINDOW)]
        return None if None in parts else sum(part or 0 for part in parts)
    step = size // 64 // PAGE * PAGE
    parts = [_window(fd, index * step, WINDOW) for index in range(64)]
    return None if None in parts else sum(part or 0 for part in parts) * size // (64 * WINDOW)


def _window(fd: int, start: int, length: int) -> int | None:
    libc = _libc()
    address = libc.mmap(0, length, mmap.PROT_READ, mmap.MAP_SHARED, fd, start)
    if address == 2**64 - 1:
        return None
    try:
        pages = (length + PAGE - 1) // PAGE
        answer = ctypes.create_string_buffer(pages)
        if libc.mincore(address, length, answer):
            return None
        # Bit 0 of each byte says resident; the others are reserved and zero today.
        return min(length, (pages - answer.raw.count(b"\0")) * PAGE)
    finally:
        libc.munmap(address, length)


def drop_cache(fd: int) -> None:
    """Get a file out of the page cache (fio's invalidate): dirty pages are written first. Errors are not errors."""
    with suppress(OSError):
        os.fdatasync(fd)
    with suppress(OSError):
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)


def cache_state(direct: bool, ram_backed: bool, before: int | None, nbytes: int) -> CacheState:
    """What the page cache did for a read of `nbytes`, of which `before` were resident when it began.

    warm: at least 95 % were resident; cold: at most 5 %; between, nobody can say: unknown.
    """
    if ram_backed:
        return "warm"
    if direct:
        return "bypassed"
    if before is None or nbytes <= 0:
        return "unknown"
    share = before / nbytes
    return "warm" if share >= 0.95 else "cold" if share <= 0.05 else "unknown"
