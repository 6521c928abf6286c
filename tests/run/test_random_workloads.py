"""Fifty random small workloads through the public entry: what a run moved is what its plan said, to the byte."""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path
from types import ModuleType
from typing import Any

import gdsfw
import gdsfw_posix
import pytest
from gdsfw import noop
from gdsfw.plugins import PluginManager
from gdsfw.workload.loader import load_data

RAMDISK = Path(__file__).parents[2] / "examples/backends/gdsfw-ramdisk/src/gdsfw_ramdisk/__init__.py"
#: Backend and path of a workload, in turn: both native paths on files, the engine alone, a path in Python.
PATHS = [("posix", "psync"), ("posix", "io_uring"), ("noop", "auto"), ("ramdisk", "auto")]


@pytest.fixture(scope="module")
def plugins() -> PluginManager:
    manager = PluginManager()
    for name, module in (("posix", gdsfw_posix), ("noop", noop), ("ramdisk", _module(RAMDISK))):
        manager.register(module, name)
    return manager


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("ramdisk_of_the_examples", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def writer(draw: random.Random, verify: bool) -> dict[str, Any]:
    """A job that writes files for the others."""
    block = draw.choice([512, 4096, 5000])
    mixed = draw.choice([None, f"{block}-{block * 4}", {str(block): 60, str(block * 3): 40}])
    job: dict[str, Any] = {
        "name": "w",
        # Blocks of one size, or in order: those of several sizes at random places leave gaps.
        "rw": "write" if mixed else draw.choice(["write", "randwrite"]),
        "block_size": mixed or block,
        "size": draw.randrange(block * 20, block * 60),
        "numjobs": draw.randint(1, 3),
        "loops": draw.randint(1, 2),
        "file_service": draw.choice(["roundrobin", "random", "sequential"]),
        "random": {"seed": draw.randrange(99)},
        "verify": verify,
    }
    if draw.random() < 0.3:
        return {**job, "filename": "shared", "share": "split"}
    return {**job, "files": draw.randint(1, 3)}


def reader(draw: random.Random, name: str, verify: bool) -> dict[str, Any]:
    """A job that works on the writer's files."""
    job: dict[str, Any] = {
        "name": name,
        "rw": "randread" if verify else draw.choice(["read", "randread", "randrw"]),
        "files_from": "w",
        "block_size": draw.choice([512, 4096, "512-3k"]),
        "random": {"distribution": draw.choice(["uniform", "zipf", "runs"]), "seed": draw.randrange(99)},
        "verify": verify,
    }
    # Several workers that write one file's odd end collide in the page cache, which the kernel reports as EIO.
    job["numjobs"] = 1 if job["rw"] == "randrw" else draw.randint(1, 3)
    if draw.random() < 0.4:
        job["io_size"] = draw.randrange(1, 200_000)
    if draw.random() < 0.3:
        job["sweep"] = {"iodepth": [1, draw.randint(2, 9)]}
    if draw.random() < 0.3:
        job["repeat"] = 2
    return job


def workload(number: int, folder: Path) -> dict[str, Any]:
    draw = random.Random(number)
    backend, path = PATHS[number % len(PATHS)]
    verify = backend != "noop" and draw.random() < 0.4
    jobs = [writer(draw, verify), reader(draw, "r", verify), reader(draw, "s", verify)]
    if draw.random() < 0.4 and "randrw" not in (jobs[1]["rw"], jobs[2]["rw"]):
        jobs[1]["stage"] = jobs[2]["stage"] = "together"
    defaults = {
        "backend": backend,
        "io_path": path,
        "directory": str(folder),
        "iodepth": draw.choice([1, 4, 16]),
        "iodepth_batch": draw.choice([1, 4]),
        "direct": draw.choice(["auto", False]),
    }
    return {"defaults": defaults, "jobs": jobs}


@pytest.mark.parametrize("number", range(50))
def test_a_run_moves_exactly_what_its_plan_says(number: int, plugins: PluginManager, tmp_path: Path) -> None:
    result = gdsfw.run(load_data(workload(number, tmp_path / "data"), environ={}), plugins=plugins)
    assert result.status == "done", [job.errors for job in result.jobs]
    planned = [job for stage in result.plan["stages"] for job in stage["jobs"]]
    assert [job["label"] for job in planned] == [job.label for job in result.jobs]
    for plan, job in zip(planned, result.jobs, strict=True):
        sides = [side for side in (job.read, job.write) if side is not None]
        assert plan["sums"]["planned_bytes"] == job.total_bytes == sum(side.bytes for side in sides)
        assert sum(side.ios for side in sides) == job.total_ios
        assert [worker["planned_bytes"] for worker in plan["workers"]] == [
            row.read_bytes + row.write_bytes for row in job.workers
        ]
        assert plan["sums"]["workers"] == len(job.workers)
        assert plan["sums"]["files"] == len(job.files)
