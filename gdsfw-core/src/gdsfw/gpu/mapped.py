"""The mapped path: blocks move between a file's registered pages and device memory, without the CPU."""

from __future__ import annotations

import ctypes as c
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gdsfw.backend import IOPath, Transport
from gdsfw.engine.native_library import engine
from gdsfw.engine.native_table import FLUSH_FN
from gdsfw.gpu import abi
from gdsfw.gpu.paths import PathParts, address, path_struct, path_table

if TYPE_CHECKING:
    from gdsfw.backend import Buffer, CacheState, FileHandle, Request
    from gdsfw.gpu.mapping import Maps

#: Launches in flight at most: the next is prepared while the device works on one, and two more give it slack.
LAUNCHES = 4


def launch_blocks(iodepth: int) -> int:
    """Blocks of one launch: half the depth, so that two launches are in flight."""
    return -(-iodepth // 2)


def make(files: Sequence[FileHandle], buffer: Buffer, request: Request, parts: PathParts) -> IOPath:
    """The path for these files; parts.maps are theirs."""
    path, _ = path_struct(files, parts)
    path.group_blocks = launch_blocks(request.iodepth)
    table = path_table(path, parts)
    table.flush = FLUSH_FN(address("gdsfw_gpu_map_flush"))
    table.queue = engine().queue("gdsfw_gpu_mapped_queue")
    how = "kernel below 128 KiB" if parts.kernels else f"copy engine, because there are {parts.kernels_missing}"
    return IOPath(
        "mapped",
        files,
        native=table,
        file_values=[item.address for item in parts.maps],
        iodepth=request.iodepth,
        iodepth_batch=path.group_blocks,
        registers=False,
        notes=[f"mapped: {how}; up to {path.group_blocks} blocks a launch; wait: {'spin' if parts.spin else 'block'}"],
        keep=[path, *parts.keep],
    )


def moves_nbytes(iodepth: int) -> int:
    """Pinned memory for the moves of all launches: two for each block, which may lie across two windows."""
    return LAUNCHES * 2 * launch_blocks(iodepth) * c.sizeof(abi.Move)


def transport(maps: Maps, before: float) -> Transport:
    """Mapped by construction; what was registered, what it cost, and what had to come from storage first.

    Args:
        maps: of the job, whose workers share them.
        before: seconds of registration before the first I/O.
    """
    reports = maps.reports()
    total = sum(report.registered_bytes for report in reports)
    cold = sum(report.cold_bytes for report in reports)
    seconds = maps.seconds()
    share = cold / total if total else 0.0
    cache: CacheState = "warm" if share <= 0.05 else "cold" if share >= 0.95 else "unknown"
    pinned = sum(report.most_pinned for report in reports)
    evidence = (
        f"pages of the file were registered with the device: {total} bytes in {seconds:.3f} s, at most {pinned} pinned",
        f"{cold} of them were not in memory before",
        "the device read or wrote them by DMA; the CPU never touched them",
    )
    details = {
        "registered_bytes": total,
        "registration_seconds": seconds,
        "cold_bytes": cold,
        "registrations": sum(report.registrations for report in reports),
        "most_pinned_bytes": pinned,
    }
    return Transport("mapped", cache, evidence, details, setup_seconds=before)
