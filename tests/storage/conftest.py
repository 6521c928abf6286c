from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from gdsfw.backend import Target


@pytest.fixture
def target(tmp_path: Path) -> Callable[..., Target]:
    """A target below the test's folder."""

    def make(name: str = "file", nbytes: int = 4096, **changes: object) -> Target:
        return Target(str(tmp_path / name), file_id=7, nbytes=nbytes, job="test", **changes)  # type: ignore[arg-type]

    return make


@pytest.fixture
def unchanged() -> Callable[[Path], Callable[[], None]]:
    """Remember a file; the function that comes back asserts that content, mode, owner and identity are the same."""

    def remember(path: Path) -> Callable[[], None]:
        before = _state(path)

        def check() -> None:
            assert _state(path) == before

        return check

    return remember


def _state(path: Path) -> tuple[object, ...]:
    status = os.lstat(path)
    content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None
    return (status.st_mode, status.st_uid, status.st_ino, status.st_nlink, status.st_size, status.st_mtime_ns, content)
