"""Every comparison with fio and bare C loops, as interleaved pairs: python benchmarks/run.py [GROUP ...] [--help]."""

from __future__ import annotations

import argparse
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import cases
import integrity
import tables
from cases import Case
from pairs import interleave_figures
from tools import Bench

GROUPS = {**cases.GROUPS, **integrity.GROUPS}
TABLES = {**tables.TABLES, **integrity.TABLES}
NAMES = [*GROUPS, *TABLES]
HEAD = "| work | figure | gdsfw | other | median ratio | 95 % interval | goal | |"


def machine() -> list[str]:
    """What the figures were measured on."""
    model = next(
        (line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line),
        platform.machine(),
    )
    cpus = len([line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("processor")])
    fio = subprocess.run(["fio", "--version"], capture_output=True, text=True, check=False).stdout.strip()
    return [
        f"machine: {model}, {cpus} CPUs, Linux {platform.release()}, Python {platform.python_version()}, {fio}",
        f"date: {datetime.now(timezone.utc):%Y-%m-%d}",
    ]


def report(case: Case, pairs: int) -> Iterator[str]:
    """A line for each goal: both medians, the median ratio with its interval, and whether the goal is within it."""
    compared = interleave_figures(case.ours, case.theirs, pairs)
    for figure, goal in case.goals.items():
        seen = compared[figure]
        low, high = seen.interval
        ours, theirs = (sorted(figures)[len(figures) // 2] for figures in (seen.ours, seen.theirs))
        verdict = "reached" if seen.median >= goal else "within the interval" if high >= goal else "MISSED"
        yield (
            f"| {case.name} | {figure} | {ours:,.0f} | {theirs:,.0f} | {seen.median:.3f} | {low:.3f} to {high:.3f} "
            f"| {goal:.3g} | {verdict} |"
        )


def measure(groups: Sequence[str], bench: Bench, pairs: int) -> Iterator[str]:
    """Lines of all groups as they come."""
    pending = [name for name in groups if name in GROUPS]
    if pending:
        yield from ("", HEAD, "|" + " --- |" * HEAD.count(" | ") + " --- |")
    for name in pending:
        for case in GROUPS[name](bench):
            yield from report(case, pairs)
    for name in groups:
        if name in TABLES:
            yield from TABLES[name](bench)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("groups", nargs="*", choices=[*NAMES, []], help=f"any of {', '.join(NAMES)}; default: all")
    parser.add_argument("--pairs", type=int, default=9, help="pairs that count, after one that does not (9)")
    parser.add_argument("--seconds", type=int, default=2, help="length of one measurement (2)")
    parser.add_argument("--memory", type=Path, default=Path("/dev/shm"), help="a directory on tmpfs")
    parser.add_argument("--disk", type=Path, default=Path.cwd(), help="a directory on a disk file system")
    parser.add_argument("--memory-seconds", type=int, default=60, help="length of the run of group memory (60)")
    parser.add_argument("-o", "--output", type=Path, help="also write the table to this file")
    options = parser.parse_args()
    memory = Path(tempfile.mkdtemp(prefix="gdsfw-bench-", dir=options.memory))
    disk = Path(tempfile.mkdtemp(prefix="gdsfw-bench-", dir=options.disk))
    scratch = Path(tempfile.mkdtemp(prefix="gdsfw-bench-"))
    bench = Bench(scratch, memory, disk, options.seconds, options.memory_seconds)
    lines = [*machine(), f"pairs: {options.pairs} of {options.seconds} s, interleaved"]
    print("\n".join(lines), flush=True)
    try:
        for line in measure(options.groups or NAMES, bench, options.pairs):
            lines.append(line)
            print(line, flush=True)
    finally:
        for folder in (memory, disk, scratch):
            shutil.rmtree(folder)
        if options.output:
            options.output.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
