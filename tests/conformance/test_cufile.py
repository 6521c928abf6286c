"""The conformance kit on gdsfw-cufile: on a GPU, or in the process that tests/gpu/test_conformance.py starts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.conformance import DISK_PATHS, cycles, folder, skip_without
from gdsfw.testing import *  # noqa: F403 - the tests
from gdsfw.testing import Subject

pytestmark = pytest.mark.gpu
skip_without("CUDA_STANDIN", "/proc/driver/nvidia/gpus")


@pytest.fixture
def subject(tmp_path: Path) -> Iterator[Subject]:
    with folder(tmp_path) as directory:
        yield Subject("cufile", directory=directory, device=0, io_paths=DISK_PATHS, cycles=cycles())
