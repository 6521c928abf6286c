"""Buffers of host memory for backends: page-aligned, populated, outside Python's heap."""

from __future__ import annotations

import ctypes
import errno
import mmap
from typing import Literal

from gdsfw.backend import Buffer
from gdsfw.errors import BackendError, Domain, UnavailableError

#: linux/mman.h; the mmap module has no name for it before Python 3.13.
_MAP_HUGETLB = 0x40000


def allocate(nbytes: int, memory: str = "host", alignment: int = mmap.PAGESIZE) -> Buffer:
    """A buffer of at least `nbytes` bytes (never empty) whose pages are there already.

    Args:
        memory: `host`, or `hugepage` for pages of the system's huge page size.
        alignment: of its address in bytes, a power of two.

    Raises:
        UnavailableError: there are not enough huge pages, or `memory` is another kind.
        BackendError: the kernel gave no memory.
    """
    if memory not in ("host", "hugepage"):
        raise UnavailableError(f"host memory is `host` or `hugepage`, not {memory!r}")
    unit = mmap.PAGESIZE if memory == "host" else _huge_page_size()
    spare = alignment if alignment > unit else 0
    length = max(1, -(-(nbytes + spare) // unit)) * unit
    mapping = _map(length, memory)
    # The pin on the mapping ends with this statement; memoryviews are what keeps it open until `free`.
    start = ctypes.addressof(ctypes.c_char.from_buffer(mapping))
    skip = -start % alignment
    view = memoryview(mapping)[skip : skip + nbytes]
    return Buffer(start + skip, nbytes, memory, view, state=mapping)


def free(buffer: Buffer) -> None:
    """Give back what `allocate` gave. Views that others still hold keep the memory alive."""
    if buffer.host_view is not None:
        buffer.host_view.release()
        buffer.host_view = None
    mapping, buffer.state = buffer.state, None
    if mapping is not None:
        try:
            mapping.close()
        except BufferError:
            return


def _map(length: int, memory: Literal["host", "hugepage"] | str) -> mmap.mmap:
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_POPULATE", 0)
    if memory == "hugepage":
        flags |= _MAP_HUGETLB
    try:
        return mmap.mmap(-1, length, flags=flags)
    except OSError as error:
        if memory == "hugepage":
            raise _no_huge_pages(length) from error
        raise BackendError("mmap", Domain.ERRNO, error.errno or errno.ENOMEM, f"{length} bytes") from error


def _no_huge_pages(length: int) -> UnavailableError:
    unit, reserved, free = (_meminfo(name) for name in ("Hugepagesize", "HugePages_Total", "HugePages_Free"))
    need = -(-length // _huge_page_size())
    return UnavailableError(
        f"memory: hugepage: {need} huge pages of {(unit or 0) >> 10} KiB are needed for this buffer; "
        f"{reserved or 0} are reserved and {free or 0} free",
        hint=f"as root: echo {(reserved or 0) - (free or 0) + need} > /proc/sys/vm/nr_hugepages (one such buffer for "
        "each worker), or use memory: host",
    )


def _huge_page_size() -> int:
    """The default huge page size in bytes, from /proc/meminfo; 2 MiB where it does not say."""
    return _meminfo("Hugepagesize") or 2 << 20


def _meminfo(name: str) -> int | None:
    """A line of /proc/meminfo, in bytes where it has a unit; None when it is not there."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:  # noqa: PTH123
            for line in file:
                if line.startswith(f"{name}:"):
                    words = line.split()
                    return int(words[1]) * (1024 if words[-1] == "kB" else 1)
    except OSError:
        pass
    return None
