"""Tables of gdsfw by itself: how it scales, how fast it starts, how much memory it takes."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cases import fill
from tools import BANDWIDTH, GDSFW, IOPS, output

if TYPE_CHECKING:
    from tools import Bench

KIB, MIB = 1 << 10, 1 << 20
DEPTHS = (1, 4, 16, 64, 256)
BLOCKS = (512, 4 * KIB, 64 * KIB, MIB, 16 * MIB)
RUNS = 9


def scaling(bench: Bench) -> Iterator[str]:
    """Random reads by workers, depth and block size: from memory, and around the page cache of the disk."""
    cores = len(os.sched_getaffinity(0))
    room = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4
    for place, direct in ((bench.memory, False), (bench.disk, True)):
        file = fill(place / "scaling", 1 << 30)
        for workers in sorted({1, cores, 2 * cores}):
            what = "O_DIRECT on the disk" if direct else "tmpfs"
            yield ""
            yield f"Random reads, {what}, {workers} worker{'s'[: workers > 1]}: thousand I/Os per second (GB/s)"
            yield ""
            yield "| block | " + " | ".join(f"depth {depth}" for depth in DEPTHS) + " |"
            yield "| --- |" + " --- |" * len(DEPTHS)
            for block in BLOCKS:
                cells = [
                    _cell(bench, file, workers, depth, block, direct) if workers * depth * block <= room else "-"
                    for depth in DEPTHS
                ]
                yield f"| {_size(block)} | " + " | ".join(cells) + " |"


def _cell(bench: Bench, file: Path, workers: int, depth: int, block: int, direct: bool) -> str:
    job: dict[str, Any] = {
        "backend": "posix", "rw": "randread", "block_size": block, "filename": str(file), "numjobs": workers,
        "iodepth": depth, "runtime": "500ms", "direct": direct, "invalidate": False,
        "random": {"once_per_block": False},
    }  # fmt: skip
    figures = bench.gdsfw(job)
    return f"{figures[IOPS] / 1e3:,.1f} ({figures[BANDWIDTH] / 1e9:.2f})"


def _size(nbytes: int) -> str:
    return f"{nbytes} B" if nbytes < KIB else f"{nbytes // KIB} KiB" if nbytes < MIB else f"{nbytes // MIB} MiB"


def startup(bench: Bench) -> Iterator[str]:
    """Seconds of whole processes, from start to exit."""
    one = bench.command({"backend": "noop", "rw": "read", "block_size": "4KiB", "size": "4KiB"})
    yield ""
    yield f"| whole process, {RUNS} runs after one | median | slowest | goal | |"
    yield "| --- | --- | --- | --- | --- |"
    for name, command, goal in (("gdsfw --help", [GDSFW, "--help"], 0.3), ("run of one noop I/O", one, 0.5)):
        seconds = sorted([_seconds(command) for _ in range(RUNS + 1)][1:])
        median = statistics.median(seconds)
        verdict = "reached" if median <= goal else "MISSED"
        yield f"| {name} | {median:.3f} s | {seconds[-1]:.3f} s | {goal:g} s | {verdict} |"


def _seconds(command: list[str]) -> float:
    before = time.monotonic()
    output(command)
    return time.monotonic() - before


def memory(bench: Bench) -> Iterator[str]:
    """Resident memory of a run with 16 workers: its peak, and whether it grows."""
    file = fill(bench.memory / "memory", 1 << 28)
    length = max(12, bench.memory_seconds)
    job: dict[str, Any] = {
        "backend": "posix", "rw": "randread", "block_size": "4KiB", "filename": str(file), "numjobs": 16,
        "runtime": f"{length}s", "direct": False, "invalidate": False, "random": {"once_per_block": False},
    }  # fmt: skip
    process = subprocess.Popen(bench.command(job))
    begin, early, late, peak = time.monotonic(), 0, 0, 0
    while process.poll() is None:
        status = _status(process.pid)
        if status:
            now, peak = status
            elapsed = time.monotonic() - begin
            early = early or (now if elapsed >= 10 else 0)
            late = now if elapsed < length else late  # writing the result takes memory of its own
        time.sleep(0.1)
    if process.returncode:
        raise SystemExit(f"memory: exit {process.returncode}")
    ios = json.loads((bench.scratch / "result.json").read_text())["jobs"][0]["read"]["ios"]
    yield ""
    yield f"| 16 workers, {length} s, {ios / 1e6:,.0f} million I/Os | resident | goal | |"
    yield "| --- | --- | --- | --- |"
    yield f"| peak | {peak / MIB:.1f} MiB | under 150 MiB | {'reached' if peak < 150 * MIB else 'MISSED'} |"
    flat = "reached" if late - early < MIB else "MISSED"
    seen = f"{early / MIB:.1f}, {late / MIB:.1f} MiB"
    yield f"| after 10 s, before the result is written | {seen} | within 1 MiB | {flat} |"


def _status(pid: int) -> tuple[int, int] | None:
    """Resident bytes now and at the peak; None once the process is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return None
    found = {line.split(":")[0]: int(line.split()[1]) * KIB for line in lines if line.startswith(("VmRSS:", "VmHWM:"))}
    return (found["VmRSS"], found["VmHWM"]) if len(found) == 2 else None


TABLES: dict[str, Callable[[Bench], Iterator[str]]] = {"startup": startup, "memory": memory, "scaling": scaling}
