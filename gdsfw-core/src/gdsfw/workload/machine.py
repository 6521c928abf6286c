"""What a plan asks of the machine: free space, free memory, CPUs. Tests pass one that answers otherwise."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gdsfw.backend import Alignment


class Machine:
    """This machine. `root` holds proc and sys, so that a recorded tree can stand in for them."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root

    def free_space(self, path: Path) -> tuple[int, int]:
        """(device number, bytes free to this user) of the file system that holds or would hold `path`."""
        from gdsfw.storage.filesystems import free_space

        existing = _existing(path)
        return existing.stat().st_dev, free_space(existing)

    def alignment(self, path: Path) -> Alignment:
        """What direct I/O on the file at `path`, or on a new one there, needs."""
        from gdsfw.storage.alignment import file_alignment

        return file_alignment(_existing(path))

    def free_memory(self) -> int | None:
        """Bytes of memory that can be had without swapping: MemAvailable, or less in a control group; None: unknown."""
        limits = [limit for limit in (self._available(), self._group_headroom()) if limit is not None]
        return min(limits, default=None)

    def lockable_memory(self) -> int | None:
        """Bytes that this user may lock; None: no limit."""
        from gdsfw import memlock

        return memlock.limit()

    def cpus(self) -> tuple[int, ...]:
        """CPUs that this process may run on."""
        if hasattr(os, "sched_getaffinity"):
            return tuple(sorted(os.sched_getaffinity(0)))
        return tuple(range(os.cpu_count() or 1))

    def numa_nodes(self) -> dict[int, tuple[int, ...]]:
        """CPUs of each NUMA node that this process may run on; empty where the kernel does not say."""
        allowed = set(self.cpus())
        nodes = {}
        for folder in sorted((self._root / "sys/devices/system/node").glob("node[0-9]*")):
            text = _read(folder / "cpulist")
            if text is not None:
                nodes[int(folder.name[4:])] = tuple(cpu for cpu in _cpu_list(text) if cpu in allowed)
        return nodes

    def _available(self) -> int | None:
        for line in (_read(self._root / "proc/meminfo") or "").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
        return None

    def _group_headroom(self) -> int | None:
        """Bytes left in the tightest control group (version 2) that this process is in."""
        line = next(
            (line for line in (_read(self._root / "proc/self/cgroup") or "").splitlines() if line.startswith("0::")),
            None,
        )
        if line is None:
            return None
        top = self._root / "sys/fs/cgroup"
        group = top / line[3:].lstrip("/")
        left = []
        while group != top.parent:
            limit, used = _read(group / "memory.max"), _read(group / "memory.current")
            if limit and used and limit.strip().isdigit():
                left.append(max(0, int(limit) - int(used) + _reclaimable(group)))
            group = group.parent
        return min(left, default=None)


def _existing(path: Path) -> Path:
    """`path`, or the nearest folder above it that is there."""
    return path if path.exists() else next((up for up in path.absolute().parents if up.exists()), Path("/"))


def _reclaimable(group: Path) -> int:
    """Bytes of the group's page cache that the kernel gives up first."""
    for line in (_read(group / "memory.stat") or "").splitlines():
        if line.startswith("inactive_file "):
            return int(line.split()[1])
    return 0


def _read(path: Path) -> str | None:
    try:
        return path.read_text()
    except OSError:
        return None


def _cpu_list(text: str) -> list[int]:
    """CPU numbers of the kernel's list format, `0-3,8`."""
    cpus: list[int] = []
    for part in text.strip().split(","):
        low, _, high = part.partition("-")
        if low:
            cpus += range(int(low), int(high or low) + 1)
    return cpus
