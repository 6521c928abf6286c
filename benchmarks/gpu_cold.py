"""Files that are not in memory, mapped against staged: python benchmarks/gpu_cold.py DIRECTORY. Needs a GPU.

Each measurement reads a file of its own once, with 4 workers, after the page cache has dropped it: what the layers
below keep of a file that was read before would make the second reading another measurement. Mapped registers windows of
64 MiB while it is measured, so its rate has populating and registering in it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from pathlib import Path

from gpu import MIB, Machine, job
from pairs import Comparison, interleave_figures

WINDOW = {"window_bytes": 64 * MIB}


def fresh_file(path: Path, nbytes: int) -> None:
    """A file of random bytes on the device, none of them in the page cache."""
    block = os.urandom(16 * MIB)
    with path.open("wb", buffering=0) as file:
        for number in range(nbytes // len(block)):
            file.write(number.to_bytes(8, "little") + block[8:])
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read_once(machine: Machine, directory: Path, nbytes: int, path: str, depth: int) -> dict[str, float]:
    """GB/s and GiB a CPU second of one reading; both are better when higher."""
    machine.file = directory / "gdsfw-bench-cold"
    fresh_file(machine.file, nbytes)
    try:
        work = job(path, MIB, depth, 4, rw="read", share="split", invalidate=True, runtime=None)
        rate = machine.gdsfw(path, work, WINDOW if path == "mapped" else None)
    finally:
        machine.file.unlink()
    return {"GB/s": rate * MIB / 1e9, "GiB a CPU second": 1 / (machine.cpu[path] or 1e-9)}


def row(name: str, seen: Comparison, goal: float) -> str:
    ours, theirs = (sorted(figures)[len(figures) // 2] for figures in (seen.ours, seen.theirs))
    low, high = seen.interval
    return f"| {name} | {ours:.2f} | {theirs:.2f} | {seen.median:.2f} | {low:.2f} to {high:.2f} | {goal:g} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path, help="on the storage to be measured; holds one file at a time")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--gib", type=int, default=2, help="size of each file")
    options = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="gdsfw-bench-"))
    machine = Machine(scratch, options.directory, 1, Path("/usr/local/cuda"))
    nbytes = options.gib << 30
    try:
        seen = interleave_figures(
            lambda: read_once(machine, options.directory, nbytes, "mapped", 4),
            lambda: read_once(machine, options.directory, nbytes, "staged", 4),
            options.pairs,
        )
    finally:
        shutil.rmtree(scratch)
    print(f"| cold file of {options.gib} GiB, 4 workers, 1 MiB | mapped | staged | ratio | 95 % interval | goal |")
    print("| --- | --- | --- | --- | --- | --- |")
    print(row("GB/s", seen["GB/s"], 1.3))
    print(row("GiB a CPU second", seen["GiB a CPU second"], 3))


if __name__ == "__main__":
    main()
