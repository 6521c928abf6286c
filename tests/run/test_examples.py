"""The workloads in examples/ run as they are, but for less data and time."""

from __future__ import annotations

from pathlib import Path

import gdsfw
import pytest
from gdsfw.plugins import PluginManager
from gdsfw.workload import presets

#: Run on the vendors' stand-ins, in tests/gpu.
NEED_A_GPU = {"multi-gpu", "gpu-library", "gpu-paths", "gpu-posix"}
FOLDER = Path(__file__).parents[2] / "examples"
EXAMPLES = sorted(path for path in FOLDER.glob("*.yaml") if path.stem not in NEED_A_GPU)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(path: Path, tmp_path: Path) -> None:
    environ = {"GDSFW_SIZE": "32MiB", "GDSFW_DIR": str(tmp_path)}
    workload = gdsfw.load(path, environ=environ)
    short = [f"jobs.{job.name}.runtime=50ms" for job in workload.jobs if job.runtime]
    short += [f"jobs.{job.name}.ramp_time=0" for job in workload.jobs if job.ramp_time]
    workload = gdsfw.load(path, [f"defaults.directory={tmp_path}", *short], environ=environ)
    result = gdsfw.run(workload, plugins=PluginManager.installed({"GDSFW_PLUGINS": "posix"}))
    assert (result.status, result.errors) == ("done", []), [job.errors for job in result.jobs]
    assert all(job.total_bytes > 0 for job in result.jobs)


def test_the_examples_are_the_presets_and_the_quickstart() -> None:
    """A preset and an example of one name are one file."""
    folder = Path(presets.__file__).parent
    for path in EXAMPLES:
        assert path.stem == "quickstart" or path.resolve() == folder / path.name
    assert all((FOLDER / path.name).resolve() == path for path in folder.glob("*.yaml"))
