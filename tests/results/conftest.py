"""Results of real runs on files, made once, and a way to change one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.running import Gdsfw

JOBS = (
    {
        "name": "mixed",
        "rw": "randrw",
        "size": "1MiB",
        "numjobs": 2,
        "direct": False,
        "repeat": 2,
        "sweep": {"iodepth": [1, 2]},
    },
    {"name": "timed", "rw": "randread", "size": "1MiB", "runtime": "300ms", "timeline": "100ms", "direct": False},
)


@pytest.fixture(scope="session")
def document_text(tmp_path_factory: pytest.TempPathFactory) -> str:
    driver = Gdsfw(tmp_path_factory.mktemp("measured"))
    try:
        ended = driver.run(*JOBS)
    finally:
        driver.close()
    assert ended.code == 0, ended.stderr
    return json.dumps(ended.result)


@pytest.fixture
def document(document_text: str) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(document_text)
    return result


Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path, document_text: str) -> Write:
    """Write the result, changed by a function, under a name."""

    def write_result(name: str, change: Callable[[dict[str, Any]], None] = lambda _: None) -> Path:
        document = json.loads(document_text)
        change(document)
        path = tmp_path / name
        path.write_text(json.dumps(document))
        return path

    return write_result


Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """`gdsfw ...` as a user runs it."""

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "gdsfw", *map(str, arguments)],
            cwd=tmp_path,
            env={**os.environ, "COLUMNS": "250"},
            capture_output=True,
            text=True,
            check=False,
        )

    return run
