"""The kit itself: the same tests for everybody, skips that name what was not declared, words that are documented."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import gdsfw
import gdsfw.testing
import pytest
from gdsfw.testing import CAPABILITIES

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
SUITES = [HERE / f"test_{name}.py" for name in ("noop", "posix", "queue", "pair")]
DOCUMENT = (ROOT / "docs/reference/capabilities.md").read_text(encoding="utf-8")
REASON = re.compile(
    r"backend \w+ (does not declare (the capability|memory) '\w+'"
    r"|declares no (native path in io_paths|io_path with (max_iodepth above 1|rw: \w+)))"
)


def pytest_says(*arguments: object) -> str:
    """What pytest prints in a process of its own."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout


def test_every_backend_collects_the_same_tests() -> None:
    found: dict[str, set[str]] = {}
    for line in pytest_says("-q", "--collect-only", *SUITES).splitlines():
        file, separator, test = line.partition("::")
        if separator:
            found.setdefault(file, set()).add(test)
    assert len(found) == len(SUITES)
    first, *others = found.values()
    assert len(first) > 100
    assert all(tests == first for tests in others)


def test_a_skip_names_what_the_backend_does_not_declare() -> None:
    lines = [line for line in pytest_says("-q", "-rs", *SUITES[::2]).splitlines() if line.startswith("SKIPPED")]
    assert lines
    assert [line for line in lines if not REASON.search(line)] == []


@pytest.mark.parametrize("suite", SUITES, ids=lambda path: path.stem)
def test_a_backends_test_file_is_short(suite: Path) -> None:
    assert len(suite.read_text(encoding="utf-8").splitlines()) < 40


def test_every_test_class_of_the_kit_comes_with_its_one_import() -> None:
    suite = Path(gdsfw.testing.__file__).parent / "suite"
    classes = {
        node.name
        for path in suite.glob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test")
    }
    assert classes == {name for name in gdsfw.testing.__all__ if name.startswith("Test")}
    assert classes == set(re.findall(r"^\| `(Test\w+)` \|", DOCUMENT, re.MULTILINE))


def test_every_capability_is_documented() -> None:
    assert set(re.findall(r"^\| `([a-z_]+)` \|", DOCUMENT, re.MULTILINE)) == set(CAPABILITIES)


def test_nothing_but_the_kit_imports_pytest() -> None:
    package = Path(gdsfw.__file__).parent
    importing = {
        path.relative_to(package).parts[0]
        for path in package.rglob("*.py")
        if re.search(r"^\s*(import|from) pytest\b", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert importing == {"testing"}
