"""Verification, layout and rates: what proof of every byte costs, and whether a rate holds."""

from __future__ import annotations

import ctypes
import json
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from cases import Case
from tools import output

if TYPE_CHECKING:
    from tools import Bench

GIB, MIB = 1 << 30, 1 << 20
#: Bytes of the file in the comparisons of verification: a second or so of work.
SET = 4 * GIB
MIX = "bytes of the mix/s, until all is verified"
VERIFIED, PROCESS = "verified bytes/s", "bytes/s of the whole process"
RATE_SECONDS = 10


def verify(bench: Bench) -> Iterator[Case]:
    """A mix with verification, and a set of blocks written and then read back and compared.

    Of the mix, gdsfw compares what it reads; fio mixes without comparing, then reads its writes back and checks those.
    Both are asked for one pass over the same file, so that the bytes of the mix over the time until all is verified is
    what a user waits for. Of the set, both write every block once in random order and then compare every block.
    """
    common = {
        "backend": "posix", "io_path": "psync", "block_size": "16KiB", "size": SET, "verify": True,
        "directory": str(bench.memory), "direct": False, "invalidate": False, "end_fsync": False,
    }  # fmt: skip
    fio = (
        "--ioengine=psync", "--bs=16k", f"--size={SET}", "--verify=crc32c", "--verify_state_save=0",
        f"--filename={bench.memory / 'fio'}", "--thread", "--invalidate=0",
    )  # fmt: skip
    yield Case(
        "tmpfs randrw 70/30, 16 KiB, verified / fio verify=crc32c",
        {MIX: 1.5, VERIFIED: 1.5},
        partial(_our_mix, bench, {**common, "rw": "randrw", "rwmixread": 70, "io_size": SET}),
        partial(_fio_mix, *fio, "--rw=randrw", "--rwmixread=70"),
    )
    yield Case(
        "tmpfs randwrite, 16 KiB, then all compared / fio verify=crc32c",
        {VERIFIED: 1.5},
        partial(_our_set, bench, common),
        partial(_fio_mix, *fio, "--rw=randwrite"),
    )


def _our_mix(bench: Bench, job: Mapping[str, Any]) -> dict[str, float]:
    output(bench.command(job))
    done = bench.result()
    seconds = max(done[side]["runtime_ns"] for side in ("read", "write")) / 1e9
    moved = done["read"]["bytes"] + done["write"]["bytes"]
    return {MIX: moved / seconds, VERIFIED: done["verify"]["checked_bytes"] / seconds}


def _our_set(bench: Bench, job: Mapping[str, Any]) -> dict[str, float]:
    """Two jobs: the time of both, and nothing between them. The file stays, as fio's does: no pages are made anew."""
    output(bench.command({**job, "rw": "randwrite", "filename": "set"}))
    wrote = bench.result()
    output(bench.command({**job, "rw": "randread", "filename": "set"}))
    read = bench.result()
    seconds = (wrote["write"]["runtime_ns"] + read["read"]["runtime_ns"]) / 1e9
    return {VERIFIED: read["verify"]["checked_bytes"] / seconds}


def _fio_mix(*options: str) -> dict[str, float]:
    text = output(["fio", "--name=bench", "--output-format=json", *options])
    (job,) = json.loads(text[text.index("{") :])["jobs"]
    seconds = job["job_runtime"] / 1e3
    compared = job["write"]["io_bytes"]  # it reads back what it wrote, and counts that as reads
    mixed = job["read"]["io_bytes"] + job["write"]["io_bytes"] - compared
    return {MIX: mixed / seconds, VERIFIED: compared / seconds}


def layout(bench: Bench) -> Iterator[Case]:
    """10 GiB of incompressible data laid out for a read job, flushed at the end, by both."""
    job: Mapping[str, Any] = {
        "backend": "posix", "rw": "read", "block_size": "1MiB", "size": "10GiB", "io_size": "1MiB",
        "directory": str(bench.disk / "layout"),
    }  # fmt: skip
    fio = ("--rw=read", "--bs=1m", "--size=10g", "--create_only=1", "--refill_buffers", "--thread")

    def ours() -> dict[str, float]:
        return {PROCESS: 10 * GIB / _seconds(bench, lambda: output(bench.command(job)))}

    def theirs() -> dict[str, float]:
        command = ["fio", "--name=bench", f"--directory={bench.disk / 'layout'}", *fio]
        return {PROCESS: 10 * GIB / _seconds(bench, lambda: output(command))}

    yield Case("layout of 10 GiB / fio's own layout", {PROCESS: 1.0}, ours, theirs)


def _seconds(bench: Bench, run: Callable[[], object]) -> float:
    """Seconds of `run` in an empty folder, which is emptied again."""
    folder = bench.disk / "layout"
    folder.mkdir()
    begin = time.monotonic()
    run()
    seconds = time.monotonic() - begin
    for path in [*folder.iterdir()]:
        path.unlink()
    folder.rmdir()
    return seconds


def rates(bench: Bench) -> Iterator[str]:
    """Rates over ten seconds, from a file in memory."""
    yield ""
    yield f"| rate over {RATE_SECONDS} s | asked for | seen | off by | goal | |"
    yield "| --- | --- | --- | --- | --- | --- |"
    rows: tuple[tuple[str, dict[str, Any], str, float], ...] = (
        ("10 MiB/s, 16 KiB reads", {"rw": "randread", "rate": "10MiB/s", "block_size": "16KiB"}, "bw_bytes", 10 * MIB),
        ("10 MiB/s, 16 KiB writes", {"rw": "write", "rate": "10MiB/s", "block_size": "16KiB"}, "bw_bytes", 10 * MIB),
        ("1,000 I/Os a second, 4 KiB reads", {"rw": "randread", "rate_iops": 1000}, "iops", 1000),
        ("1,000 a second, depth 8", {"rw": "randread", "rate_iops": 1000, "iodepth": 8}, "iops", 1000),
    )
    for name, shape, figure, asked in rows:
        job = {
            "backend": "posix", "size": "64MiB", "directory": str(bench.memory), "direct": False,
            "runtime": f"{RATE_SECONDS}s", **shape,
        }  # fmt: skip
        output(bench.command(job))
        seen = float(bench.result()["write" if shape["rw"] == "write" else "read"][figure])
        off = abs(seen / asked - 1)
        verdict = "reached" if off <= 0.01 else "MISSED"
        yield f"| {name} | {asked:,.0f} | {seen:,.1f} | {100 * off:.2f} % | within 1 % | {verdict} |"


def pattern(bench: Bench) -> Iterator[str]:
    """Filling and verifying against memcpy(3), block by block over a buffer, in this process."""
    from gdsfw.backend import Pattern
    from gdsfw.engine.pattern import fill
    from gdsfw.engine.pattern import verify as compare

    yield ""
    yield "| pattern, one thread | GB/s | share of memcpy | |"
    yield "| --- | --- | --- | --- |"
    for nbytes, block, where in ((1 << 18, 1 << 18, "cache"), (1 << 28, 1 << 20, "memory")):
        source, target = memoryview(bytearray(nbytes)), memoryview(bytearray(nbytes))
        of_file = Pattern(1, 1)
        addresses = [ctypes.addressof(ctypes.c_char.from_buffer(view)) for view in (target, source)]

        def copy(at: int, size: int, to: int = addresses[0], by: int = addresses[1]) -> object:
            return ctypes.memmove(to + at, by + at, size)

        def write(at: int, size: int, view: memoryview = source, of_file: Pattern = of_file) -> None:
            fill(view[at : at + size], at, of_file)

        def check(at: int, size: int, view: memoryview = source, of_file: Pattern = of_file) -> object:
            return compare(view[at : at + size], at, of_file)

        speeds = {step: _speed(step, nbytes, block) for step in (copy, write, check)}
        for name, step in (("memcpy", copy), ("fill", write), ("verify", check)):
            share = f"{100 * speeds[step] / speeds[copy]:.0f} %"
            yield f"| {name}, blocks of {block >> 10} KiB in {where} | {speeds[step] / 1e9:.1f} | {share} | |"


def _speed(step: Callable[[int, int], object], nbytes: int, block: int) -> float:
    """Bytes per second, median of nine passes over the buffer of at least 64 MiB each."""
    seen = []
    rounds = max(1, (64 * MIB) // nbytes)
    for _ in range(10):
        begin = time.monotonic()
        for _ in range(rounds):
            for at in range(0, nbytes, block):
                step(at, block)
        seen.append(rounds * nbytes / (time.monotonic() - begin))
    return statistics.median(seen[1:])


GROUPS: dict[str, Callable[[Bench], Iterator[Case]]] = {"verify": verify, "layout": layout}
TABLES: dict[str, Callable[[Bench], Iterator[str]]] = {"rates": rates, "pattern": pattern}
