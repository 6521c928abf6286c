"""What is compared, and what each comparison must reach."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tools import Bench


@dataclass(frozen=True)
class Case:
    """One comparison: `ours` and `theirs` give one figure each (higher is better); `goal` is the ratio to reach."""

    name: str
    goal: float
    unit: str
    ours: Callable[[], float]
    theirs: Callable[[], float]


def _fill(path: Path, nbytes: int) -> Path:
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
    yield Case(
        "noop 4 KiB randread, latencies on / fio null", 3.0, "IOPS", partial(bench.gdsfw, job), partial(bench.fio, *fio)
    )
    yield Case(
        "noop 4 KiB randread, once_per_block off / fio null",
        3.5,
        "IOPS",
        partial(bench.gdsfw, loose),
        partial(bench.fio, *fio),
    )
    yield Case(
        "noop 4 KiB randread, percentiles none / fio null gtod_reduce",
        2.0,
        "IOPS",
        partial(bench.gdsfw, {**loose, "percentiles": "none"}),
        partial(bench.fio, *fio, "--gtod_reduce=1"),
    )
    yield Case(
        "noop 4 KiB randread / bare C loop",
        0.5,
        "IOPS",
        partial(bench.gdsfw, loose),
        partial(bench.cloop, "noop", 4096, 1),
    )


def tmpfs(bench: Bench) -> Iterator[Case]:
    """System call cost: 4 KiB from memory."""
    files = [_fill(bench.memory / f"tmpfs.{index}", 1 << 28) for index in range(2)]
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
        yield Case(f"{name} / fio psync", 1.0, "IOPS", partial(bench.gdsfw, job), partial(bench.fio, *fio))
        yield Case(
            f"{name} / bare C loop",
            0.97,
            "IOPS",
            partial(bench.gdsfw, job),
            partial(bench.cloop, "pread", 4096, workers, files[:1]),
        )


def sequential(bench: Bench) -> Iterator[Case]:
    """1 MiB sequential on the disk file system, through the page cache and around it."""
    for direct in (False, True):
        for rw in ("read", "write"):
            job: Mapping[str, Any] = {
                "backend": "posix", "io_path": "psync", "rw": rw, "block_size": "1MiB", "size": "512MiB",
                "directory": str(bench.disk), "direct": direct, "allow_overwrite": True, "end_fsync": rw == "write",
            }  # fmt: skip
            fio = (
                "--ioengine=psync", f"--rw={rw}", "--bs=1m", "--size=512m", f"--directory={bench.disk}", "--thread",
                f"--direct={int(direct)}", "--end_fsync=1",
            )  # fmt: skip
            yield Case(
                f"{'direct' if direct else 'buffered'} 1 MiB sequential {rw}, psync / fio psync",
                1.0,
                "bytes/s",
                partial(bench.gdsfw, job, "bw_bytes"),
                partial(bench.fio, *fio, figure="bw_bytes"),
            )


GROUPS: dict[str, Callable[[Bench], Iterator[Case]]] = {"noop": noop, "tmpfs": tmpfs, "sequential": sequential}
