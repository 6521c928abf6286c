"""Who uses a block device: its partitions, mounts, swap and holders, as /sys and /proc tell it; and what is on it."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
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

    @property
    def in_use(self) -> bool:
        """Whether somebody would lose what is on it while using it: no permission makes writing there right."""
        return bool(self.mounts or self.swap or self.holders)

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


def signatures(place: str) -> tuple[str, ...] | None:
    """What libblkid knows of the content (`ext4`, `gpt partition table`), outermost first; None if nobody can tell.

    Args:
        place: a path of the device, which is opened for reading only.
    """
    tool = shutil.which("blkid", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if tool is None:
        return None
    command = [tool, "--probe", "--output", "export", place]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode not in (0, 2):  # 2: nothing is known of it
        return None
    found = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    names = [f"{found['PTTYPE']} partition table"] if "PTTYPE" in found else []
    return (*names, found["TYPE"]) if "TYPE" in found else tuple(names)


#: Devices that this process holds alone: the descriptor opened with O_EXCL, and how many files rely on it.
_claims: dict[int, tuple[int, int]] = {}
_claims_lock = threading.Lock()


def claim(rdev: int, place: str) -> None:
    """Hold a device for this process alone until as many `release`s as claims: the kernel mounts no part of it.

    Raises:
        OSError: EBUSY when somebody else holds it or a part of it.
    """
    with _claims_lock:
        fd, count = _claims.get(rdev, (-1, 0))
        if not count:
            fd = os.open(place, os.O_RDWR | os.O_EXCL | os.O_CLOEXEC)
        _claims[rdev] = (fd, count + 1)


def release(rdev: int) -> None:
    """Undo one claim; a device that is not claimed is left alone."""
    with _claims_lock:
        fd, count = _claims.pop(rdev, (-1, 0))
        if count > 1:
            _claims[rdev] = (fd, count - 1)
        elif count:
            os.close(fd)


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
