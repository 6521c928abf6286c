"""Load shapes in gdsfw's words and in fio's, and what must be the same of the two."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Shape:
    """One load in two languages; both run on the same file of 8 MiB.

    Args:
        ours: keys of a gdsfw job. theirs: options of fio.
        same: what is compared; the names are those of CHECKS in shapes.py.
        note: where the two differ by intention.
    """

    name: str
    ours: Mapping[str, Any]
    theirs: tuple[str, ...]
    same: tuple[str, ...]
    note: str = ""


def _shape(name: str, ours: Mapping[str, Any], theirs: str, same: str, note: str = "") -> Shape:
    return Shape(name, ours, tuple(f"--{option}" for option in theirs.split()), tuple(same.split()), note)


LOOSE: Mapping[str, Any] = {"once_per_block": False}
#: Sixteen times the file, so that the distributions have something to show.
LONG: Mapping[str, Any] = {"io_size": "128MiB"}
FLUSHLESS = {"end_fsync": False}

SEQUENTIAL = (
    _shape("read", {"rw": "read"}, "rw=read", "order"),
    _shape("read, 64 KiB", {"rw": "read", "block_size": "64KiB"}, "rw=read bs=64k", "order"),
    _shape("write", {"rw": "write"}, "rw=write", "order"),
    _shape("write, 1 MiB", {"rw": "write", "block_size": "1MiB"}, "rw=write bs=1m", "order"),
    _shape("write, pieces of 12 KiB", {"rw": "write", "block_size": "12KiB", "size": "6MiB"},
           "rw=write bs=12k size=6m", "order"),
    _shape("read and write", {"rw": "readwrite"}, "rw=rw", "total share"),
    _shape("read and write, 80 % reads", {"rw": "readwrite", "rwmixread": 80}, "rw=rw rwmixread=80", "total share"),
    _shape("offset 1 MiB, size 4 MiB", {"rw": "read", "offset": "1MiB", "size": "4MiB"},
           "rw=read offset=1m size=4m", "order"),
    _shape("offset 25 %, size 50 %", {"rw": "read", "offset": "25%", "size": "50%"},
           "rw=read offset=25% size=50%", "order"),
    _shape("three loops", {"rw": "read", "loops": 3}, "rw=read loops=3", "order"),
    _shape("io_size below size", {"rw": "read", "io_size": "3MiB"}, "rw=read io_size=3m", "order"),
    _shape("io_size above size", {"rw": "read", "size": "4MiB", "io_size": "20MiB"},
           "rw=read size=4m io_size=20m", "order"),
    _shape("fsync every 16", {"rw": "write", "fsync": 16, **FLUSHLESS}, "rw=write fsync=16", "order flushes"),
    _shape("fdatasync every 32", {"rw": "write", "fdatasync": 32, **FLUSHLESS}, "rw=write fdatasync=32",
           "order", "gdsfw reports 64 flushes; fio's result counts no fdatasync"),
    _shape("fsync at the end", {"rw": "write", "end_fsync": True}, "rw=write end_fsync=1", "order"),
    _shape("think time 2 ms", {"rw": "read", "size": "512KiB", "think_time": "2ms"},
           "rw=read size=512k thinktime=2000", "order"),
)  # fmt: skip

RANDOM = (
    _shape("every block once", {"rw": "randread"}, "rw=randread", "counts coverage places"),
    _shape("every block once, write", {"rw": "randwrite"}, "rw=randwrite", "counts coverage places"),
    _shape("every block once, twice over", {"rw": "randread", "loops": 2}, "rw=randread loops=2",
           "counts coverage places"),
    _shape("every block once, 512 B of 1 MiB", {"rw": "randread", "block_size": 512, "size": "1MiB"},
           "rw=randread bs=512 size=1m", "counts coverage places"),
    _shape("every block once, part of the file", {"rw": "randread", "offset": "2MiB", "size": "3MiB"},
           "rw=randread offset=2m size=3m", "counts coverage places"),
    _shape("mix, half", {"rw": "randrw"}, "rw=randrw", "total share coverage places"),
    _shape("mix, 70 % reads", {"rw": "randrw", "rwmixread": 70}, "rw=randrw rwmixread=70",
           "total share coverage places"),
    _shape("mix, 30 % reads", {"rw": "randrw", "rwmixread": 30}, "rw=randrw rwmixread=30",
           "total share coverage places"),
    _shape("mix, all reads", {"rw": "randrw", "rwmixread": 100}, "rw=randrw rwmixread=100", "counts coverage places"),
    _shape("any block", {"rw": "randread", "random": LOOSE, **LONG}, "rw=randread norandommap io_size=128m",
           "counts coverage places"),
    _shape("any block, mix", {"rw": "randrw", "rwmixread": 70, "random": LOOSE, **LONG},
           "rw=randrw rwmixread=70 norandommap io_size=128m", "total share coverage places"),
    _shape("any block, part of the file", {"rw": "randread", "offset": "4MiB", "size": "1MiB", "random": LOOSE,
                                           "io_size": "16MiB"},
           "rw=randread offset=4m size=1m norandommap io_size=16m", "counts coverage places"),
    _shape("block_align 64 KiB", {"rw": "randread", "block_align": "64KiB", "random": LOOSE, **LONG},
           "rw=randread blockalign=64k norandommap io_size=128m", "counts coverage places"),
    _shape("io_uring, depth 16", {"rw": "randread", "iodepth": 16, "io_path": "io_uring"},
           "rw=randread iodepth=16 ioengine=io_uring", "counts coverage places"),
    _shape("four workers", {"rw": "randread", "numjobs": 4}, "rw=randread numjobs=4", "counts coverage places"),
)  # fmt: skip

BLOCKS = (
    _shape("pair 4 and 16 KiB, in order", {"rw": "readwrite", "block_size": {"read": "4KiB", "write": "16KiB"}},
           "rw=rw bs=4k,16k", "total share sizes"),
    _shape("pair 4 and 64 KiB", {"rw": "randrw", "block_size": {"read": "4KiB", "write": "64KiB"}, "random": LOOSE,
                                 **LONG}, "rw=randrw bs=4k,64k norandommap io_size=128m", "total share sizes places"),
    _shape("range 4 to 64 KiB, in order", {"rw": "read", "block_size": "4KiB-64KiB"},
           "rw=read bsrange=4k-64k", "total sizes", "one pass: fio's second has the sizes of its first again"),
    _shape("range 4 to 64 KiB", {"rw": "randread", "block_size": "4KiB-64KiB", "random": LOOSE, **LONG},
           "rw=randread bsrange=4k-64k norandommap io_size=128m", "total sizes"),
    _shape("pair of ranges", {"rw": "randrw", "block_size": {"read": "4KiB-16KiB", "write": "16KiB-64KiB"},
                              "random": LOOSE, **LONG},
           "rw=randrw bsrange=4k-16k,16k-64k norandommap io_size=128m", "total share sizes"),
    _shape("split 60 to 40", {"rw": "randread", "block_size": {"4KiB": 60, "64KiB": 40}, "random": LOOSE, **LONG},
           "rw=randread bssplit=4k/60:64k/40 norandommap io_size=128m", "total sizes"),
    _shape("split of three, write", {"rw": "randwrite", "block_size": {"4KiB": 10, "16KiB": 50, "32KiB": 40},
                                     "random": LOOSE, **LONG},
           "rw=randwrite bssplit=4k/10:16k/50:32k/40 norandommap io_size=128m", "total sizes"),
    _shape("pair of splits", {"rw": "randrw", "random": LOOSE, **LONG,
                              "block_size": {"read": {"4KiB": 50, "8KiB": 50}, "write": {"16KiB": 30, "32KiB": 70}}},
           "rw=randrw bssplit=4k/50:8k/50,16k/30:32k/70 norandommap io_size=128m", "total share sizes"),
)  # fmt: skip


def _hot(kind: str, theta: float, option: str, same: str = "counts ranks", note: str = "") -> Shape:
    return _shape(f"{kind} {theta:g}", {"rw": "randread", "random": {"distribution": kind, "theta": theta}, **LONG},
                  f"rw=randread random_distribution={option} norandommap io_size=128m", same, note)  # fmt: skip


#: fio's zipf is the approximation of Gray and others (1994), gdsfw's is exact, so the two differ a little by intention.
APPROXIMATE = "fio approximates; largest difference of the two cumulated shares given"
DISTRIBUTIONS = (
    _hot("zipf", 0.6, "zipf:0.6", "counts near", APPROXIMATE),
    _hot("zipf", 0.9, "zipf:0.9", "counts near", APPROXIMATE),
    _hot("zipf", 1.2, "zipf:1.2", "counts near", APPROXIMATE),
    _hot("pareto", 0.1, "pareto:0.1"),
    _hot("pareto", 0.2, "pareto:0.2"),
    _hot("pareto", 0.4, "pareto:0.4"),
    _hot("normal", 10, "normal:10", "counts",
         "fio's deviation is not what its option says, and it scatters the hot blocks: not comparable"),
    _hot("runs", 8, "random rw=randread:8", "counts runs", "fio's runs all have this length, gdsfw's have it as mean"),
)  # fmt: skip

TIMED = (
    _shape("500 I/Os a second", {"rw": "randread", "rate_iops": 500, "runtime": "2s"},
           "rw=randread rate_iops=500 time_based runtime=2", "pace"),
    _shape("4 MiB a second", {"rw": "randread", "rate": "4MiB/s", "runtime": "2s"},
           "rw=randread rate=4m time_based runtime=2", "pace"),
    _shape("write at 2 MiB a second, 16 KiB", {"rw": "write", "block_size": "16KiB", "rate": "2MiB/s", "runtime": "2s"},
           "rw=write bs=16k rate=2m time_based runtime=2", "pace"),
    _shape("poisson arrivals, 1,000 a second", {"rw": "randread", "rate_iops": 1000, "rate_process": "poisson",
                                                "runtime": "2s"},
           "rw=randread rate_iops=1000 rate_process=poisson time_based runtime=2", "about",
           "random arrivals: the count varies by its square root"),
)  # fmt: skip

DATA = (
    _shape("incompressible data", {"rw": "write", "block_size": "64KiB"}, "rw=write bs=64k refill_buffers", "zlib"),
    _shape("half compressible", {"rw": "write", "block_size": "64KiB", "buffer_compress": 50},
           "rw=write bs=64k refill_buffers buffer_compress_percentage=50 buffer_compress_chunk=4096", "zlib"),
    _shape("80 % compressible", {"rw": "write", "block_size": "64KiB", "buffer_compress": 80},
           "rw=write bs=64k refill_buffers buffer_compress_percentage=80 buffer_compress_chunk=4096", "zlib"),
    _shape("half repeated", {"rw": "write", "buffer_dedupe": 50}, "rw=write refill_buffers dedupe_percentage=50",
           "repeats", "fio repeats the block before, gdsfw one block"),
)  # fmt: skip

SHAPES = (*SEQUENTIAL, *RANDOM, *BLOCKS, *DISTRIBUTIONS, *TIMED, *DATA)
