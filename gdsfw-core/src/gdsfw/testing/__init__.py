"""The conformance kit: what every backend's own test suite runs. Needs pytest.

    # tests/test_conformance.py of a backend
    import pytest
    from gdsfw.testing import *  # the tests
    from gdsfw.testing import Subject

    @pytest.fixture
    def subject(tmp_path):
        return Subject("mine", directory=tmp_path)

All backends collect the same tests. A test is skipped only for a capability that the backend does not declare
(BackendInfo.capabilities, io_paths, memory), and the reason names it.
"""

from gdsfw.testing.conformance import (
    TestErrors,
    TestFiles,
    TestHooks,
    TestIntegrity,
    TestLeaks,
    TestLifecycle,
    TestLoops,
    TestQueues,
)
from gdsfw.testing.subject import Rig, Subject

__all__ = [
    "Rig",
    "Subject",
    "TestErrors",
    "TestFiles",
    "TestHooks",
    "TestIntegrity",
    "TestLeaks",
    "TestLifecycle",
    "TestLoops",
    "TestQueues",
]
