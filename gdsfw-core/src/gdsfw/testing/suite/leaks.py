"""Nothing is left behind, however often a job is run."""

from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gdsfw.testing.suite.common import data, fails

if TYPE_CHECKING:
    from gdsfw.testing.subject import Subject

WARM_UP = 20
BLOCK = 65536


class Footprint(NamedTuple):
    """What the process holds: numbers of descriptors, threads and mappings, and mapped bytes."""

    descriptors: int
    threads: int
    mappings: int
    nbytes: int

    @classmethod
    def now(cls) -> Footprint:
        """Look at this process."""
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        return cls(
            len(os.listdir("/proc/self/fd")),  # noqa: PTH208 - a path object for each would be garbage
            sum(_is_thread(task) for task in Path("/proc/self/task").iterdir()),
            Path("/proc/self/maps").read_text().count("\n"),
            pages * os.sysconf("SC_PAGE_SIZE"),
        )


def _is_thread(task: Path) -> bool:
    """Whether it is a thread of ours and none of the kernel's for io_uring, which end when they like."""
    try:
        return not (task / "comm").read_text().startswith("iou-")
    except OSError:  # it has ended meanwhile
        return False


class TestLeaks:
    """Descriptors, threads and memory over as many jobs as the subject's `cycles`, 500 unless it says otherwise."""

    def test_many_jobs_leave_nothing_behind(self, subject: Subject) -> None:
        paths = subject.paths()
        for number in range(WARM_UP):
            _job(subject, paths[number % len(paths)])
        before = Footprint.now()
        for number in range(subject.cycles):
            _job(subject, paths[number % len(paths)])
        _compare(before, Footprint.now(), subject.cycles)

    def test_failed_jobs_leave_nothing_behind(self, subject: Subject) -> None:
        subject.need("data")
        for _ in range(WARM_UP):
            _failed_job(subject)
        before = Footprint.now()
        for _ in range(subject.cycles // 5):
            _failed_job(subject)
        _compare(before, Footprint.now(), subject.cycles // 5)


def _job(subject: Subject, path: str) -> None:
    with subject.rig(io_path=path, nbytes=BLOCK, block=BLOCK) as rig:
        rig.write(0, b"leak" * (BLOCK // 4))


def _failed_job(subject: Subject) -> None:
    with subject.rig(nbytes=4096) as rig:
        rig.write(0, data(4096))
    with fails(), subject.rig(names=["absent"], rw="read"):
        pass


def _compare(before: Footprint, after: Footprint, cycles: int) -> None:
    """The interpreter itself may map a little more; what leaks in every job, or every other, is far above that."""
    assert after.descriptors <= before.descriptors, f"{after.descriptors - before.descriptors} descriptors left open"
    assert after.threads <= before.threads, f"{after.threads - before.threads} threads left running"
    assert after.mappings <= before.mappings + cycles // 10, f"{after.mappings - before.mappings} mappings left"
    assert after.nbytes <= before.nbytes + cycles * BLOCK // 4, f"{after.nbytes - before.nbytes} bytes left mapped"
