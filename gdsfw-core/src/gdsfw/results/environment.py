"""Where a run took place: facts from /proc and /sys, no other program is started."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gdsfw.storage.filesystems import mount_of


def host_facts(directories: Iterable[str]) -> dict[str, Any]:
    """Machine and file systems below `directories`."""
    return {
        "hostname": platform.node(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpu": _cpu_model(),
        "cpus": os.cpu_count(),
        "memory_bytes": _memory(),
        "filesystems": [_filesystem(directory) for directory in sorted(set(directories))],
    }


def _cpu_model() -> str | None:
    for line in _lines("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return None


def _memory() -> int | None:
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1024
    return None


def _filesystem(directory: str) -> dict[str, Any]:
    mount = mount_of(directory)
    if mount is None:
        return {"directory": directory}
    return {
        "directory": directory,
        "filesystem": mount.filesystem,
        "mount_point": mount.point,
        "source": mount.source,
        "options": list(mount.options),
        "block_device": _block_device(mount.device),
    }


def _block_device(number: str) -> dict[str, Any] | None:
    folder = Path("/sys/dev/block") / number
    if not folder.exists():
        return None
    real = folder.resolve()
    queue = real / "queue" if (real / "queue").exists() else real.parent / "queue"
    facts: dict[str, Any] = {"name": real.name}
    for key in ("rotational", "logical_block_size", "physical_block_size", "scheduler"):
        text = next(iter(_lines(queue / key)), None)
        if text is not None:
            facts[key] = int(text) if text.isdigit() else text
    return facts


def _lines(path: str | Path) -> list[str]:
    try:
        return Path(path).read_text(errors="replace").splitlines()
    except OSError:
        return []
