"""What a plan says will be moved is what the loops move, to the byte."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from gdsfw import host_memory, noop
from gdsfw.backend import FileHandle, Target, Worker
from gdsfw.engine import native
from gdsfw.engine.loop_spec import OpenFile, loop_spec, request
from gdsfw.engine.native_loop import NativeLoop
from gdsfw.engine.python_loop import PythonLoop
from gdsfw.plugins import PluginManager
from gdsfw.workload.loader import load_data
from gdsfw.workload.plan import make_plan

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gdsfw.engine.spec import Loop, LoopResult
    from gdsfw.workload.plan_model import JobPlan, WorkerPlan

LOOPS = [
    pytest.param(PythonLoop, id="python"),
    pytest.param(NativeLoop, id="native", marks=pytest.mark.skipif(not native.available()[0], reason="no C engine")),
]
DISTRIBUTIONS = ["uniform", "zipf", "pareto", "normal", "runs"]


def run_worker(make_loop: Callable[..., Loop], plan: JobPlan, worker_plan: WorkerPlan) -> LoopResult:
    worker = Worker(plan.job, worker_plan.index)
    files = [
        OpenFile(file, FileHandle(Target(file.path, file.file_id, file.nbytes), writable=True))
        for file in worker_plan.files
    ]
    handles = [file.handle for file in files]
    path = noop.gdsfw_io(worker=worker, files=handles, request=request(plan, files))
    buffer = host_memory.allocate(worker_plan.buffer_nbytes, "host", 4096)
    try:
        return make_loop(loop_spec(plan, worker_plan, files, path), path, buffer).run()
    finally:
        path.close()
        host_memory.free(buffer)


def random_job(draw: random.Random, name: str) -> dict[str, Any]:
    """A job of at most a few hundred blocks a worker."""
    block = draw.choice([512, 1000, 4096, 5000])
    job: dict[str, Any] = {
        "name": name,
        "rw": draw.choice(["read", "write", "randread", "randwrite", "readwrite", "randrw"]),
        "block_size": draw.choice(
            [block, f"{block}-{block * 4}", {str(block): 60, str(block * 3): 40}, {"read": block, "write": block * 2}]
        ),
        "size": draw.randrange(block * 40, block * 100),
        "offset": draw.choice([0, 4096, 777]),
        "numjobs": draw.randint(1, 4),
        "loops": draw.randint(1, 3),
        "random": {
            "distribution": draw.choice(["uniform", "zipf", "pareto", "normal", "runs"]),
            "seed": draw.randrange(99),
        },
        "file_service": draw.choice(["roundrobin", "random", "sequential"]),
    }
    if draw.random() < 0.4:
        job |= {"filename": "f", "share": draw.choice(["all", "split"])}
    else:
        job["files"] = draw.randint(1, 5)
    if draw.random() < 0.3:
        job["io_size"] = draw.randrange(1, block * 200)
    return job


@pytest.mark.parametrize("make_loop", LOOPS)
def test_fifty_random_workloads_move_exactly_what_their_plans_say(
    make_loop: Callable[..., Loop], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plugins = PluginManager()
    plugins.register(noop, "noop")
    checked = 0
    for number in range(50):
        draw = random.Random(number)
        jobs = [random_job(draw, "one"), {"name": "two", "files_from": "one", "numjobs": 2, "block_size": 512}]
        for plan in make_plan(load_data({"defaults": {"backend": "noop"}, "jobs": jobs}), plugins=plugins).jobs:
            for worker in plan.workers:
                result = run_worker(make_loop, plan, worker)
                assert result.total_bytes == plan.planned_bytes(worker), jobs
                assert result.read.bytes + result.write.bytes == result.total_bytes
                checked += 1
    assert checked > 150
