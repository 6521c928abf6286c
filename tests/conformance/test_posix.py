"""The conformance kit on gdsfw-posix."""

from __future__ import annotations

from pathlib import Path

import pytest
from gdsfw import host_memory
from gdsfw.engine import native
from gdsfw.testing import *  # noqa: F403 - the tests
from gdsfw.testing import Subject


@pytest.fixture(scope="module")
def io_paths() -> list[str]:
    """Without io_uring where the engine or the kernel has none."""
    if not native.available()[0]:
        return ["psync"]
    buffer = host_memory.allocate(4096)
    refusal = native.try_uring(native.UringOptions(), buffer, [], 1)
    host_memory.free(buffer)
    return ["psync"] if refusal is not None else ["psync", "io_uring"]


@pytest.fixture
def subject(tmp_path: Path, io_paths: list[str]) -> Subject:
    return Subject("posix", directory=tmp_path, io_paths=io_paths)
