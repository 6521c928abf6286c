"""The conformance kit: what every backend's own test suite runs. Needs pytest.

    # tests/test_conformance.py of a backend
    import pytest
    from gdsfw.testing import *  # the tests
    from gdsfw.testing import Subject

    @pytest.fixture
    def subject(tmp_path):
        return Subject("mine", directory=tmp_path)

All backends collect the same tests. A test is skipped only for what the backend does not declare
(BackendInfo.capabilities, io_paths, memory), and the reason names it. Tests go over all declared I/O paths, and over
the table and the Python object of each; the last line of a failed test's output says which it was.
"""

try:
    import pytest
except ImportError:
    raise ImportError("gdsfw.testing needs pytest: pip install 'gdsfw-core[testing]'") from None

# Before the modules are imported: a plain assert must say what it compared, in a backend's own suite too.
pytest.register_assert_rewrite("gdsfw.testing.suite", "gdsfw.testing.subject")

from gdsfw.testing.capabilities import CAPABILITIES  # noqa: E402
from gdsfw.testing.subject import OpenJob, Rig, Subject  # noqa: E402
from gdsfw.testing.suite.failures import TestErrors  # noqa: E402
from gdsfw.testing.suite.hooks import TestHooks, TestProbe  # noqa: E402
from gdsfw.testing.suite.integrity import TestCounts, TestFiles, TestIntegrity  # noqa: E402
from gdsfw.testing.suite.leaks import TestLeaks  # noqa: E402
from gdsfw.testing.suite.lifecycle import TestBuffers, TestLifecycle  # noqa: E402
from gdsfw.testing.suite.looping import TestAgreement, TestLoops, TestWorkers  # noqa: E402
from gdsfw.testing.suite.queues import TestQueues  # noqa: E402
from gdsfw.testing.suite.ranges import TestRanges  # noqa: E402

__all__ = [
    "CAPABILITIES",
    "OpenJob",
    "Rig",
    "Subject",
    "TestAgreement",
    "TestBuffers",
    "TestCounts",
    "TestErrors",
    "TestFiles",
    "TestHooks",
    "TestIntegrity",
    "TestLeaks",
    "TestLifecycle",
    "TestLoops",
    "TestProbe",
    "TestQueues",
    "TestRanges",
    "TestWorkers",
]
