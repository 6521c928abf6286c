"""The machine's own checks: volume, direct I/O, udev, limits, io_uring, and what kind of machine it is."""

from __future__ import annotations

import os
import resource
import tempfile
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from gdsfw import memlock
from gdsfw.backend import Check
from gdsfw.doctor.volume import volume_of
from gdsfw.storage.filesystems import RAM_BACKED

if TYPE_CHECKING:
    from gdsfw.host import Host

#: Enough for thousands of files with two descriptors each.
_ENOUGH_FILES = 4096
_ENOUGH_LOCKED = 8 << 20
_URING_SETTING = "/proc/sys/kernel/io_uring_disabled"


def file_system(host: Host, directory: str) -> Check:
    """File system and its mount options."""
    mount = volume_of(host, directory).mount
    if mount is None:
        return Check("file system", "unknown", f"no mount of {directory} is listed", id="volume.filesystem")
    seen = f"{mount.filesystem} on {mount.point} ({','.join(mount.options)})"
    verify = f"findmnt -T {directory}"
    if mount.filesystem in RAM_BACKED:
        return Check(
            "file system", "fail", f"{mount.filesystem} is RAM-backed: the direct flag has no effect",
            "a file system on a device", "I/O there never reaches a device", verify, "choose a directory on a device",
            blocks_direct=True, id="volume.filesystem", rank=60,
        )  # fmt: skip
    if "data=journal" in mount.options:
        return Check(
            "file system", "fail", seen, "data=ordered",
            "with data=journal direct I/O goes through the page cache", verify,
            f"unmount {mount.point} and mount it with data=ordered", True, "volume.filesystem", 61,
        )  # fmt: skip
    return Check("file system", "ok", seen, verify=verify, id="volume.filesystem")


def block_stack(host: Host, directory: str) -> Check:
    """What lies between the mount and the hardware."""
    volume = volume_of(host, directory)
    verify = "lsblk --inverse" if volume.mount is None else f"lsblk --inverse {volume.mount.source}"
    if not volume.layers:
        seen = "no block device below it" if volume.mount is not None else "the mount is not known"
        return Check("block devices", "unknown", seen, verify=verify, id="volume.block_stack")
    where = f"; PCI {', '.join(volume.pci)}" if volume.pci else ""
    return Check("block devices", "ok", volume.describe() + where, verify=verify, id="volume.block_stack")


def udev(host: Host, directory: str) -> Check:
    """The volume's record in udev's database, which file libraries of vendors read."""
    mount = volume_of(host, directory).mount
    if mount is None or mount.device.startswith("0:"):
        return Check("udev record", "ok", "not needed: no block device is mounted there", id="volume.udev")
    place = f"/run/udev/data/b{mount.device}"
    text = host.read(place)
    ok = text is not None and "E:ID_FS_USAGE=" in text and "E:ID_FS_TYPE=" in text
    if ok:
        return Check("udev record", "ok", f"{place} names file system and usage", id="volume.udev")
    folder = "/run/udev is absent" if not host.exists("/run/udev") else f"{place} is absent or has no ID_FS_USAGE"
    return Check(
        "udev record", "warn", f"{folder} ({mount.point} is {mount.device})",
        f"ID_FS_USAGE and ID_FS_TYPE in {place}",
        "a file library that asks udev refuses to register files of this volume",
        f"udevadm info --query=property --name=/dev/block/{mount.device}",
        "in a container: bind-mount the host's /run/udev read-only; on a host: start udevd, then udevadm trigger",
        id="volume.udev",
    )  # fmt: skip


def direct_io(host: Host, directory: str) -> Check:
    """Direct I/O by the kernel's statement, the file system and a test transfer on a file without a name."""
    from gdsfw.storage.direct import decide

    if not host.live:
        return Check("direct I/O", "unknown", "a recorded tree has no files to try", id="volume.direct")
    try:
        with tempfile.TemporaryFile(dir=directory) as file:
            file.write(bytes(65536))
            file.flush()
            os.fsync(file.fileno())
            fd = os.open(f"/proc/self/fd/{file.fileno()}", os.O_RDWR | os.O_DIRECT | os.O_CLOEXEC)
            try:
                decision = decide(fd)
            finally:
                os.close(fd)
    except PermissionError as error:
        return Check(
            "direct I/O", "unknown", f"no file can be made in {directory}: {error.strerror}", id="volume.direct"
        )
    except OSError as error:
        return _not_direct(f"opening with O_DIRECT failed: {error.strerror}")
    if decision.direct:
        return Check("direct I/O", "ok", decision.reason, id="volume.direct")
    return _not_direct(decision.reason)


def _not_direct(seen: str) -> Check:
    return Check(
        "direct I/O", "fail", seen, "a test read that bypasses the page cache",
        "without direct I/O the bytes pass through the page cache", "findmnt -T DIR",
        "choose a directory on ext4 or xfs on a local device", True, "volume.direct", 62,
    )  # fmt: skip


def _limit(host: Host, name: str) -> int | None:
    """A soft limit by its name in /proc/self/limits, RLIM_INFINITY for none; None where a recording lacks the file."""
    for line in (host.read("/proc/self/limits") or "").splitlines():
        if line.startswith(name):
            value = line[len(name) :].split()[0]
            return resource.RLIM_INFINITY if value == "unlimited" else int(value)
    return None


def _limited(check: Check, limit: int | None, enough: int) -> Check:
    """`check`, which warns, as it is for `limit`."""
    if limit is None:
        return replace(check, state="unknown", seen="not recorded")
    if limit == resource.RLIM_INFINITY or limit >= enough:
        seen = "no limit" if limit == resource.RLIM_INFINITY else str(limit)
        return Check(check.name, "ok", seen, verify=check.verify, id=check.id)
    return replace(check, seen=str(limit))


def locked_memory(host: Host, directory: str) -> Check:
    """The limit on locked memory, in bytes."""
    limit = _limit(host, "Max locked memory")
    if host.live and memlock.limit() is None:
        limit = resource.RLIM_INFINITY  # a capability may lift what the table says
    check = Check(
        "locked memory", "warn", "", "at least numjobs x iodepth x block_size bytes",
        "buffers above it cannot be registered", "ulimit -l",
        "raise it (ulimit -l, LimitMEMLOCK=, docker run --ulimit memlock=-1), or set register_buffers: none",
        id="limits.memlock",
    )  # fmt: skip
    return _limited(check, limit, _ENOUGH_LOCKED)


def open_files(host: Host, directory: str) -> Check:
    """The limit on open files."""
    check = Check(
        "open files", "warn", "", str(_ENOUGH_FILES),
        "each file of each worker needs up to four descriptors", "ulimit -n", "ulimit -n 65536", id="limits.nofile",
    )  # fmt: skip
    return _limited(check, _limit(host, "Max open files"), _ENOUGH_FILES)


def huge_pages(host: Host, directory: str) -> Check:
    """Huge pages set aside."""
    lines = dict(line.partition(":")[::2] for line in (host.read("/proc/meminfo") or "").splitlines())
    free, total = lines.get("HugePages_Free", "").strip(), lines.get("HugePages_Total", "").strip()
    if not total:
        return Check("huge pages", "unknown", "/proc/meminfo does not say", id="limits.hugepages")
    size = lines.get("Hugepagesize", "?").strip()
    return Check(
        "huge pages", "ok", f"{free} of {total} free, {size} each", "only for memory: hugepage",
        "", "grep Huge /proc/meminfo", "sysctl vm.nr_hugepages=N", id="limits.hugepages",
    )  # fmt: skip


def io_uring(host: Host, directory: str) -> Check:
    """Whether io_uring may be used: switched off, blocked by a sandbox and missing are told apart."""
    setting = host.read(_URING_SETTING)
    verify = f"cat {_URING_SETTING}"
    if not host.live:
        if setting in ("1", "2"):
            return _no_uring(f"{_URING_SETTING} is {setting}", "sysctl kernel.io_uring_disabled=0", verify)
        state = "unknown" if setting is None else "ok"
        seen = "not recorded" if setting is None else f"{_URING_SETTING} is {setting}"
        return Check("io_uring", state, seen, verify=verify, id="kernel.io_uring")  # type: ignore[arg-type]
    from gdsfw.backend import Buffer
    from gdsfw.engine import native, native_uring

    usable, reason = native.available()
    if not usable:
        return Check("io_uring", "unknown", reason, id="kernel.io_uring")
    refusal = native_uring.try_uring(native_uring.UringOptions(), Buffer(0, 0), [], 1)
    if refusal is None:
        return Check("io_uring", "ok", "a queue opens", verify=verify, id="kernel.io_uring")
    return _no_uring(refusal.message, refusal.hint, verify)


def _no_uring(seen: str, fix: str, verify: str) -> Check:
    meaning = "host memory I/O keeps one request in flight for each worker"
    return Check("io_uring", "warn", seen, "allowed", meaning, verify, fix, id="kernel.io_uring")


def machine_kind(host: Host, directory: str) -> Check:
    """Hints of a container, a virtual machine or WSL, where devices are often not what they seem."""
    release = (host.read("/proc/sys/kernel/osrelease") or host.read("/proc/version") or "").lower()
    hints = []
    if "microsoft" in release:
        hints.append("WSL")
    if (
        host.exists("/.dockerenv")
        or host.exists("/run/.containerenv")
        or any(word in (host.read("/proc/1/cgroup") or "") for word in ("docker", "kubepods", "containerd", "lxc"))
    ):
        hints.append("container")
    flags = (host.read("/proc/cpuinfo") or "").partition("flags")[2].partition("\n")[0].split()
    if "hypervisor" in flags and "WSL" not in hints:
        hints.append("virtual machine")
    if "WSL" in hints:
        return Check(
            "machine", "fail", "WSL", "Linux on hardware, or a virtual machine with devices passed through",
            "WSL has no kernel driver of the GPU, so no device can reach its memory", "cat /proc/version",
            "run on Linux itself; staging works here", True, "machine.kind", 5,
        )  # fmt: skip
    if not hints:
        return Check("machine", "ok", "no container, no virtual machine", id="machine.kind")
    return Check(
        "machine", "ok", " in a ".join(hints), "",
        "the host decides which devices and files of /run/udev are seen here", "systemd-detect-virt", id="machine.kind",
    )  # fmt: skip


#: In the order in which they are shown.
CHECKS: tuple[Callable[[Host, str], Check], ...] = (
    machine_kind, file_system, block_stack, direct_io, udev, locked_memory, open_files, huge_pages, io_uring,
)  # fmt: skip
