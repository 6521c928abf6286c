from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from gdsfw import host_memory
from gdsfw.engine import native
from gdsfw.engine.native import UringOptions, try_uring
from helpers.running import Ended, Gdsfw

Confined = Callable[..., Ended]


@pytest.fixture
def gdsfw(tmp_path: Path) -> Iterator[Gdsfw]:
    driver = Gdsfw(tmp_path)
    yield driver
    driver.close()


@pytest.fixture
def confined(gdsfw: Gdsfw) -> Confined:
    """Run one job in a process that has limited itself first."""

    def run(limit: Callable[[], None], job: Mapping[str, Any], *, code: int = 0) -> Ended:
        done = subprocess.run(
            gdsfw.command(gdsfw.write(job)), cwd=gdsfw.folder, capture_output=True, text=True, preexec_fn=limit,
            check=False,
        )  # fmt: skip
        result = gdsfw.folder / "result.json"
        document = json.loads(result.read_text()) if result.exists() else None
        assert done.returncode == code, done.stderr + done.stdout
        return Ended(done.returncode, done.stdout, done.stderr, document)

    return run


@pytest.fixture
def _io_uring_works() -> None:
    usable, reason = native.available()
    if not usable:
        pytest.skip(reason)
    buffer = host_memory.allocate(4096)
    refusal = try_uring(UringOptions(), buffer, [], 4)
    host_memory.free(buffer)
    if refusal:
        pytest.skip(refusal.message)
