"""File systems: which one a path lies on, how it is mounted, what kind it is."""

from __future__ import annotations

import ctypes
import mmap
import os
import stat
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

#: Magic numbers of <linux/magic.h> and the kernel's file system sources.
MAGIC_NAMES = {
    0xEF53: "ext4",
    0x58465342: "xfs",
    0x9123683E: "btrfs",
    0x01021994: "tmpfs",
    0x858458F6: "ramfs",
    0x958458F6: "hugetlbfs",
    0x794C7630: "overlayfs",
    0x6969: "nfs",
    0x2FC12FC1: "zfs",
    0x0BD00BD0: "lustre",
    0x47504653: "gpfs",
    0x65735546: "fuse",
    0xF2F52010: "f2fs",
    0x9FA0: "proc",
    0x62656572: "sysfs",
    0x64626720: "debugfs",
    0x74726163: "tracefs",
    0x27E0EB: "cgroup",
    0x63677270: "cgroup2",
    0x1CD1: "devpts",
    0x73636673: "securityfs",
    0xCAFE4A11: "bpf",
    0x6E736673: "nsfs",
    0x50495045: "pipefs",
}
RAM_BACKED = frozenset({"tmpfs", "ramfs", "hugetlbfs"})
#: No place for data: a write there changes the kernel, not a file.
SPECIAL = frozenset(
    {"proc", "sysfs", "debugfs", "tracefs", "cgroup", "cgroup2", "devpts", "securityfs", "bpf", "nsfs", "pipefs"}
)


@dataclass(frozen=True)
class Mount:
    """One line of /proc/self/mountinfo."""

    point: str
    filesystem: str
    source: str
    options: tuple[str, ...]
    device: str  # major:minor


class _StatFS(ctypes.Structure):
    # struct statfs of 64-bit Linux begins with two longs; the padding covers the rest of every architecture's.
    _fields_ = (("f_type", ctypes.c_long), ("f_bsize", ctypes.c_long), ("rest", ctypes.c_byte * 240))


@lru_cache(maxsize=1)
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.fstatfs.argtypes = (ctypes.c_int, ctypes.POINTER(_StatFS))
    libc.fstatfs.restype = ctypes.c_int
    return libc


def kind(fd: int) -> str:
    """Name of the file system that an open descriptor (O_PATH is enough) lies on; `0x...` for one not in the table.

    `block device` for one: what its name lies on says nothing of it.
    """
    if stat.S_ISBLK(os.fstat(fd).st_mode):
        return "block device"
    answer = _StatFS()
    if _libc().fstatfs(fd, ctypes.byref(answer)):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    magic = answer.f_type & 0xFFFFFFFF
    return MAGIC_NAMES.get(magic, hex(magic))


def granule(fd: int) -> int:
    """Bytes of which a file's mapping and length must be multiples: the huge page on hugetlbfs, elsewhere the page."""
    answer = _StatFS()
    huge = kind(fd) == "hugetlbfs" and not _libc().fstatfs(fd, ctypes.byref(answer))
    return int(answer.f_bsize) if huge else mmap.PAGESIZE


def free_space(path: Path) -> int:
    """Bytes free to this user on the file system of `path`, which is there.

    A hugetlbfs that was mounted without a size tells of no blocks at all: what is free is the kernel's pool.
    """
    usage = os.statvfs(path)
    if usage.f_blocks:
        return usage.f_bavail * usage.f_frsize
    pool = Path(f"/sys/kernel/mm/hugepages/hugepages-{usage.f_bsize // 1024}kB/free_hugepages")
    try:
        return int(pool.read_text(encoding="ascii")) * usage.f_bsize
    except (OSError, ValueError):
        return 0


def mounts(text: str | None = None) -> list[Mount]:
    """All mounts of this process in the kernel's order (a later one hides an earlier one at the same point)."""
    if text is None:
        text = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    return [_mount(line.split()) for line in text.splitlines() if line.strip()]


def _mount(fields: list[str]) -> Mount:
    tail = fields.index("-")
    options = dict.fromkeys([*fields[5].split(","), *fields[tail + 3].split(",")])
    return Mount(_unescape(fields[4]), fields[tail + 1], _unescape(fields[tail + 2]), tuple(options), fields[2])


def _unescape(text: str) -> str:
    """The kernel writes blank, tab, newline and backslash as three octal digits (proc(5))."""
    for code in ("040", "011", "012", "134"):
        text = text.replace("\\" + code, chr(int(code, 8)))
    return text


def mount_of(path: str | Path) -> Mount | None:
    """The mount a path lies on; None when it cannot be told."""
    try:
        real = os.path.realpath(path)
        found = [m for m in mounts() if m.point == "/" or real == m.point or real.startswith(m.point + "/")]
    except OSError:
        return None
    longest = max((len(m.point) for m in found), default=0)
    return next((m for m in reversed(found) if len(m.point) == longest), None)


def journals_data(mount: Mount | None) -> bool:
    """Whether file data goes through the journal (ext4 data=journal), which O_DIRECT does not bypass."""
    return mount is not None and "data=journal" in mount.options
