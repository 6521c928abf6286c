"""The conformance kit on a path that is a table and a Python object."""

from __future__ import annotations

from pathlib import Path

import pytest
from conformance import pair_backend
from gdsfw.engine import native
from gdsfw.testing import *  # noqa: F403 - the tests
from gdsfw.testing import Subject

if not native.available()[0]:
    pytest.skip(native.available()[1], allow_module_level=True)


@pytest.fixture
def subject(tmp_path: Path) -> Subject:
    return Subject("pair", directory=tmp_path, module=pair_backend)
