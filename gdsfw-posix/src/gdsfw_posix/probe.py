"""Checks of the machine for this backend."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from gdsfw.backend import Check
from gdsfw.storage import alignment, filesystems

if TYPE_CHECKING:
    from gdsfw.host import Host


def checks(directory: Path, host: Host) -> list[Check]:
    """File system and direct I/O below `directory`; nothing for a recorded tree, which has no files to try."""
    if not host.live:
        return []
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
