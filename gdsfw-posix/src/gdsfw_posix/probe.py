"""Checks of the machine for this backend."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING

from gdsfw import memlock
from gdsfw.backend import Buffer, Check
from gdsfw.engine import native, native_uring
from gdsfw.engine.native import UringOptions
from gdsfw.storage import alignment, filesystems

if TYPE_CHECKING:
    from gdsfw.host import Host

URING = "io_uring"
MEMORY = "locked memory"
#: A usual default of distributions; a worker of depth 32 and 64 KiB blocks needs 2 MiB.
ENOUGH_LOCKED = 8 << 20


def checks(directory: Path, host: Host) -> list[Check]:
    """File system and direct I/O below `directory`, io_uring and the memory it may lock.

    A recorded tree has no files to try: of it only io_uring's switch is judged.
    """
    if not host.live:
        return _uring_switch(host)
    return [*_directory(directory), _uring(), _locked_memory()]


def _directory(directory: Path) -> list[Check]:
    try:
        fd = os.open(directory, os.O_PATH | os.O_CLOEXEC)
    except OSError as error:
        return [Check("directory", "fail", f"{directory}: {error.strerror}", needed="a directory that exists")]
    try:
        return [_filesystem(fd, directory), _direct(fd)]
    finally:
        os.close(fd)


def _filesystem(fd: int, directory: Path) -> Check:
    mount = filesystems.mount_of(directory)
    seen = f"{filesystems.kind(fd)} on {mount.point}" if mount else filesystems.kind(fd)
    return Check("file system", "ok", seen, verify=f"findmnt -T {directory}")


def _direct(fd: int) -> Check:
    filesystem = filesystems.kind(fd)
    if filesystem in filesystems.RAM_BACKED:
        return Check(
            "direct I/O",
            "fail",
            f"{filesystem} is RAM-backed: the direct flag has no effect",
            needed="a file system on a device",
            blocks_direct=True,
        )
    needs = alignment.file_alignment(fd)
    return Check("direct I/O", "ok", f"multiples of {needs.offset} bytes, from the {needs.source}")


def _uring_switch(host: Host) -> list[Check]:
    setting = host.read(str(native_uring.SETTING))
    if setting is None:
        return []
    if setting == "0":
        return [Check(URING, "ok", f"{native_uring.SETTING} is 0")]
    refusal = native_uring.explain(native_uring.SETUP, errno.EPERM, UringOptions(), 0, root=host.root)
    return [_refused(refusal.message, refusal.hint)]


def _uring() -> Check:
    usable, reason = native.available()
    if not usable:
        return Check(URING, "unknown", reason, meaning="io_path io_uring needs the C engine")
    refusal = native_uring.try_uring(UringOptions(), Buffer(0, 0), [], 1)
    if refusal is None:
        return Check(URING, "ok", "a queue opens")
    return _refused(refusal.message, refusal.hint)


def _refused(seen: str, fix: str) -> Check:
    meaning = "io_path auto uses psync, which keeps one I/O in flight for each worker"
    return Check(URING, "warn", seen, meaning=meaning, fix=fix, verify=f"cat {native_uring.SETTING}")


def _locked_memory() -> Check:
    limit = memlock.limit()
    if limit is None:
        return Check(MEMORY, "ok", "no limit")
    return Check(
        MEMORY,
        "ok" if limit >= ENOUGH_LOCKED else "warn",
        f"at most {limit} bytes",
        needed="the buffers of all workers, to be registered with io_uring: numjobs x iodepth x block_size",
        meaning="buffers above the limit stay unregistered, which costs a little CPU for each I/O",
        verify="ulimit -l",
        fix="raise it (ulimit -l, LimitMEMLOCK=), or set register_buffers: none",
    )
