from __future__ import annotations

import ctypes as c
import itertools
from array import array
from collections.abc import Callable

import pytest
from gdsfw.engine import native
from hypothesis import given, settings
from hypothesis import strategies as st

Permute = Callable[..., array]  # type: ignore[type-arg]


def _permute(n: int, *, seed: int = 1, file: int = 0, number: int = 0, first: int = 0, count: int | None = None):  # type: ignore[no-untyped-def]
    count = n if count is None else count
    out = (c.c_uint64 * count)()
    native.engine().library.gdsfw_permute(seed, file, number, n, first, count, out)
    return array("Q", bytes(out))


def test_every_small_range_is_permuted_without_loss() -> None:
    for n in range(1, 2001):
        assert sorted(_permute(n, seed=n)) == list(range(n))


@pytest.mark.parametrize("n", [65_535, 65_536, 65_537, 1_000_003, (1 << 20) + 1])
def test_large_ranges_are_permuted_without_loss(n: int) -> None:
    seen = bytearray(n)
    for value in _permute(n, seed=9):
        seen[value] = 1
    assert seen.count(1) == n


@given(n=st.integers(2**32, 2**63), seed=st.integers(0, 2**64 - 1))
@settings(max_examples=50)
def test_huge_ranges_stay_inside_and_do_not_repeat(n: int, seed: int) -> None:
    values = _permute(n, seed=seed, count=200)
    assert len(set(values)) == 200
    assert max(values) < n


def _chi_square(counts: list[int]) -> float:
    expected = sum(counts) / len(counts)
    return sum((count - expected) ** 2 for count in counts) / expected


@pytest.mark.parametrize("n", [2, 5, 16, 33])
def test_every_place_is_as_likely_for_every_block(n: int) -> None:
    places = [[0] * n for _ in range(n)]
    for seed in range(3000):
        for i, place in enumerate(_permute(n, seed=seed * 7919)):
            places[i][place] += 1
    # chi-square with n - 1 degrees of freedom: mean n - 1, deviation sqrt(2 (n - 1)); ten deviations.
    assert max(_chi_square(row) for row in places) < (n - 1) + 10 * (2 * (n - 1)) ** 0.5


def test_successive_blocks_do_not_follow_a_stride() -> None:
    n = 3 << 30
    values = _permute(n, seed=4, count=40_000)
    strides = [(b - a) % n for a, b in itertools.pairwise(values)]
    counts = [0] * 64
    for stride in strides:
        counts[stride * 64 // n] += 1
    assert _chi_square(counts) < 63 + 10 * (2 * 63) ** 0.5


def test_pass_file_and_seed_each_change_the_order() -> None:
    orders = {bytes(_permute(1000, seed=s, file=f, number=p)) for s in (1, 2) for f in (0, 1) for p in (0, 1)}
    assert len(orders) == 8
