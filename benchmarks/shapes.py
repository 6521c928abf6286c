"""The same loads by gdsfw and fio on one file, compared I/O by I/O: python benchmarks/shapes.py [WORD ...] [-o FILE].

gdsfw's I/Os come from its `io_log`, fio's from its `write_iolog`. Counts are compared as numbers; shares, sizes and
places by a two-sample chi-square test (p above 0.001, the seeds are fixed).
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import subprocess
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from shape_jobs import SHAPES, Shape

FILE_BYTES = 8 << 20
BINS = 32
LEAST_P = 0.001
HEAD = "| load | bytes | I/Os | reads | covered | compared: result | |"


@dataclass(frozen=True)
class IO:
    write: bool
    offset: int
    size: int


@dataclass(frozen=True)
class Trace:
    """What one program did: its I/Os in order, the numbers it reported, and the file afterwards.

    Args:
        reported: bytes, I/Os and reads. The log of fio's threads loses lines when several write it.
    """

    ios: Sequence[IO]
    reported: tuple[int, int, int]
    flushes: int
    seconds: float
    file: bytes

    def reads(self) -> int:
        return sum(not io.write for io in self.ios)

    def covered(self) -> int:
        """Bytes of the file that were touched."""
        end = covered = 0
        for io in sorted(self.ios, key=lambda io: io.offset):
            stop = io.offset + io.size
            covered += max(0, stop - max(end, io.offset))
            end = max(end, stop)
        return covered


def _new_file(folder: Path) -> Path:
    path = folder / "file"
    path.write_bytes(os.urandom(FILE_BYTES))
    return path


def run_gdsfw(shape: Shape, folder: Path) -> Trace:
    """Run the shape with gdsfw in this process."""
    import gdsfw
    from gdsfw.workload.loader import load_data

    path, log = _new_file(folder), folder / "io.csv"
    job: dict[str, Any] = {
        "name": "shape", "backend": "posix", "io_path": "psync", "filename": str(path), "direct": False,
        "block_size": "4KiB", "invalidate": False, "io_log": str(log), **shape.ours,
    }  # fmt: skip
    if "write" in job["rw"] or "rw" in job["rw"]:
        job["allow_overwrite"] = True
    result = gdsfw.run(load_data({"version": 1, "jobs": [job]})).jobs[0]
    if result.exit_code:
        raise SystemExit(f"{shape.name}: gdsfw: {result.errors}")
    with log.open(newline="", encoding="ascii") as file:
        rows = [IO(row["operation"] == "write", int(row["offset"]), int(row["bytes"])) for row in csv.DictReader(file)]
    log.unlink()
    seconds = max(side.runtime_ns for side in (result.read, result.write) if side) / 1e9
    sides = [side for side in (result.read, result.write) if side]
    reported = (sum(s.bytes for s in sides), sum(s.ios for s in sides), result.read.ios if result.read else 0)
    return Trace(rows, reported, result.flushes, seconds, path.read_bytes())


def run_fio(shape: Shape, folder: Path) -> Trace:
    """Run the shape with fio."""
    path, log = _new_file(folder), folder / "io.log"
    command = [
        "fio", "--name=shape", "--thread", "--ioengine=psync", "--bs=4k", f"--filename={path}", "--invalidate=0",
        f"--write_iolog={log}", "--output-format=json", *shape.theirs,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode:
        raise SystemExit(f"{shape.name}: {' '.join(command)}: {done.stderr}{done.stdout[-500:]}")
    jobs = json.loads(done.stdout[done.stdout.index("{") :])["jobs"]
    rows = []
    for line in log.read_text(encoding="ascii").splitlines():
        words = line.split()
        if len(words) == 5 and words[2] in ("read", "write"):
            rows.append(IO(words[2] == "write", int(words[3]), int(words[4])))
    log.unlink()
    seconds = max(job[side]["runtime"] for job in jobs for side in ("read", "write")) / 1e3
    sides = [job[side] for job in jobs for side in ("read", "write")]
    reads = sum(job["read"]["total_ios"] for job in jobs)
    reported = (sum(side["io_bytes"] for side in sides), sum(side["total_ios"] for side in sides), reads)
    return Trace(rows, reported, sum(job["sync"]["total_ios"] for job in jobs), seconds, path.read_bytes())


# ---- comparisons: (is it the same?, what was seen) -----------------------------------------------------------------

Answer = tuple[bool, str]


def chi_square(ours: Sequence[int], theirs: Sequence[int]) -> float:
    """p of two samples being drawn alike (two-sample chi-square; tail by Wilson and Hilferty 1931)."""
    pairs = [(a, b) for a, b in zip(ours, theirs, strict=True) if a + b]
    if len(pairs) < 2:
        return 1.0
    k = math.sqrt(sum(b for _, b in pairs) / max(1, sum(a for a, _ in pairs))) if any(a for a, _ in pairs) else 1.0
    statistic = sum((k * a - b / k) ** 2 / (a + b) for a, b in pairs)
    n = len(pairs) - 1
    z = ((statistic / n) ** (1 / 3) - (1 - 2 / (9 * n))) / math.sqrt(2 / (9 * n))
    return math.erfc(z / math.sqrt(2)) / 2


def _alike(ours: Sequence[int], theirs: Sequence[int]) -> Answer:
    p = chi_square(ours, theirs)
    return p > LEAST_P, f"p = {p:.2g}"


def _counters(ours: Counter[Any], theirs: Counter[Any]) -> Answer:
    keys = sorted({*ours, *theirs})
    return _alike([ours[key] for key in keys], [theirs[key] for key in keys])


def _order(ours: Trace, theirs: Trace) -> Answer:
    same = list(ours.ios) == list(theirs.ios)
    return same, "every I/O equal" if same else "not equal"


def _counts(ours: Trace, theirs: Trace) -> Answer:
    same = ours.reported == theirs.reported
    return same, "equal" if same else f"{ours.reported} and {theirs.reported}"


def _total(ours: Trace, theirs: Trace) -> Answer:
    """A job with blocks of several sizes ends within a block of its size."""
    largest = max(io.size for io in (*ours.ios, *theirs.ios))
    difference = abs(ours.reported[0] - theirs.reported[0])
    return difference <= largest, f"{difference} B apart"


def _share(ours: Trace, theirs: Trace) -> Answer:
    return _alike(*([t.reads(), len(t.ios) - t.reads()] for t in (ours, theirs)))


def _sizes(ours: Trace, theirs: Trace) -> Answer:
    answers = []
    for write in (False, True):
        sides = [Counter(io.size for io in t.ios if io.write == write) for t in (ours, theirs)]
        if any(sides):
            # The last block of a pass or of the job is cut to fit, which gives sizes that occur once or twice.
            common = [Counter({s: n for s, n in side.items() if n > 0.001 * sum(side.values())}) for side in sides]
            answers.append(_counters(*common))
    return all(same for same, _ in answers), ", ".join(text for _, text in answers)


def _coverage(ours: Trace, theirs: Trace) -> Answer:
    difference = abs(ours.covered() - theirs.covered()) / FILE_BYTES
    return difference <= 0.001, f"{100 * difference:.2g} % apart"


def _places(ours: Trace, theirs: Trace) -> Answer:
    begin = min(io.offset for io in (*ours.ios, *theirs.ios))
    span = max(io.offset + io.size for io in (*ours.ios, *theirs.ios)) - begin
    bins = [Counter((io.offset - begin) * BINS // span for io in t.ios) for t in (ours, theirs)]
    return _counters(*bins)


def _by_rank(trace: Trace) -> list[int]:
    """I/Os of the hottest block, of the next two, of the next four ..."""
    counts = sorted(Counter(io.offset for io in trace.ios).values(), reverse=True)
    return [sum(counts[(1 << i) - 1 : (2 << i) - 1]) for i in range(11)]


def _ranks(ours: Trace, theirs: Trace) -> Answer:
    return _alike(_by_rank(ours), _by_rank(theirs))


def _near(ours: Trace, theirs: Trace) -> Answer:
    shares = [[sum(ranks[: i + 1]) / sum(ranks) for i in range(11)] for ranks in (_by_rank(ours), _by_rank(theirs))]
    largest = max(abs(a - b) for a, b in zip(*shares, strict=True))
    return largest < 0.1, f"{100 * largest:.1f} points"


def _runs(ours: Trace, theirs: Trace) -> Answer:
    lengths = [
        len(t.ios) / (1 + sum(b.offset != a.offset + a.size for a, b in pairwise(t.ios))) for t in (ours, theirs)
    ]
    return abs(lengths[0] / lengths[1] - 1) < 0.05, f"mean {lengths[0]:.2f} and {lengths[1]:.2f}"


def _flushes(ours: Trace, theirs: Trace) -> Answer:
    """fio has none after the last write."""
    return abs(ours.flushes - theirs.flushes) <= 1, f"{ours.flushes} and {theirs.flushes}"


def _rates(ours: Trace, theirs: Trace) -> tuple[float, float]:
    return len(ours.ios) / ours.seconds, len(theirs.ios) / theirs.seconds


def _pace(ours: Trace, theirs: Trace) -> Answer:
    a, b = _rates(ours, theirs)
    return abs(a / b - 1) < 0.1, f"{a:,.1f}/s and {b:,.1f}/s"


def _about(ours: Trace, theirs: Trace) -> Answer:
    a, b = len(ours.ios), len(theirs.ios)
    return abs(a - b) < 4 * math.sqrt(a + b), f"{a} and {b}"


def _zlib(ours: Trace, theirs: Trace) -> Answer:
    ratios = [len(zlib.compress(t.file, 1)) / len(t.file) for t in (ours, theirs)]
    return abs(ratios[0] - ratios[1]) < 0.05, f"left after zlib: {100 * ratios[0]:.0f} % and {100 * ratios[1]:.0f} %"


def _repeats(ours: Trace, theirs: Trace) -> Answer:
    shares = []
    for trace in (ours, theirs):
        blocks = [trace.file[at : at + 4096] for at in range(0, len(trace.file), 4096)]
        shares.append(1 - len(set(blocks)) / len(blocks))
    return abs(shares[0] - shares[1]) < 0.05, f"{100 * shares[0]:.0f} % and {100 * shares[1]:.0f} % repeat"


CHECKS: dict[str, Callable[[Trace, Trace], Answer]] = {
    "order": _order, "counts": _counts, "total": _total, "share": _share, "sizes": _sizes, "coverage": _coverage,
    "places": _places, "ranks": _ranks, "near": _near, "runs": _runs, "flushes": _flushes, "pace": _pace,
    "about": _about, "zlib": _zlib, "repeats": _repeats,
}  # fmt: skip


def compare(shape: Shape, folder: Path) -> tuple[str, list[str]]:
    """A line of the table, and the names of what is not the same."""
    ours, theirs = run_gdsfw(shape, folder), run_fio(shape, folder)
    answers = {name: CHECKS[name](ours, theirs) for name in shape.same}
    wrong = [f"{name}: {text}" for name, (same, text) in answers.items() if not same]
    cells = [
        shape.name,
        *(f"{ours.reported[i]:,} / {theirs.reported[i]:,}" for i in (0, 1)),
        " / ".join(f"{100 * t.reads() / len(t.ios):.1f} %" for t in (ours, theirs)),
        " / ".join(f"{100 * t.covered() / FILE_BYTES:.1f} %" for t in (ours, theirs)),
        "; ".join(f"{name}: {text}" for name, (_, text) in answers.items()),
        "; ".join(filter(None, ("DIFFERS" if wrong else "same", shape.note))),
    ]
    return "| " + " | ".join(cells) + " |", wrong


def table(shapes: Sequence[Shape], folder: Path) -> Iterator[str]:
    """All lines of the table, each pair `gdsfw / fio`; exit 1 at its end when anything differs."""
    yield HEAD
    yield "|" + " --- |" * 7
    differ = 0
    for shape in shapes:
        line, wrong = compare(shape, folder)
        differ += bool(wrong)
        yield line
    yield ""
    yield f"{len(shapes)} loads, {differ} of them different."
    if differ:
        raise SystemExit(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="only loads whose name contains one of these")
    parser.add_argument("-o", "--output", type=Path, help="also write the table to this file")
    options = parser.parse_args()
    chosen = [s for s in SHAPES if not options.words or any(word in s.name for word in options.words)]
    lines: list[str] = []
    try:
        _print(chosen, lines)
    finally:
        if options.output:
            options.output.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _print(chosen: Sequence[Shape], lines: list[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="gdsfw-shapes-") as folder:
        for line in table(chosen, Path(folder)):
            print(line, flush=True)
            lines.append(line)


if __name__ == "__main__":
    main()
