"""The programs that are compared: gdsfw, fio and bare C loops. Each call is one process and gives its figures."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
GDSFW = str(Path(sys.executable).with_name("gdsfw"))

#: Names of figures; higher is better. CPU is that of the threads that do the I/O, as each program reports it.
IOPS, BANDWIDTH, PER_CPU = "IOPS", "bytes/s", "I/Os per CPU second"


@dataclass(frozen=True)
class Bench:
    """Where things are on this machine, and how long one measurement lasts."""

    scratch: Path  # for small files: workloads, results, the compiled loops
    memory: Path  # a directory on tmpfs
    disk: Path  # a directory on a disk file system
    seconds: int
    memory_seconds: int = 60  # length of the run whose memory is watched

    def command(self, job: Mapping[str, Any]) -> list[str]:
        """The command that runs one job and leaves result.json."""
        workload = self.scratch / "workload.json"  # JSON is YAML
        workload.write_text(json.dumps({"version": 1, "jobs": [{"name": "bench", **job}]}), encoding="utf-8")
        return [GDSFW, "run", "--quiet", "--force", "-o", str(self.scratch / "result.json"), str(workload)]

    def result(self) -> dict[str, Any]:
        """The job of the last run's result."""
        (job,) = json.loads((self.scratch / "result.json").read_text(encoding="utf-8"))["jobs"]
        return dict(job)

    def gdsfw(self, job: Mapping[str, Any]) -> dict[str, float]:
        """Run one job; sums of both directions."""
        output(self.command(job))
        done = self.result()
        sides = [done[side] for side in ("read", "write") if done.get(side)]
        figures = {
            IOPS: sum(float(side["iops"] or 0) for side in sides),
            BANDWIDTH: sum(float(side["bw_bytes"] or 0) for side in sides),
        }
        if done["cpu"]["worker_seconds"]:
            figures[PER_CPU] = sum(side["ios"] for side in sides) / done["cpu"]["worker_seconds"]
        return figures

    def fio(self, *options: str) -> dict[str, float]:
        """Run fio with one job section; the same figures, summed over its threads."""
        text = output(["fio", "--name=bench", "--output-format=json", *options])
        jobs = json.loads(text[text.index("{") :])["jobs"]
        sides = [job[side] for job in jobs for side in ("read", "write")]
        cpu = sum((job["usr_cpu"] + job["sys_cpu"]) / 100 * job["job_runtime"] / 1000 for job in jobs)
        figures = {IOPS: sum(float(s["iops"]) for s in sides), BANDWIDTH: sum(float(s["bw_bytes"]) for s in sides)}
        if cpu:
            figures[PER_CPU] = sum(side["total_ios"] for side in sides) / cpu
        return figures

    def cloop(self, kind: str, block: int, workers: int, files: Sequence[Path] = ()) -> dict[str, float]:
        """The bare C loop of synchronous calls."""
        return {IOPS: float(self._compiled("cloop", kind, block, self.seconds, workers, *files))}

    def uringloop(self, block: int, depth: int, batch: int, fixed: bool, direct: bool, file: Path) -> dict[str, float]:
        """The bare C loop on io_uring."""
        text = self._compiled("uringloop", block, self.seconds, depth, batch, int(fixed), int(direct), file)
        rate, per_cpu = map(float, text.split())
        return {IOPS: rate, PER_CPU: per_cpu}

    def _compiled(self, name: str, *arguments: object) -> str:
        binary = self.scratch / name
        if not binary.exists():
            output(["cc", "-O3", "-o", str(binary), str(HERE / f"{name}.c"), "-lpthread"])
        return output([str(binary), *map(str, arguments)])


def output(command: Sequence[str]) -> str:
    """Run a command to its end and return what it printed."""
    if shutil.which(command[0]) is None:
        raise SystemExit(f"{command[0]} is not installed; fio comes with `apt-get install fio`")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\nexit {done.returncode}\n{done.stderr}{done.stdout[-2000:]}")
    return done.stdout
