"""The conformance kit on noop, which moves nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from gdsfw.testing import *  # noqa: F403 - the tests
from gdsfw.testing import Subject


@pytest.fixture
def subject(tmp_path: Path) -> Subject:
    return Subject("noop", directory=tmp_path)
