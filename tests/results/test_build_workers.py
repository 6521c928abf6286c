"""Figures of workers keep their place when another worker never measured."""

from __future__ import annotations

from pathlib import Path

from gdsfw.engine.histogram import Histogram
from gdsfw.engine.spec import DirectionStats, EndedBy, LoopResult, Mismatch, VerifyStats
from gdsfw.engine.worker import WorkerOutcome
from gdsfw.plugins import PluginManager
from gdsfw.results.build import JobFacts, job_result, phases
from gdsfw.workload.loader import load
from gdsfw.workload.plan import make_plan


def test_a_mismatch_names_the_file_of_its_own_worker(tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_text("version: 1\njobs: [{name: j, backend: noop, rw: read, size: 4KiB, numjobs: 2, verify: true}]\n")
    (plan,) = make_plan(load(path), plugins=PluginManager.installed({"GDSFW_PLUGINS": "noop"})).jobs
    empty = DirectionStats(0, 0, 0, 0, Histogram(), Histogram(), Histogram())
    bad = VerifyStats(4096, 4096, 1, 1, (Mismatch(0, 100, b"a", b"b", 1),))
    second = WorkerOutcome(result=LoopResult(EndedBy.IO_SIZE, 1, 2, empty, empty, verify=bad), finished=True)
    facts = JobFacts("failed", 1, phases(0, 0, 0, 0, 0), 0.0, 0.0, False, None, [], [])
    verify = job_result(plan, [WorkerOutcome(error=OSError(5, "gone")), second], facts).verify
    assert verify is not None
    assert verify.mismatches[0].file == plan.workers[1].files[0].path
