"""Memory of one worker: one buffer of iodepth slots."""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gdsfw.workload.model import Job


def round_up(nbytes: int, unit: int) -> int:
    """The least multiple of `unit` that is at least `nbytes`."""
    return -(-nbytes // unit) * unit


def buffer_of(job: Job, iodepth: int) -> tuple[int, int]:
    """(stride of a slot, size of the whole buffer) in bytes.

    A slot holds the largest block, rounded up to pages, which every alignment of direct I/O divides or equals.
    """
    stride = round_up(job.largest_block, mmap.PAGESIZE)
    return stride, job.buffer_offset + iodepth * stride
