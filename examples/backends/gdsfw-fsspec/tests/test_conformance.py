"""gdsfw's conformance kit, run on the two kinds of file systems that can be written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest
from gdsfw.testing import *  # noqa: F403 - the tests
from gdsfw.testing import Subject


@pytest.fixture(params=["memory", "file"])
def subject(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Subject]:
    """The installed backend, with no files."""
    base = "memory://gdsfw" if request.param == "memory" else (tmp_path / "base").as_uri()
    yield Subject("fsspec", directory=tmp_path, options={"base": base})
    memory = fsspec.filesystem("memory")
    if memory.exists("/gdsfw"):
        memory.rm("/gdsfw", recursive=True)
