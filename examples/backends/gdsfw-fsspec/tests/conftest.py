from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import gdsfw
import pytest
from gdsfw.testing import Subject
from helpers import Open, Run, Server, serving

#: 256 KiB and a bit, so that the last block is an odd one.
DATA = random.Random(5).randbytes((256 << 10) + 100)


@pytest.fixture(autouse=True)
def _empty_memory() -> Iterator[None]:
    """memory:// is one for the whole process."""
    yield
    memory = fsspec.filesystem("memory")
    for name in memory.ls("/", detail=False):
        memory.rm(name, recursive=True)


@pytest.fixture
def contents() -> bytes:
    return DATA


@pytest.fixture
def server() -> Iterator[Server]:
    names = ("data", "plain-data", "refuses-data", "endless-data", "broken-data")
    with serving(dict.fromkeys(names, DATA)) as running:
        yield running


@pytest.fixture
def opened() -> Open:
    """A worker on one file, as a job has it: `opened(base, name, rw="read", **options)`."""

    def rig(
        base: str, name: str, *, rw: Any = "read", io_path: str = "fsspec", iodepth: int = 1, **options: Any
    ) -> Any:
        subject = Subject("fsspec", directory=Path(), options={"base": base, **options})
        return subject.rig(io_path=io_path, names=[name], nbytes=0, rw=rw, iodepth=iodepth)

    return rig


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run a workload: `run(job, ..., base=...)`, jobs as mappings; gives the results of the jobs."""

    def go(*jobs: dict[str, Any], **options: Any) -> Any:
        defaults = {"backend": "fsspec", "backend_options": {"fsspec": options}, "block_size": "64KiB"}
        path = tmp_path / "workload.yaml"
        path.write_text(json.dumps({"version": 1, "defaults": defaults, "jobs": jobs}))
        return gdsfw.run(gdsfw.load(path)).jobs

    return go
