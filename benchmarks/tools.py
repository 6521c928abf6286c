"""The three programs that are compared: gdsfw, fio and a bare C loop. Each call is one process and gives one figure."""

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


@dataclass(frozen=True)
class Bench:
    """Where things are on this machine, and how long one measurement lasts."""

    scratch: Path  # for small files: workloads, results, the compiled loop
    memory: Path  # a directory on tmpfs
    disk: Path  # a directory on a disk file system
    seconds: int

    def gdsfw(self, job: Mapping[str, Any], figure: str = "iops") -> float:
        """Run one job and return the sum of `iops` or `bw_bytes` of both directions."""
        workload = self.scratch / "workload.json"  # JSON is YAML
        result = self.scratch / "result.json"
        workload.write_text(json.dumps({"version": 1, "jobs": [{"name": "bench", **job}]}), encoding="utf-8")
        gdsfw = Path(sys.executable).with_name("gdsfw")
        _run([str(gdsfw), "run", "--quiet", "--force", "-o", str(result), str(workload)])
        document = json.loads(result.read_text(encoding="utf-8"))
        (done,) = document["jobs"]
        return sum(float(done[side][figure] or 0) for side in ("read", "write") if done.get(side))

    def fio(self, *options: str, figure: str = "iops") -> float:
        """Run fio with one job section and return the same figure, summed over its processes or threads."""
        output = _run(["fio", "--name=bench", "--output-format=json", *options])
        document = json.loads(output[output.index("{") :])
        return sum(float(job[side][figure]) for job in document["jobs"] for side in ("read", "write"))

    def cloop(self, kind: str, block: int, workers: int, files: Sequence[Path] = ()) -> float:
        """I/Os per second of the bare C loop."""
        binary = self.scratch / "cloop"
        if not binary.exists():
            _run(["cc", "-O3", "-o", str(binary), str(HERE / "cloop.c"), "-lpthread"])
        return float(_run([str(binary), kind, str(block), str(self.seconds), str(workers), *map(str, files)]))


def _run(command: Sequence[str]) -> str:
    if shutil.which(command[0]) is None:
        raise SystemExit(f"{command[0]} is not installed; fio comes with `apt-get install fio`")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\nexit {done.returncode}\n{done.stderr}{done.stdout[-2000:]}")
    return done.stdout
