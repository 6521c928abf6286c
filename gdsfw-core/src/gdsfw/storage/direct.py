"""Whether I/O on a file really bypasses the page cache. An open with O_DIRECT that succeeds proves nothing."""

from __future__ import annotations

import errno
import mmap
import os
import stat
from dataclasses import dataclass, field

from gdsfw.backend import Alignment
from gdsfw.storage.alignment import file_alignment
from gdsfw.storage.filesystems import RAM_BACKED, journals_data, kind, mount_of
from gdsfw.storage.statx import dioalign


@dataclass(frozen=True)
class DirectDecision:
    """Whether direct I/O is in force on a descriptor, why, and what it needs."""

    direct: bool
    reason: str
    alignment: Alignment = field(default_factory=Alignment)


def decide(fd: int) -> DirectDecision:
    """Judge a descriptor that was opened with O_DIRECT: file system, stated alignment, one test read.

    An empty file has nothing to read: there the file system and the kernel's statement decide.
    """
    filesystem = kind(fd)
    if filesystem in RAM_BACKED:
        return DirectDecision(False, f"{filesystem} is RAM-backed: the direct flag has no effect")
    if journals_data(mount_of(f"/proc/self/fd/{fd}")):
        reason = f"{filesystem} is mounted with data=journal: direct I/O goes through the page cache"
        return DirectDecision(False, reason)
    if dioalign(fd) == (0, 0):
        return DirectDecision(False, f"the kernel says that this file on {filesystem} takes no direct I/O")
    alignment = file_alignment(fd)
    refusal = _test_read(fd, alignment)
    if refusal:
        return DirectDecision(False, f"a direct test read on {filesystem} failed: {refusal}")
    needs = f"offsets and lengths in multiples of {alignment.offset}, from the {alignment.source}"
    return DirectDecision(True, f"direct I/O on {filesystem} ({needs})", alignment)


def _test_read(fd: int, alignment: Alignment) -> str:
    """Read one aligned piece; the error's text, or "" when it worked or there is nothing to read."""
    status = os.fstat(fd)
    length = max(alignment.offset, mmap.PAGESIZE)
    if stat.S_ISREG(status.st_mode) and status.st_size == 0:
        return ""
    with mmap.mmap(-1, length) as page:
        try:
            os.preadv(fd, [page], 0)
        except OSError as error:
            if error.errno == errno.EBADF:  # opened for writing only
                return ""
            return f"{errno.errorcode.get(error.errno or 0, str(error.errno))} ({error.strerror})"
    return ""
