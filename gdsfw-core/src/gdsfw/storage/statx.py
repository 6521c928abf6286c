"""statx(2), which Python does not have yet: alignment of direct I/O, and the time of birth of a file.

Constants and offsets from <linux/stat.h> and <linux/fcntl.h>.
"""

from __future__ import annotations

import ctypes
import sys
from functools import lru_cache

_AT_EMPTY_PATH = 0x1000
_STATX_BTIME = 0x800
_STATX_DIOALIGN = 0x2000
_MASK_AT, _BORN_AT, _MEMORY_AT, _OFFSET_AT, _SIZE = 0, 80, 152, 156, 256


def dioalign(fd: int) -> tuple[int, int] | None:
    """(memory, offset) alignment that the kernel states, (0, 0) for "no direct I/O", None when it says nothing."""
    raw = _ask(fd, _STATX_DIOALIGN)
    return None if raw is None else (_number(raw, _MEMORY_AT, 4), _number(raw, _OFFSET_AT, 4))


def birth_time(fd: int) -> int | None:
    """When a file was created, in nanoseconds since 1970; None where the file system does not keep it."""
    raw = _ask(fd, _STATX_BTIME)
    return None if raw is None else _number(raw, _BORN_AT, 8) * 10**9 + _number(raw, _BORN_AT + 8, 4)


def _ask(fd: int, mask: int) -> bytes | None:
    """The answer for an open descriptor (O_PATH is enough), None without the call or without these fields."""
    call = _statx()
    answer = ctypes.create_string_buffer(_SIZE)
    if call is None or call(fd, b"", _AT_EMPTY_PATH, mask, answer):
        return None
    return answer.raw if _number(answer.raw, _MASK_AT, 4) & mask else None


@lru_cache(maxsize=1)
def _statx() -> ctypes._NamedFuncPointer | None:
    try:
        call = ctypes.CDLL(None, use_errno=True).statx
    except (OSError, AttributeError):
        return None
    call.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p)
    call.restype = ctypes.c_int
    return call


def _number(raw: bytes, at: int, size: int) -> int:
    return int.from_bytes(raw[at : at + size], sys.byteorder)
