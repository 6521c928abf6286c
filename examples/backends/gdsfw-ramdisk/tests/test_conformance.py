"""gdsfw's conformance kit, run on this backend."""

import gdsfw_ramdisk
import pytest
from gdsfw.testing import *  # noqa: F403 - the tests
from gdsfw.testing import Subject


@pytest.fixture
def subject(tmp_path):
    yield Subject("ramdisk", directory=tmp_path)
    gdsfw_ramdisk.FILES.clear()
