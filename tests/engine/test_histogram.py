from __future__ import annotations

import json
import math
import statistics
from decimal import Decimal

import pytest
from gdsfw.engine.histogram import BUCKETS, MAX_VALUE, Histogram, bucket_index, bucket_range
from hypothesis import example, given
from hypothesis import strategies as st

# Every magnitude as often as every other one, so that all groups of buckets are visited.
VALUES = st.integers(0, 64).flatmap(lambda bits: st.integers((1 << bits) >> 1, (1 << bits) - 1 if bits else 0))
SAMPLES = st.lists(VALUES, min_size=1, max_size=200)
PERCENTILES = st.sampled_from([0, 1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9, 99.99, 100]) | st.floats(0, 100)


def nearest_rank(values: list[int], percent: float) -> int:
    ordered = sorted(values)
    return ordered[max(1, math.ceil(Decimal(str(percent)) * len(ordered) / 100)) - 1]


def test_the_buckets_tile_the_whole_range_in_order() -> None:
    expected_low = 0
    for index in range(BUCKETS):
        low, high = bucket_range(index)
        assert low == expected_low
        assert bucket_index(low) == bucket_index(high) == index
        expected_low = high + 1
    assert expected_low == MAX_VALUE + 1


@given(SAMPLES, PERCENTILES)
def test_a_percentile_is_within_one_128th_of_the_exact_one(values: list[int], percent: float) -> None:
    exact = nearest_rank(values, percent)
    seen = Histogram.of(values).percentile(percent)
    assert seen is not None
    assert abs(seen - exact) * 128 < max(exact, 1)
    assert min(values) <= seen <= max(values)


@given(st.lists(st.integers(0, 127), min_size=1), PERCENTILES)
def test_percentiles_of_values_below_128_are_exact(values: list[int], percent: float) -> None:
    assert Histogram.of(values).percentile(percent) == nearest_rank(values, percent)


def test_the_rank_follows_the_decimal_that_was_written() -> None:
    # In binary floats 99.99 / 100 * 10000 comes out above 9999, one rank too far.
    values = [1] * 9999 + [100]
    assert Histogram.of(values).percentile(99.99) == 1


@given(SAMPLES)
def test_minimum_maximum_and_sums_are_exact(values: list[int]) -> None:
    histogram = Histogram.of(values)
    assert (histogram.min_ns, histogram.max_ns) == (min(values), max(values))
    assert histogram.count == len(values)
    assert histogram.total_ns == sum(values)
    assert histogram.mean == pytest.approx(statistics.fmean(values))


@given(SAMPLES)
@example([10**15, 10**15 + 1])
def test_the_standard_deviation_does_not_cancel(values: list[int]) -> None:
    assert Histogram.of(values).stddev == pytest.approx(statistics.pstdev(values), rel=1e-9)


@given(st.lists(VALUES), st.lists(VALUES))
def test_merging_equals_recording_everything_in_one(first: list[int], second: list[int]) -> None:
    both = Histogram.merged([Histogram.of(first), Histogram.of(second)])
    assert both == Histogram.of(first + second)


@given(st.lists(VALUES))
def test_json_holds_the_whole_histogram(values: list[int]) -> None:
    histogram = Histogram.of(values)
    text = json.dumps(histogram.to_json(), allow_nan=False)
    assert Histogram.from_json(json.loads(text)) == histogram


def test_an_empty_histogram_has_no_statistics() -> None:
    empty = Histogram()
    assert empty.percentile(50) is None
    assert empty.mean is None
    assert empty.stddev is None
    assert empty.to_json()["buckets"] == []


@pytest.mark.parametrize(("value", "counted_as"), [(-1, 0), (MAX_VALUE + 1, MAX_VALUE)])
def test_values_outside_the_range_are_counted_at_its_ends(value: int, counted_as: int) -> None:
    assert Histogram.of([value]) == Histogram.of([counted_as])


@pytest.mark.parametrize("percent", [-1, 100.1])
def test_a_percentile_outside_0_to_100_is_refused(percent: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 100"):
        Histogram.of([1]).percentile(percent)


def test_counts_that_do_not_add_up_are_refused() -> None:
    data = Histogram.of([1, 2]).to_json()
    with pytest.raises(ValueError, match="hold 2 values, but count is 3"):
        Histogram.from_json({**data, "count": 3})
    with pytest.raises(ValueError, match="3776 buckets, not 1"):
        Histogram([0])
    with pytest.raises(ValueError, match="bucket 3776"):
        Histogram.from_json({**data, "buckets": [[3776, 2]]})
