"""What is compared, and what each comparison must reach."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools import BANDWIDTH, IOPS, PER_CPU

if TYPE_CHECKING:
    from pairs import Figures
    from tools import Bench


@dataclass(frozen=True)
class Case:
    """One comparison of two programs: `goals` are the ratios ours / theirs to reach, by figure (higher is better)."""

    name: str
    goals: Mapping[str, float]
    ours: Callable[[], Figures]
    theirs: Callable[[], Figures]


def fill(path: Path, nbytes: int) -> Path:
    """A file of incompressible data, written once."""
    if not path.exists() or path.stat().st_size != nbytes:
        with path.open("wb") as file, Path("/dev/urandom").open("rb") as source:
            for _ in range(nbytes >> 20):
                file.write(source.read(1 << 20))
    return path


def noop(bench: Bench) -> Iterator[Case]:
    """The engine's own cost: nothing is moved."""
    job: Mapping[str, Any] = {
        "backend": "noop",
        "rw": "randread",
        "block_size": "4KiB",
        "size": "1GiB",
        "runtime": f"{bench.seconds}s",
    }
    fio = (
        "--ioengine=null", "--rw=randread", "--bs=4k", "--size=1g", "--time_based", f"--runtime={bench.seconds}",
        "--thread", "--norandommap",
    )  # fmt: skip
    loose = {**job, "random": {"once_per_block": False}}
    rows: tuple[tuple[str, float, Mapping[str, Any], tuple[str, ...]], ...] = (
        ("latencies on / fio null", 3.0, job, fio),
        ("once_per_block off / fio null", 3.5, loose, fio),
        (
            "once_per_block off, percentiles none / fio null gtod_reduce", 2.0,
            {**loose, "percentiles": "none"}, (*fio, "--gtod_reduce=1"),
        ),
    )  # fmt: skip
    for name, goal, ours, theirs in rows:
        yield Case(
            f"noop 4 KiB randread, {name}", {IOPS: goal}, partial(bench.gdsfw, ours), partial(bench.fio, *theirs)
        )
    yield Case(
        "noop 4 KiB randread, once_per_block off / bare C loop",
        {IOPS: 0.5},
        partial(bench.gdsfw, loose),
        partial(bench.cloop, "noop", 4096, 1),
    )


def tmpfs(bench: Bench) -> Iterator[Case]:
    """System call cost: 4 KiB from memory."""
    files = [fill(bench.memory / f"tmpfs.{index}", 1 << 28) for index in range(2)]
    for workers in (1, 2):
        job: Mapping[str, Any] = {
            "backend": "posix", "io_path": "psync", "rw": "randread", "block_size": "4KiB", "filename": str(files[0]),
            "numjobs": workers, "runtime": f"{bench.seconds}s", "direct": False, "invalidate": False,
            "random": {"once_per_block": False},
        }  # fmt: skip
        fio = (
            "--ioengine=psync", "--rw=randread", "--bs=4k", f"--filename={files[0]}", "--time_based", "--thread",
            f"--runtime={bench.seconds}", f"--numjobs={workers}", "--norandommap", "--invalidate=0",
            "--group_reporting",
        )  # fmt: skip
        name = f"tmpfs 4 KiB randread psync, {workers} worker{'s'[: workers > 1]}"
        yield Case(f"{name} / fio psync", {IOPS: 1.0}, partial(bench.gdsfw, job), partial(bench.fio, *fio))
        yield Case(
            f"{name} / bare C loop",
            {IOPS: 0.97},
            partial(bench.gdsfw, job),
            partial(bench.cloop, "pread", 4096, workers, files[:1]),
        )


def sequential(bench: Bench) -> Iterator[Case]:
    """1 MiB sequential on the disk file system, through the page cache and around it."""
    for direct in (False, True):
        for rw in ("read", "write"):
            job: Mapping[str, Any] = {
                "backend": "posix", "io_path": "psync", "rw": rw, "block_size": "1MiB", "size": "512MiB",
                "directory": str(bench.disk), "direct": direct,
            }  # fmt: skip
            if rw == "write":
                job = {**job, "allow_overwrite": True, "end_fsync": True}
            fio = (
                "--ioengine=psync", f"--rw={rw}", "--bs=1m", "--size=512m", f"--directory={bench.disk}", "--thread",
                f"--direct={int(direct)}", "--end_fsync=1",
            )  # fmt: skip
            yield Case(
                f"{'direct' if direct else 'buffered'} 1 MiB sequential {rw}, psync / fio psync",
                {BANDWIDTH: 1.0},
                partial(bench.gdsfw, job),
                partial(bench.fio, *fio),
            )


def uring(bench: Bench) -> Iterator[Case]:
    """io_uring at depth 32, 4 KiB: a device with direct I/O, and memory."""
    disk, memory = fill(bench.disk / "uring", 1 << 29), fill(bench.memory / "uring", 1 << 28)
    everything = {IOPS: 1.0, PER_CPU: 1.0}
    fixed = {IOPS: 1.0, PER_CPU: 1 / 0.95}
    # batch, direct, registered, goals
    rows: tuple[tuple[str, Path, int, bool, bool, Mapping[str, float]], ...] = (
        ("ext4 O_DIRECT depth 32", disk, 1, True, False, everything),
        ("ext4 O_DIRECT depth 32, fixed buffers and files", disk, 1, True, True, fixed),
        ("tmpfs depth 32 batch 16", memory, 16, False, False, {IOPS: 1.1}),
        ("page cache of ext4, depth 32 batch 16", disk, 16, False, False, {IOPS: 1.1}),
    )
    for name, file, batch, direct, registered, goals in rows:
        _warm(file)
        job: Mapping[str, Any] = {
            "backend": "posix", "io_path": "io_uring", "rw": "randread", "block_size": "4KiB", "filename": str(file),
            "iodepth": 32, "iodepth_batch": batch, "runtime": f"{bench.seconds}s", "direct": direct,
            "invalidate": False, "register_buffers": "once" if registered else "none",
            "random": {"once_per_block": False},
        }  # fmt: skip
        fio = [
            "--ioengine=io_uring", "--rw=randread", "--bs=4k", f"--filename={file}", "--time_based", "--thread",
            f"--runtime={bench.seconds}", "--iodepth=32", f"--direct={int(direct)}", "--norandommap", "--invalidate=0",
            f"--iodepth_batch_submit={batch}", f"--iodepth_batch_complete_min={batch}",
        ]  # fmt: skip
        fio += ["--fixedbufs", "--registerfiles"] if registered else []
        ours = partial(bench.gdsfw, job)
        yield Case(f"{name} / fio io_uring", goals, ours, partial(bench.fio, *fio))
        loop = partial(bench.uringloop, 4096, 32, batch, registered, direct, file)
        yield Case(f"{name} / bare C loop", {IOPS: 0.95}, ours, loop)


def _warm(file: Path) -> None:
    with file.open("rb") as stream:
        while stream.read(1 << 20):
            pass


GROUPS: dict[str, Callable[[Bench], Iterator[Case]]] = {
    "noop": noop,
    "tmpfs": tmpfs,
    "sequential": sequential,
    "uring": uring,
}
