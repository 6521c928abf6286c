"""The conformance kit on a queue in Python."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from conformance import queue_backend
from gdsfw.testing import *  # noqa: F403 - the tests
from gdsfw.testing import Subject


@pytest.fixture
def subject(tmp_path: Path) -> Iterator[Subject]:
    yield Subject("queue", directory=tmp_path, module=queue_backend)
    queue_backend.FILES.clear()
