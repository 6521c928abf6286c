"""The words of BackendInfo.capabilities: what each promises, and what the kit tries where it is declared."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from gdsfw.backend import BackendInfo

#: The same words and meanings stand in docs/reference/capabilities.md.
CAPABILITIES = {
    "data": "What was written is what is read: the backend moves bytes. Without it only its speed can be looked at.",
    "direct": "Files can be opened past the page cache (`direct: true`) where the file system has that.",
    "flush": "Its paths have `flush`, and gdsfw_sync takes `fsync` and `fdatasync`; `fsync:` and `end_fsync:` work.",
    "shared_files": "One open file can be used by several workers at a time.",
    "sparse": "Bytes below the end of a file that were never written read as zeros, and take no space.",
    "devices": "gdsfw_devices lists what workers can be put on; `devices:` and device memory mean something.",
}


def need(info: BackendInfo, capability: str) -> None:
    """Skip the test unless the backend declares the capability.

    Args:
        capability: a key of CAPABILITIES.
    """
    if capability not in CAPABILITIES:
        raise KeyError(f"{capability!r} is no capability; there are: {', '.join(CAPABILITIES)}")
    if capability not in info.capabilities:
        pytest.skip(f"backend {info.name} does not declare the capability {capability!r}")


def need_memory(info: BackendInfo, memory: str) -> None:
    """Skip the test unless the backend declares this kind of memory."""
    if memory not in info.memory:
        pytest.skip(f"backend {info.name} does not declare memory {memory!r}")
