"""GPU paths beside bare C loops and beside each other, in one run: python benchmarks/gpu.py [--help]. Needs a GPU."""

from __future__ import annotations

import argparse
import json
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from pairs import interleave

HERE = Path(__file__).parent
KIB, MIB = 1 << 10, 1 << 20


@dataclass
class Machine:
    """Where things are, and the CPU seconds a GiB of the last measurement of each side."""

    scratch: Path
    file: Path
    seconds: float
    cuda: Path
    cpu: dict[str, float | None] = field(default_factory=dict)

    def gdsfw(self, name: str, job: Mapping[str, Any], options: Mapping[str, Any] | None = None) -> float:
        """I/Os per second of a cuFile-backend job on the file; a key of `job` that is None leaves the default out."""
        bench: dict[str, Any] = {
            "name": "bench", "backend": "cufile", "filename": str(self.file), "rw": "randread",
            "runtime": f"{int(self.seconds * 1000)}ms", "direct": False, "invalidate": False,
            "random": {"once_per_block": False}, "backend_options": {"cufile": dict(options or {})}, **job,
        }  # fmt: skip
        document = {"version": 1, "jobs": [{key: value for key, value in bench.items() if value is not None}]}
        workload, result = self.scratch / "workload.json", self.scratch / "result.json"
        workload.write_text(json.dumps(document))
        command = [sys.executable, "-m", "gdsfw", "run", "--quiet", "--force", "-o", str(result), str(workload)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{name}: exit {done.returncode}\n{done.stderr}{done.stdout}")
        (measured,) = json.loads(result.read_text())["jobs"]
        self.cpu[name] = measured["cpu"]["seconds_per_gib"]
        self.cpu[f"{name} latency"] = (measured["read"] or measured["write"])["lat_ns"]["mean"]
        return sum(float(measured[side]["iops"]) for side in ("read", "write") if measured[side])

    def loop(self, name: str, mode: str, block: int, depth: int, workers: int, direct: bool = False) -> float:
        """I/Os per second of a bare C loop."""
        binary = self.scratch / "gpuloop"
        if not binary.exists():
            folders = [f"-I{self.cuda}/include", f"-L{self.cuda}/lib64", f"-L{self.cuda}/lib64/stubs"]
            libraries = ["-lcuda", "-lcufile", "-lpthread"]
            subprocess.run(["cc", "-O2", str(HERE / "gpuloop.c"), "-o", str(binary), *folders, *libraries], check=True)
        command = [str(binary), mode, *map(str, (block, depth, workers, self.seconds)), str(self.file)]
        done = subprocess.run(
            command + ["direct"] * direct, capture_output=True, text=True, check=False, cwd=self.scratch
        )
        if done.returncode:
            raise SystemExit(f"{' '.join(command)}: {done.stderr}")
        rate, cpu = map(float, done.stdout.split())
        self.cpu[name] = cpu
        return rate


@dataclass(frozen=True)
class Case:
    """gdsfw on one path against a raw loop or against another path of gdsfw; rates in I/Os per second."""

    name: str
    goal: float
    block: int
    ours: Mapping[str, Any]
    theirs: tuple[Any, ...] | Mapping[str, Any]
    options: Mapping[str, Any] | None = None
    on_tmpfs: bool = False


def job(path: str, block: int, depth: int, workers: int, **more: Any) -> dict[str, Any]:
    return {"io_path": path, "block_size": block, "iodepth": depth, "numjobs": workers, **more}


def cases() -> list[Case]:
    found = [
        Case(f"sync {block // KIB} KiB, {workers} w / C loop", 0.97, block, job("sync", block, 1, workers),
             ("sync", block, 1, workers))
        for block in (4 * KIB, 64 * KIB, MIB) for workers in (1, 8)
    ]  # fmt: skip
    found += [
        Case("batch 4 KiB x 32, 1 w / C loop", 0.95, 4 * KIB, job("batch", 4 * KIB, 32, 1, iodepth_batch=32),
             ("batch", 4 * KIB, 32, 1)),
        Case("staged 4 KiB x 64, 1 w / C loop, groups of 32", 0.95, 4 * KIB, job("staged", 4 * KIB, 64, 1),
             ("staged", 4 * KIB, 32, 1)),
        Case("staged 4 KiB x 64, 8 w / C loop, groups of 32", 0.95, 4 * KIB, job("staged", 4 * KIB, 64, 8),
             ("staged", 4 * KIB, 32, 8)),
    ]  # fmt: skip
    for block, depth, workers, goal in (
        (4 * KIB, 64, 1, 6.0), (4 * KIB, 64, 8, 6.0), (4 * KIB, 32, 1, 4.0), (64 * KIB, 32, 8, 3.0),
        (MIB, 4, 8, 1.7), (4 * MIB, 2, 16, 1.7),
    ):  # fmt: skip
        name = f"staged {block // KIB} KiB x {depth}, {workers} w / sync of gdsfw"
        found.append(Case(name, goal, block, job("staged", block, depth, workers), job("sync", block, 1, workers)))
    found += [
        Case("staged 1 MiB x 4, 8 w / C loop", 0.95, MIB, job("staged", MIB, 4, 8), ("staged", MIB, 1, 8)),
        Case("staged 4 MiB x 2, 16 w / C loop", 0.95, 4 * MIB, job("staged", 4 * MIB, 2, 16),
             ("staged", 4 * MIB, 1, 16)),
        Case("staged writes 1 MiB x 2, 8 w / C loop", 0.95, MIB,
             job("staged", MIB, 2, 8, rw="randwrite", allow_overwrite=True, end_fsync=False), ("copyout", MIB, 1, 8)),
        Case("staged 4 KiB, depth 1, 1 w / sync of gdsfw", 1.0, 4 * KIB, job("staged", 4 * KIB, 1, 1),
             job("sync", 4 * KIB, 1, 1)),
        Case("O_DIRECT staged io_uring 4 KiB x 32, 1 w / batch of gdsfw", 1.8, 4 * KIB,
             job("staged", 4 * KIB, 32, 1, direct=True), job("batch", 4 * KIB, 32, 1, direct=True, iodepth_batch=32)),
    ]  # fmt: skip
    return found + mapped_cases()


def mapped_cases() -> list[Case]:
    """The mapped path against sync, and against the limits that the machine's bus sets."""
    sync = job("sync", 4 * KIB, 1, 1)
    block = {"wait": "block"}
    return [
        Case("mapped 4 KiB x 32, 1 w / sync of gdsfw", 10, 4 * KIB, job("mapped", 4 * KIB, 32, 1), sync),
        Case("mapped 4 KiB x 1024, 1 w / sync of gdsfw", 60, 4 * KIB, job("mapped", 4 * KIB, 1024, 1), sync),
        Case("mapped 4 KiB x 1024, 1 w, block / sync of gdsfw", 57, 4 * KIB, job("mapped", 4 * KIB, 1024, 1), sync,
             block),
        Case("mapped 512 B x 8192, 1 w / sync of gdsfw", 340, 512, job("mapped", 512, 8192, 1), sync),
        Case("mapped 1 MiB x 4 sequential, 1 w / staged 8 w", 1.0, MIB, job("mapped", MIB, 4, 1, rw="read"),
             job("staged", MIB, 4, 8, rw="read")),
        Case("mapped 1 MiB x 4 sequential, 1 w, block / staged 8 w", 1.0, MIB, job("mapped", MIB, 4, 1, rw="read"),
             job("staged", MIB, 4, 8, rw="read"), block),
        *tmpfs_cases(),
    ]  # fmt: skip


def tmpfs_cases() -> list[Case]:
    """Where the device may write, beside the staged path."""
    mapped, writes = job("mapped", MIB, 4, 1), {"allow_overwrite": True, "end_fsync": False}
    return [
        Case("mapped 1 MiB x 4, 1 w, tmpfs, writes / staged 8 w", 1.0, MIB, {**mapped, "rw": "write", **writes},
             job("staged", MIB, 4, 8, rw="write", **writes), on_tmpfs=True),
        Case("mapped 4 KiB x 1024, 1 w, tmpfs, random writes / staged x 64", 5.0, 4 * KIB,
             job("mapped", 4 * KIB, 1024, 1, rw="randwrite", **writes),
             job("staged", 4 * KIB, 64, 1, rw="randwrite", **writes), on_tmpfs=True),
    ]  # fmt: skip


def report(machine: Machine, case: Case, pairs: int) -> str:
    """One row: both medians, the ratio, bandwidth and CPU of both sides."""
    if isinstance(case.theirs, tuple):
        raw = case.theirs
        seen = interleave(
            lambda: machine.gdsfw("ours", case.ours, case.options), lambda: machine.loop("theirs", *raw), pairs
        )
    else:
        other = case.theirs
        seen = interleave(
            lambda: machine.gdsfw("ours", case.ours, case.options), lambda: machine.gdsfw("theirs", other), pairs
        )
    low, high = seen.interval
    ours, theirs = (sorted(figures)[len(figures) // 2] for figures in (seen.ours, seen.theirs))
    verdict = "reached" if seen.median >= case.goal else "within the interval" if high >= case.goal else "MISSED"
    cpu = " / ".join(f"{machine.cpu[side] or 0:.3f}" for side in ("ours", "theirs"))
    latency = (machine.cpu.get("ours latency") or 0) / 1000
    return (
        f"| {case.name} | {ours:,.0f} | {theirs:,.0f} | {ours * case.block / 1e9:.2f} GB/s | {seen.median:.2f} "
        f"| {low:.2f} to {high:.2f} | {case.goal:g} | {verdict} | {cpu} | {latency:.1f} us |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, help="a file of several GiB in the page cache; its data may be overwritten")
    parser.add_argument("--tmpfs", type=Path, help="a file of as many bytes on tmpfs, for the mapped path's writes")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--cuda", type=Path, default=Path("/usr/local/cuda"))
    parser.add_argument("--only", action="append", help="cases whose name contains this; may be repeated")
    options = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="gdsfw-bench-"))
    machine = Machine(scratch, options.file, options.seconds, options.cuda)
    print(f"{platform.node()}, Linux {platform.release()}, Python {platform.python_version()}; {options.pairs} pairs")
    print("| work | gdsfw I/O/s | other | gdsfw | ratio | 95 % interval | goal | | CPU s/GiB | mean lat |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    try:
        for case in cases():
            machine.file = options.tmpfs if case.on_tmpfs else options.file
            if machine.file and (not options.only or any(part in case.name for part in options.only)):
                print(report(machine, case, options.pairs), flush=True)
    finally:
        shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
