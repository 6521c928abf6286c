"""gdsfw's conformance kit, run on this backend."""

from collections.abc import Iterator
from pathlib import Path

import gdsfw_ramdisk
import pytest
from gdsfw.testing import *  # noqa: F403 - the tests
from gdsfw.testing import Subject


@pytest.fixture
def subject(tmp_path: Path) -> Iterator[Subject]:
    """The installed backend, with no files."""
    yield Subject("ramdisk", directory=tmp_path)
    gdsfw_ramdisk.FILES.clear()
