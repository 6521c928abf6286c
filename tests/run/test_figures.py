"""What a result says beside what the kernel counted, in runs large enough that gdsfw's own work is no part of it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from helpers.running import Gdsfw

#: Runs a workload after a small one of the same shape, whose own cost (reading /proc, planning) is taken off.
COUNT = """
import json, resource, sys, gdsfw
def counted():
    kernel = dict(line.split(": ") for line in open("/proc/self/io").read().splitlines())
    used = resource.getrusage(resource.RUSAGE_SELF)
    return [int(kernel["rchar"]), int(kernel["syscr"]), used.ru_utime + used.ru_stime]
def run(workload):
    before = counted()
    result = gdsfw.run(workload)
    return [after - then for then, after in zip(before, counted())], result.jobs[0]
small, large = (gdsfw.load(path) for path in sys.argv[1:])
run(small)
base, few = run(small)
seen, job = run(large)
used = [job.read.bytes, job.read.ios, job.cpu.process_user_seconds + job.cpu.process_system_seconds]
known = [few.read.bytes, few.read.ios, few.cpu.process_user_seconds + few.cpu.process_system_seconds]
print(json.dumps({
    "kernel": [a - b for a, b in zip(seen, base)], "result": [a - b for a, b in zip(used, known)],
    "workers": job.cpu.worker_seconds - few.cpu.worker_seconds,
}))
"""


def counted(gdsfw: Gdsfw, job: dict[str, Any], large: dict[str, Any]) -> dict[str, Any]:
    """What kernel and result count for a job with these keys, less what they count for the job itself."""
    places = []
    for name, keys in (("small", {}), ("large", large)):
        places.append(gdsfw.write({**job, **keys}).rename(gdsfw.folder / f"{name}.yaml"))
    done = subprocess.run(
        [sys.executable, "-c", COUNT, *map(str, places)], cwd=gdsfw.folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_bytes_and_ios_are_those_of_the_kernel(gdsfw: Gdsfw) -> None:
    job = {"name": "r", "rw": "randread", "size": "4MiB", "numjobs": 2, "direct": False, "io_path": "psync"}
    found = counted(gdsfw, job, {"loops": 32})
    (nbytes, calls, _), (reported_bytes, reported_ios, _) = found["kernel"], found["result"]
    assert reported_bytes == 2 * 31 * (4 << 20)
    assert reported_ios * 4096 == reported_bytes
    assert nbytes == pytest.approx(reported_bytes, rel=0.01)
    assert calls == pytest.approx(reported_ios, rel=0.01)


def test_cpu_time_is_that_of_getrusage(gdsfw: Gdsfw) -> None:
    """A fixed number of I/Os that takes most of a second of CPU, however long it waits for a core."""
    job = {"name": "r", "backend": "noop", "rw": "randread", "size": "4MiB", "numjobs": 2}
    found = counted(gdsfw, job, {"loops": 30_000})
    assert found["result"][2] == pytest.approx(found["kernel"][2], rel=0.01)
    assert found["workers"] == pytest.approx(found["kernel"][2], rel=0.02)  # the main thread watches meanwhile


#: A wall clock that jumps an hour back and forth with every look at it.
STEPPING = """
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int looks;

int clock_gettime(clockid_t id, struct timespec *t) {
  int failed = (int)syscall(SYS_clock_gettime, id, t);
  if (!failed && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
    t->tv_sec -= 3600 * (__atomic_add_fetch(&looks, 1, __ATOMIC_RELAXED) % 2 ? 0 : 1);
  return failed;
}
int gettimeofday(struct timeval *restrict t, void *restrict zone) {
  struct timespec now;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &now);
  t->tv_sec = now.tv_sec;
  t->tv_usec = now.tv_nsec / 1000;
  return 0;
}
time_t time(time_t *t) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (t) *t = now.tv_sec;
  return now.tv_sec;
}
"""


def test_steps_of_the_clock_do_no_harm(gdsfw: Gdsfw, tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    source, library = tmp_path / "stepping.c", tmp_path / "stepping.so"
    source.write_text(STEPPING)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    look = "import time; print(min(time.time() - time.time() for _ in range(9)) < -3000)"
    seen = subprocess.run(
        [sys.executable, "-c", look], env={"LD_PRELOAD": str(library)}, capture_output=True, text=True
    )
    assert seen.stdout == "True\n", "the clock does not step"
    job = {"name": "r", "rw": "randread", "size": "1MiB", "runtime": "600ms", "timeline": "100ms", "rate_iops": 2000}
    ended = gdsfw.ended(gdsfw.start(gdsfw.write(job), LD_PRELOAD=str(library)))
    assert ended.code == 0, ended.stderr
    (result,) = ended.jobs
    assert 0.5e9 < result["read"]["runtime_ns"] < 60e9
    assert all(0 <= value < 60 for value in result["phases"].values())
    assert all(row["duration_ns"] >= 0 for row in result["timeline"]["rows"])
    assert result["read"]["clat_ns"]["max"] < 60e9
    assert ended.result is not None
    started, finished = (datetime.fromisoformat(ended.result[key]) for key in ("started", "ended"))
    assert 0 <= (finished - started).total_seconds() < 60
