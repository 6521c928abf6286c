from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.running import Gdsfw


@pytest.fixture
def gdsfw(tmp_path: Path) -> Iterator[Gdsfw]:
    driver = Gdsfw(tmp_path)
    yield driver
    driver.close()
