"""Whether a job's I/O fits direct I/O on the file that it opened, or would be a mixture of direct and buffered."""

from __future__ import annotations

import mmap
from math import gcd
from typing import TYPE_CHECKING

from gdsfw.workload.check import aligned_values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gdsfw.backend import FileHandle
    from gdsfw.workload.model import Job
    from gdsfw.workload.plan_model import FilePlan


def misfit(job: Job, ranges: Sequence[FilePlan], handle: FileHandle, *, host_memory: bool) -> str:
    """Why direct I/O does not fit a job's `ranges` of one file; "" when it does.

    Blocks that the alignment does not allow go through the buffered descriptor, as the last bytes of a file do. Where
    that is most of them the result would call buffered I/O direct. And a buffered write that shares a page with direct
    ones can write old bytes over theirs: the kernel fails the next flush with EIO and logs "Page cache invalidation
    failure on direct I/O. Possible data corruption due to collision with buffered I/O!" (Linux 6.18, ext4).

    Args:
        host_memory: the bytes go to host memory, by calls that take aligned blocks only. Libraries for other memory
            have their own ways with the others.
    """
    step = gcd(*(value for file in ranges for _, _, value in aligned_values(job, file)))
    end = gcd(*(file.start + file.length if file.length > 0 else handle.target.nbytes for file in ranges))
    needed = handle.alignment.offset
    if step % needed and (job.writes or host_memory):
        return f"blocks in steps of {step} bytes are no multiples of the {needed} that direct I/O takes"
    if job.writes and end % needed and step % mmap.PAGESIZE:
        return (
            f"the last bytes of a range are no multiple of {needed} and would be written through the page cache, "
            f"in one page ({mmap.PAGESIZE} bytes) with blocks that are not, because blocks come in steps of {step}"
        )
    return ""
