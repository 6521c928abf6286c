"""Who uses a block device: its partitions, mounts, swap and holders, as /sys and /proc tell it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from gdsfw.storage.filesystems import mounts


@dataclass(frozen=True)
class DeviceUse:
    """What stands on a block device. Names are those of /dev; mounts are (device, mount point)."""

    name: str
    partitions: tuple[str, ...]
    mounts: tuple[tuple[str, str], ...]
    swap: tuple[str, ...]
    holders: tuple[str, ...]

    def describe(self) -> str:
        """One line for a refusal."""
        parts = [
            f"partitions {', '.join(self.partitions)}" if self.partitions else "no partitions",
            "mounted: " + ", ".join(f"{name} on {point}" for name, point in self.mounts)
            if self.mounts
            else "not mounted",
        ]
        if self.swap:
            parts.append(f"swap on {', '.join(self.swap)}")
        if self.holders:
            parts.append(f"held by {', '.join(self.holders)}")
        return f"/dev/{self.name}: {'; '.join(parts)}"


def device_use(rdev: int) -> DeviceUse:
    """What stands on the block device with this st_rdev and on its partitions."""
    folder = Path(f"/sys/dev/block/{os.major(rdev)}:{os.minor(rdev)}").resolve()
    parts = sorted(child.name for child in _children(folder) if (child / "partition").exists())
    names = [folder.name, *parts]
    numbers = {_read(place / "dev"): place.name for place in [folder, *(folder / part for part in parts)]}
    mounted = [(numbers[mount.device], mount.point) for mount in mounts() if mount.device in numbers]
    holders = [holder.name for name in ("", *parts) for holder in _children(folder / name / "holders")]
    return DeviceUse(folder.name, tuple(parts), tuple(mounted), tuple(_swaps(names)), tuple(holders))


def loop_behind(device: int, inode: int) -> str | None:
    """The attached loop device whose backing file is this one, or None."""
    for place in Path("/sys/block").glob("loop*"):
        backing = _read(place / "loop" / "backing_file")
        try:
            status = os.stat(backing) if backing else None  # noqa: PTH116
        except OSError:
            continue
        if status is not None and (status.st_dev, status.st_ino) == (device, inode):
            return f"/dev/{place.name}"
    return None


def _swaps(names: list[str]) -> list[str]:
    lines = (_read(Path("/proc/swaps")) or "").splitlines()[1:]
    used = {os.path.realpath(line.split()[0]).rpartition("/")[2] for line in lines if line.strip()}
    return [name for name in names if name in used]


def _children(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _read(path: Path) -> str | None:
    try:
        return path.read_text(errors="surrogateescape").strip()
    except OSError:
        return None
