"""Random small jobs, really run: the figures agree with each other, with every single latency, and survive a file."""

from __future__ import annotations

import csv
import json
import math
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import gdsfw
import gdsfw_posix
import pytest
from gdsfw import noop
from gdsfw.engine.histogram import Histogram
from gdsfw.plugins import PluginManager
from gdsfw.results.forms import Form, text_of
from gdsfw.results.load import Results, histogram
from gdsfw.results.model import DirectionResult, JobResult, RunResult
from gdsfw.results.save import save
from gdsfw.workload.loader import load_data
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

JOBS = st.fixed_dictionaries(
    {
        "rw": st.sampled_from(["read", "write", "randread", "randwrite", "randrw"]),
        "backend": st.sampled_from(["noop", "posix"]),
        "block_size": st.sampled_from([512, 4096, "512-8k"]),
        "size": st.integers(8192, 100_000),
        "iodepth": st.sampled_from([1, 4]),
        "numjobs": st.integers(1, 3),
        "loops": st.integers(1, 2),
        "timeline": st.sampled_from(["1ms", "100ms"]),
        "percentiles": st.lists(st.sampled_from([0.1, 1, 50, 90, 99, 99.9, 100]), min_size=1, unique=True),
        "random": st.fixed_dictionaries({"seed": st.integers(0, 99)}),
    }
)
FEW = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def plugins() -> PluginManager:
    manager = PluginManager()
    manager.register(gdsfw_posix, "posix")
    manager.register(noop, "noop")
    return manager


@contextmanager
def running(plugins: PluginManager, folder: Path, *jobs: dict[str, Any]) -> Iterator[tuple[RunResult, Path]]:
    """The result of jobs, run in a folder that goes afterwards."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        place = Path(name)
        defaults = {
            "directory": str(place / "data"),
            "direct": False,
            "end_fsync": False,
            "io_log": str(place / "log.csv"),
        }
        named = [{"name": f"job{number}", **job} for number, job in enumerate(jobs)]
        result = gdsfw.run(load_data({"defaults": defaults, "jobs": named}, environ={}), plugins=plugins)
        assert result.status == "done", [job.errors for job in result.jobs]
        yield result, place


def sides(job: JobResult) -> list[tuple[str, DirectionResult]]:
    return [(name, side) for name, side in (("read", job.read), ("write", job.write)) if side is not None]


def logged(place: Path, operation: str) -> list[int]:
    with (place / "log.csv").open(newline="") as file:
        return sorted(int(row["latency_ns"]) for row in csv.DictReader(file) if row["operation"] == operation)


@FEW
@given(job=JOBS)
def test_counts_add_up_over_workers_directions_timeline_and_totals(
    job: dict[str, Any], plugins: PluginManager, tmp_path: Path
) -> None:
    with running(plugins, tmp_path, job) as (run, _):
        (result,) = run.jobs
        assert result.timeline is not None
        for name, side in sides(result):
            for unit in ("ios", "bytes"):
                total = getattr(side, unit)
                assert total == sum(getattr(row, f"{name}_{unit}") for row in result.workers)
                assert total == sum(getattr(row, f"{name}_{unit}") for row in result.timeline.rows)
            assert histogram(side).count == side.ios
        assert result.total_ios == sum(side.ios for _, side in sides(result))
        assert result.total_bytes == sum(side.bytes for _, side in sides(result))
        ends = [row.t_ns + row.duration_ns for row in result.timeline.rows]
        assert [row.t_ns for row in result.timeline.rows] == [0, *ends[:-1]]


@FEW
@given(job=JOBS)
def test_percentiles_are_within_one_128th_of_those_of_the_sorted_latencies(
    job: dict[str, Any], plugins: PluginManager, tmp_path: Path
) -> None:
    with running(plugins, tmp_path, job) as (run, place):
        for name, side in sides(run.jobs[0]):
            exact = logged(place, name)
            assert len(exact) == side.ios
            latency = side.lat_ns or side.clat_ns
            if latency is None:
                assert not exact
                continue
            assert (latency.min, latency.max) == (exact[0], exact[-1])
            assert latency.mean == pytest.approx(sum(exact) / len(exact))
            for percent, seen in latency.percentiles.items():
                rank = max(1, math.ceil(Decimal(percent) * len(exact) / 100))
                assert abs(seen - exact[rank - 1]) * 128 <= max(exact[rank - 1], 1)


@FEW
@given(jobs=st.lists(JOBS, min_size=1, max_size=2))
def test_a_result_is_the_same_after_a_file_and_has_no_nan(
    jobs: list[dict[str, Any]], plugins: PluginManager, tmp_path: Path
) -> None:
    with running(plugins, tmp_path, *jobs) as (run, place):
        text = text_of(run, Form.json)
        json.loads(text, parse_constant=pytest.fail)  # NaN and Infinity are no JSON
        loaded = Results.load(save(text, place / "result.json"))
        assert loaded.run == run
        assert [loaded.job(job.label) for job in run.jobs] == list(loaded)
        merged = Histogram.merged(histogram(side) for job in loaded for _, side in sides(job))
        assert merged.count == sum(job.total_ios for job in loaded)


@pytest.mark.parametrize("iodepth", [1, 4])
def test_the_ramp_is_in_the_totals_alone(iodepth: int, plugins: PluginManager, tmp_path: Path) -> None:
    job = {"rw": "randread", "backend": "noop", "size": "1MiB", "iodepth": iodepth, "numjobs": 2, "rate_iops": 1000}
    times = {"ramp_time": "200ms", "runtime": "200ms", "timeline": "50ms"}
    with running(plugins, tmp_path, {**job, **times}) as (run, _):
        (result,) = run.jobs
        assert result.read is not None
        assert result.timeline is not None
        assert 0 < result.read.ios < result.total_ios
        assert result.read.ios == sum(row.read_ios for row in result.timeline.rows)
        assert result.read.ios == sum(row.read_ios for row in result.workers) == histogram(result.read).count
