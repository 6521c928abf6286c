"""When the next I/O may start: rates in bytes and in I/Os, evenly spaced or poisson. The twin of native/pace.c."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gdsfw.engine.streams import Purpose, Stream

if TYPE_CHECKING:
    from gdsfw.engine.spec import LoopSpec

SECOND = 1_000_000_000


class Pace:
    """The schedule of one direction.

    Lateness is not forgiven: a loop that fell behind catches up, and latencies from the scheduled start show what
    waiting users would have seen.

    Args:
        rate_bytes, rate_iops: per second; 0 for no limit, and the slower of two counts.
        arrivals: draws for poisson arrivals, None for evenly spaced ones.
    """

    __slots__ = ("_arrivals", "_bytes", "_ios", "_next", "_rate_bytes", "_rate_iops", "limits", "start_ns")

    def __init__(self, rate_bytes: int, rate_iops: int, arrivals: Stream | None) -> None:
        self._rate_bytes = rate_bytes
        self._rate_iops = rate_iops
        self._arrivals = arrivals
        self._bytes = 0
        self._ios = 0
        self._next = 0.0
        self.limits = bool(rate_bytes or rate_iops)
        #: CLOCK_MONOTONIC of the first I/O.
        self.start_ns = 0

    def schedule(self, size: int) -> int:
        """The scheduled start (CLOCK_MONOTONIC, ns) of the next I/O, of `size` bytes."""
        if self._arrivals is not None:
            due = int(self._next)
            self._next -= math.log(1.0 - self._arrivals.unit()) * self._mean_interval(size)
        else:
            # From the totals, so that nothing is lost by rounding.
            due = max(_elapsed(self._bytes, self._rate_bytes), _elapsed(self._ios, self._rate_iops))
        self._bytes += size
        self._ios += 1
        return self.start_ns + due

    def _mean_interval(self, size: int) -> float:
        by_bytes = size * 1e9 / self._rate_bytes if self._rate_bytes else 0.0
        by_ios = 1e9 / self._rate_iops if self._rate_iops else 0.0
        return max(by_bytes, by_ios)


def _elapsed(amount: int, rate: int) -> int:
    return amount * SECOND // rate if rate else 0


def paces(spec: LoopSpec) -> tuple[Pace, Pace]:
    """The schedules of reads and writes; poisson arrivals of both come from one stream."""
    arrivals = Stream(spec.seed, Purpose.ARRIVAL) if spec.rate_process == "poisson" else None
    return (
        Pace(spec.rate_bytes[0], spec.rate_iops[0], arrivals),
        Pace(spec.rate_bytes[1], spec.rate_iops[1], arrivals),
    )
