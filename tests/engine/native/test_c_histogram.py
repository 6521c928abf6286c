from __future__ import annotations

import ctypes as c
import random

from gdsfw.engine import native, spec
from gdsfw.engine.histogram import BUCKETS, MAX_VALUE, bucket_index, bucket_range
from hypothesis import given
from hypothesis import strategies as st

values = st.one_of(st.integers(0, MAX_VALUE), st.integers(0, 63).flatmap(lambda k: st.integers(0, 2**k)))


@given(values)
def test_compiled_bucket_is_the_python_twins(value: int) -> None:
    assert native.engine().library.gdsfw_histogram_index(value) == bucket_index(value)


@given(values)
def test_middle_of_the_compiled_bucket_is_within_the_stated_bound(value: int) -> None:
    low, high = bucket_range(native.engine().library.gdsfw_histogram_index(value))
    assert low <= value <= high
    assert abs((low + high) // 2 - value) * 128 <= value


def test_every_power_of_two_and_its_neighbours_fall_into_ascending_buckets(library: c.CDLL) -> None:
    around = sorted({(1 << k) + d for k in range(64) for d in (-1, 0, 1) if 0 <= (1 << k) + d <= MAX_VALUE})
    indices = [library.gdsfw_histogram_index(value) for value in around]
    assert indices == sorted(indices)
    assert indices[0] == 0
    assert library.gdsfw_histogram_index(MAX_VALUE) == BUCKETS - 1


def test_percentiles_of_compiled_counts_agree_with_exact_ones(library: c.CDLL) -> None:
    rng = random.Random(5)
    latencies = sorted(int(rng.lognormvariate(9, 2)) for _ in range(20_000))
    counts = [0] * BUCKETS
    for latency in latencies:
        counts[library.gdsfw_histogram_index(latency)] += 1
    for percent in (1, 50, 90, 99, 99.9):
        rank = -(-len(latencies) * percent // 100)
        exact = latencies[int(rank) - 1]
        seen = 0
        for index, count in enumerate(counts):
            seen += count
            if seen >= rank:
                low, high = bucket_range(index)
                assert abs((low + high) // 2 - exact) * 128 <= exact
                break


def test_loop_counts_every_io_in_its_histogram(run, make_spec, noop_path) -> None:  # type: ignore[no-untyped-def]
    result = run(make_spec(length=40_000 * 4096), noop_path())
    clat = result.read.clat
    assert clat.count == result.read.ios == 40_000
    assert clat.min_ns <= clat.percentile(50) <= clat.max_ns
    assert clat.total_ns <= result.ended_ns - result.started_ns
    assert result.read.lat == clat
    assert result.read.slat.count == 0
    assert result.ended_by is spec.EndedBy.IO_SIZE
