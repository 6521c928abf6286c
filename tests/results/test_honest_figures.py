"""Figures against what others counted: raw latencies, the kernel, the parts that make up a whole, any clock."""

from __future__ import annotations

import csv
import json
import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gdsfw
import pytest
from fakes.build import compiler
from gdsfw.plugins import PluginManager
from gdsfw.results.model import JobResult, RunResult
from helpers.running import Gdsfw
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

#: Histogram buckets are 1/64 of a power of two wide at most; their middle is off by half of that.
BOUND = 1 / 128
few = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

JOBS = st.fixed_dictionaries(
    {
        "rw": st.sampled_from(["read", "write", "randread", "randwrite", "readwrite", "randrw"]),
        "backend": st.sampled_from(["noop", "posix"]),
        "block_size": st.sampled_from(["512", "4KiB", "5000", "4KiB/60:16KiB/40"]),
        "size": st.integers(20_000, 300_000),
        "numjobs": st.integers(1, 3),
        "iodepth": st.sampled_from([1, 4]),
        "loops": st.integers(1, 2),
        "direct": st.just(False),
    }
)


@pytest.fixture(scope="module")
def plugins() -> PluginManager:
    return PluginManager.installed({})


def run(folder: Path, plugins: PluginManager, **job: Any) -> RunResult:
    document = {"version": 1, "defaults": {"directory": str(folder)}, "jobs": [{"name": "job", **job}]}
    path = folder / "workload.json"
    path.write_text(json.dumps(document))
    return gdsfw.run(gdsfw.load(path), plugins=plugins)


def without_nan(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(without_nan, value.values()))
    if isinstance(value, list):
        return all(map(without_nan, value))
    return not isinstance(value, float) or math.isfinite(value)


def check_sums(job: JobResult) -> None:
    """Workers, timeline and directions are parts of the same whole."""
    for side in ("read", "write"):
        total = getattr(job, side)
        ios, nbytes = (total.ios, total.bytes) if total else (0, 0)
        assert sum(getattr(row, f"{side}_ios") for row in job.workers) == ios
        assert sum(getattr(row, f"{side}_bytes") for row in job.workers) == nbytes
        assert job.timeline is None or sum(getattr(row, f"{side}_ios") for row in job.timeline.rows) == ios
        assert job.timeline is None or sum(getattr(row, f"{side}_bytes") for row in job.timeline.rows) == nbytes
        if total and total.clat_ns:
            assert total.histogram is not None
            counted = sum(count for _, count in total.histogram["buckets"])
            assert counted == ios
            assert total.iops == pytest.approx(ios * 1e9 / total.runtime_ns)


@few
@given(job=JOBS)
def test_a_result_adds_up_and_survives_its_file(
    job: dict[str, Any], plugins: PluginManager, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("job")
    result = run(folder, plugins, **job, verify=job["backend"] == "posix" and job["rw"] in ("write", "randwrite"))
    assert result.status == "done", result.jobs[0].errors
    document = result.to_json()
    assert without_nan(document)
    again = RunResult.from_json(json.loads(json.dumps(document, allow_nan=False)))
    assert again == result
    (measured,) = again.jobs
    check_sums(measured)
    assert measured.total_ios == sum(side.ios for side in (measured.read, measured.write) if side)


def test_the_ramp_is_done_and_not_counted(plugins: PluginManager, tmp_path: Path) -> None:
    result = run(tmp_path, plugins, rw="randread", backend="noop", size="1MiB", runtime="200ms", ramp_time="200ms")
    (job,) = result.jobs
    assert job.read is not None
    check_sums(job)
    assert 0 < job.read.ios < job.total_ios
    assert job.phases.ramp > 0
    assert job.read.histogram is not None
    assert sum(count for _, count in job.read.histogram["buckets"]) == job.read.ios


@pytest.mark.parametrize("backend", ["noop", "posix"])
def test_percentiles_are_those_of_the_raw_latencies(backend: str, plugins: PluginManager, tmp_path: Path) -> None:
    percentiles = [1, 25, 50, 75, 90, 99, 99.9, 100]
    result = run(
        tmp_path, plugins, rw="randread", backend=backend, size="4MiB", loops=4, numjobs=2, direct=False,
        percentiles=percentiles, io_log=str(tmp_path / "io.csv"),
    )  # fmt: skip
    with (tmp_path / "io.csv").open(newline="") as file:
        raw = sorted(int(row["latency_ns"]) for row in csv.DictReader(file))
    read = result.jobs[0].read
    assert read is not None
    assert read.clat_ns is not None
    assert len(raw) == read.ios
    assert (read.clat_ns.min, read.clat_ns.max) == (raw[0], raw[-1])
    assert read.clat_ns.mean == pytest.approx(sum(raw) / len(raw))
    for percent in percentiles:
        exact = raw[max(1, math.ceil(percent / 100 * len(raw))) - 1]
        assert read.clat_ns.percentiles[f"{percent:g}"] == pytest.approx(exact, rel=BOUND, abs=1)


def test_writes_and_cpu_are_what_the_kernel_counted(plugins: PluginManager, tmp_path: Path) -> None:
    """In a process of its own; the runner's own start and end come on top of the workers' CPU time."""
    script = (
        "import json, resource, sys, gdsfw\n"
        "def wchar(): return int(open('/proc/self/io').read().split()[3])\n"
        "def cpu():\n"
        "    used = resource.getrusage(resource.RUSAGE_SELF)\n"
        "    return used.ru_utime + used.ru_stime\n"
        "workload = gdsfw.load(sys.argv[1])\n"
        "gdsfw.run(workload)\n"
        "before = wchar(), cpu()\n"
        "job = gdsfw.run(workload).jobs[0]\n"
        "print(json.dumps([wchar() - before[0], job.write.bytes, cpu() - before[1], job.cpu.worker_seconds]))\n"
    )
    document = {
        "version": 1,
        "jobs": [
            {
                "name": "w", "backend": "posix", "rw": "randwrite", "size": "64MiB", "loops": 8, "block_size": "64KiB",
                "directory": str(tmp_path), "direct": False, "end_fsync": False,
            }
        ],
    }  # fmt: skip
    (tmp_path / "workload.json").write_text(json.dumps(document))
    command = [sys.executable, "-c", script, str(tmp_path / "workload.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    written, reported, used, workers = json.loads(done.stdout)
    assert reported == 512 << 20
    assert written == pytest.approx(reported, rel=0.01)
    assert workers <= used * 1.01
    assert used - workers < 0.25


STEPPING_CLOCK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>
/* The wall clock steps back by an hour each time anybody looks. */
static long steps;
int clock_gettime(clockid_t clock, struct timespec *t) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real)
    *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
  int answer = real(clock, t);
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
    t->tv_sec -= 3600 * ++steps;
  return answer;
}
time_t time(time_t *out) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return out ? *out = t.tv_sec : t.tv_sec;
}
int gettimeofday(struct timeval *t, void *zone) {
  struct timespec s;
  clock_gettime(CLOCK_REALTIME, &s);
  t->tv_sec = s.tv_sec;
  t->tv_usec = s.tv_nsec / 1000;
  return 0;
}
"""


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Gdsfw]:
    found = Gdsfw(tmp_path)
    yield found
    found.close()


@pytest.mark.parametrize("path", ["psync", "io_uring"])
def test_a_clock_that_is_set_back_does_no_harm(driver: Gdsfw, tmp_path: Path, path: str) -> None:
    command = compiler()
    if command is None:
        pytest.skip("no C compiler")
    library = tmp_path / "clock.so"
    (tmp_path / "clock.c").write_text(STEPPING_CLOCK)
    subprocess.run([command, "-shared", "-fPIC", "-o", str(library), str(tmp_path / "clock.c"), "-ldl"], check=True)
    job = {
        "name": "r", "rw": "randread", "size": "4MiB", "runtime": "400ms", "timeline": "100ms", "io_path": path,
        "iodepth": 1 if path == "psync" else 8, "rate_iops": 1000, "direct": False,
    }  # fmt: skip
    ended = driver.ended(driver.start(driver.write(job), LD_PRELOAD=str(library)))
    assert ended.code == 0, ended.stderr
    (result,) = ended.jobs
    read = result["read"]
    assert 0.35e9 < read["runtime_ns"] < 2e9
    assert 0 < read["ios"] <= 1000
    assert all(row["duration_ns"] >= 0 for row in result["timeline"]["rows"])
    assert read["lat_ns"]["max"] < 2e9
    assert all(value >= 0 for value in result["phases"].values())
