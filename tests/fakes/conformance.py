"""Where the conformance kit of a GPU backend runs: on a device, or on a stand-in that the environment names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

#: Paths that work on any file system; pages of most cannot be registered for writing, as `mapped` would.
DISK_PATHS = ("sync", "batch", "stream", "staged")


def skip_without(standin: str, device: str) -> None:
    """Skip the module that calls unless the variable of a stand-in is set or the device's file is there."""
    if standin not in os.environ and not Path(device).exists():
        pytest.skip(f"there is no GPU here ({device})", allow_module_level=True)


def cycles() -> int:
    """Jobs over which nothing may leak: GDSFW_KIT_CYCLES, or 500 (on an H200 each takes most of a second)."""
    return int(os.environ.get("GDSFW_KIT_CYCLES", "500"))


@contextmanager
def folder(tmp_path: Path) -> Iterator[Path]:
    """Where files go: on the disk that GDSFW_GPU_DIRECTORY names, since file libraries refuse some file systems."""
    base = os.environ.get("GDSFW_GPU_DIRECTORY")
    if base is None:
        yield tmp_path
        return
    with TemporaryDirectory(dir=base, prefix="gdsfw-test-") as name:
        yield Path(name)
