"""Latencies in a log-linear histogram: constant memory, merged without loss, percentiles within a stated bound.

Values are unsigned 64-bit integers, nanoseconds in gdsfw. Every power of two is cut into 64 buckets of equal width,
and values below 128 have a bucket each:

    value                 buckets      width
    0 .. 127              0 .. 127     1
    128 .. 255            128 .. 191   2
    256 .. 511            192 .. 255   4
    ...
    2**63 .. 2**64 - 1    3712 .. 3775 2**57

A percentile is reported as the middle of its bucket, so its relative error is below 1/128 (0.8 %), and zero below
128 ns. Minimum, maximum, mean and standard deviation are kept exactly, beside the buckets. A histogram takes 30 KiB.
The shape is that of fio's stat.h and of HdrHistogram with two significant digits; native/histogram.c has the same
buckets.
"""

from __future__ import annotations

import math
from array import array
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

#: Buckets of one power of two, as a power of two.
SUB_BITS = 6
SUB_BUCKETS = 1 << SUB_BITS
#: Buckets in all: two groups of width 1, then one group for each of the exponents 7 to 63.
BUCKETS = (64 - SUB_BITS + 1) * SUB_BUCKETS
MAX_VALUE = 2**64 - 1


def bucket_index(value: int) -> int:
    """The bucket that `value` (0 to MAX_VALUE) is counted in."""
    shift = value.bit_length() - SUB_BITS - 1
    if shift <= 0:
        return value
    return shift * SUB_BUCKETS + (value >> shift)


def bucket_range(index: int) -> tuple[int, int]:
    """Smallest and largest value of a bucket."""
    shift = max(0, index // SUB_BUCKETS - 1)
    low = (index - shift * SUB_BUCKETS) << shift
    return low, low + (1 << shift) - 1


class Histogram:
    """Counts by bucket, with exact count, sum, sum of squares, minimum and maximum.

    Args:
        counts: one count for each of the BUCKETS buckets; None for an empty histogram.
        count: number of values.
        total_ns: their sum.
        min_ns, max_ns: smallest and largest value; 0 for an empty histogram.
        sum_sq: sum of the squares, in ns².

    Raises:
        ValueError: wrong number of buckets, or counts that do not add up to `count`.
    """

    __slots__ = ("count", "counts", "max_ns", "min_ns", "sum_sq", "total_ns")

    def __init__(
        self,
        counts: Iterable[int] | None = None,
        count: int = 0,
        total_ns: int = 0,
        min_ns: int = 0,
        max_ns: int = 0,
        sum_sq: int = 0,
    ) -> None:
        self.counts = array("Q", bytes(8 * BUCKETS) if counts is None else counts)
        self.count = count
        self.total_ns = total_ns
        self.min_ns = min_ns
        self.max_ns = max_ns
        self.sum_sq = sum_sq
        if len(self.counts) != BUCKETS:
            raise ValueError(f"a histogram has {BUCKETS} buckets, not {len(self.counts)}")
        if sum(self.counts) != count:
            raise ValueError(f"the buckets hold {sum(self.counts)} values, but count is {count}")

    @classmethod
    def of(cls, values: Iterable[int]) -> Histogram:
        """A histogram of `values` (ns)."""
        histogram = cls()
        for value in values:
            histogram.record(value)
        return histogram

    def record(self, value: int) -> None:
        """Count one value (ns, 0 to MAX_VALUE; what lies outside is counted as the nearest of the two)."""
        value = min(max(value, 0), MAX_VALUE)
        shift = value.bit_length() - SUB_BITS - 1
        self.counts[value if shift <= 0 else shift * SUB_BUCKETS + (value >> shift)] += 1
        if self.count == 0 or value < self.min_ns:
            self.min_ns = value
        if value > self.max_ns:
            self.max_ns = value
        self.count += 1
        self.total_ns += value
        self.sum_sq += value * value

    def merge(self, other: Histogram) -> None:
        """Add the values of `other` to this one; nothing is lost."""
        if other.count == 0:
            return
        self.counts = array("Q", map(int.__add__, self.counts, other.counts))
        self.min_ns = min(self.min_ns, other.min_ns) if self.count else other.min_ns
        self.max_ns = max(self.max_ns, other.max_ns)
        self.count += other.count
        self.total_ns += other.total_ns
        self.sum_sq += other.sum_sq

    @classmethod
    def merged(cls, histograms: Iterable[Histogram]) -> Histogram:
        """The sum of several histograms, which stay as they are."""
        result = cls()
        for histogram in histograms:
            result.merge(histogram)
        return result

    def percentile(self, percent: float) -> int | None:
        """The value (ns) that `percent` of the values do not exceed, by the nearest-rank rule; None when empty.

        The nearest rank of n values is ceil(percent / 100 * n), at least 1: always a value that occurred, here known
        to within 1/128 of itself and never outside minimum and maximum.

        Raises:
            ValueError: percent is not between 0 and 100.
        """
        if not 0 <= percent <= 100:
            raise ValueError(f"a percentile lies between 0 and 100, not at {percent}")
        if self.count == 0:
            return None
        # The decimal that was written (99.9), not the nearest binary fraction, which would shift the rank by one.
        rank = max(1, math.ceil(Fraction(str(percent)) * self.count / 100))
        return self._value_at(rank)

    def _value_at(self, rank: int) -> int:
        seen = 0
        for index, count in self.pairs():
            seen += count
            if seen >= rank:
                low, high = bucket_range(index)
                return min(max((low + high) // 2, self.min_ns), self.max_ns)
        raise AssertionError("the constructor checked that the counts add up")

    @property
    def mean(self) -> float | None:
        """Arithmetic mean in ns; None when empty."""
        return self.total_ns / self.count if self.count else None

    @property
    def stddev(self) -> float | None:
        """Standard deviation of the values as a whole population, in ns; None when empty."""
        if self.count == 0:
            return None
        # In integers: n * sum of squares - square of sum cancels catastrophically in floats.
        spread = max(0, self.count * self.sum_sq - self.total_ns**2)
        return math.sqrt(spread) / self.count

    def pairs(self) -> Iterator[tuple[int, int]]:
        """(bucket index, count) of the buckets that are not empty, in ascending order."""
        return ((index, count) for index, count in enumerate(self.counts) if count)

    def to_json(self) -> dict[str, Any]:
        """Everything as JSON types; `buckets` lists [index, count] of the buckets that are not empty."""
        return {
            "count": self.count,
            "total_ns": self.total_ns,
            "min_ns": self.min_ns,
            "max_ns": self.max_ns,
            "sum_sq": self.sum_sq,
            "buckets": [list(pair) for pair in self.pairs()],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Histogram:
        """The histogram that `to_json` wrote.

        Raises:
            KeyError, ValueError, TypeError: the data is not one.
        """
        counts = array("Q", bytes(8 * BUCKETS))
        for index, count in data["buckets"]:
            if not 0 <= index < BUCKETS:
                raise ValueError(f"bucket {index} is not between 0 and {BUCKETS - 1}")
            counts[index] = count
        return cls(counts, data["count"], data["total_ns"], data["min_ns"], data["max_ns"], data["sum_sq"])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Histogram):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        if self.count == 0:
            return "Histogram(empty)"
        return f"Histogram(count={self.count}, min={self.min_ns}, mean={self.mean:.0f}, max={self.max_ns} ns)"
