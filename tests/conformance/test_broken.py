"""Broken backends: each fails in the test that says what is wrong with it."""

from __future__ import annotations

import os
import subprocess
import sys
from xml.etree import ElementTree

import pytest
from conformance.faults import FAULTS
from gdsfw.engine import native

SUITE = """
import pytest
import {module}
from gdsfw.testing import *
from gdsfw.testing import Subject


@pytest.fixture
def subject(tmp_path):
    yield Subject("{backend}", directory=tmp_path, module={module})
    getattr({module}, "FILES", {{}}).clear()
"""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """For every fault: what became of the test that must find it (`` is passed, else why not)."""
    folder = tmp_path_factory.mktemp("broken")
    wanted = []
    for number, (name, fault) in enumerate(FAULTS.items()):
        source = fault.source.read_text()
        assert source.count(fault.right) >= 1, f"{name}: {fault.right!r} is not in {fault.source}"
        module = f"broken_{number}"
        (folder / f"{module}.py").write_text(source.replace(fault.right, fault.wrong))
        (folder / f"test_{number}.py").write_text(SUITE.format(module=module, backend=fault.backend))
        wanted.append(f"test_{number}.py::{fault.caught_by}")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junit-xml=report.xml", *wanted]
    environ = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)
    assert (folder / "report.xml").exists(), done.stdout + done.stderr
    found: dict[str, str] = {}
    for case in ElementTree.parse(folder / "report.xml").iter("testcase"):
        number = int(case.attrib["classname"].split(".")[0].removeprefix("test_"))
        problems = [child.tag + ": " + child.attrib.get("message", "") for child in case]
        found[list(FAULTS)[number]] = "; ".join(problems)
    return found


@pytest.mark.parametrize("name", FAULTS)
def test_a_broken_backend_is_caught(outcomes: dict[str, str], name: str) -> None:
    if FAULTS[name].backend == "pair" and not native.available()[0]:
        pytest.skip(native.available()[1])
    assert name in outcomes, f"{FAULTS[name].caught_by} was not run"
    assert outcomes[name].startswith("failure: "), f"{FAULTS[name].caught_by}: {outcomes[name] or 'passed'}"
