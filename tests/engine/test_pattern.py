from __future__ import annotations

from dataclasses import replace

import pytest
from gdsfw.backend import Pattern, PatternMismatch
from gdsfw.engine import native
from gdsfw.engine.pattern import chunk_bytes, chunk_key, fill, python_fill, python_verify, verify
from hypothesis import given
from hypothesis import strategies as st

PATTERN = Pattern(seed=1, file_id=2)
PATTERNS = st.builds(Pattern, st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1), st.integers(0, 5))


def content(size: int, file_offset: int, pattern: Pattern = PATTERN) -> bytearray:
    data = bytearray(size)
    python_fill(memoryview(data), file_offset, pattern)
    return data


def lane_by_lane(pattern: Pattern, chunk: int) -> bytes:
    low, high = chunk_key(pattern, chunk) & 0xFFFFFFFF, chunk_key(pattern, chunk) >> 32
    lanes = []
    for i in range(1024):
        z = (low + i * 0x9E3779B9) & 0xFFFFFFFF
        z ^= z >> 16
        z = z * 0x85EBCA6B & 0xFFFFFFFF
        z ^= z >> 13
        z = z * 0xC2B2AE35 & 0xFFFFFFFF
        z ^= z >> 16
        lanes.append((z ^ high).to_bytes(4, "little"))
    return b"".join(lanes)


@given(PATTERNS, st.integers(0, 2**51))
def test_a_chunk_is_the_documented_function_of_its_key(pattern: Pattern, chunk: int) -> None:
    assert chunk_bytes(pattern, chunk) == lane_by_lane(pattern, chunk)


@given(PATTERNS, st.integers(0, 2**62), st.integers(0, 10_000), st.data())
def test_the_bytes_depend_on_the_offset_and_not_on_the_block(
    pattern: Pattern, file_offset: int, size: int, data: st.DataObject
) -> None:
    begin = data.draw(st.integers(0, size))
    end = data.draw(st.integers(begin, size))
    whole = content(size, file_offset, pattern)
    assert whole[begin:end] == content(end - begin, file_offset + begin, pattern)
    assert python_verify(memoryview(whole), file_offset, pattern) is None


@pytest.mark.parametrize("change", [{"seed": 3}, {"file_id": 3}, {"generation": 1}])
def test_another_seed_file_or_generation_gives_other_bytes(change: dict[str, int]) -> None:
    other = replace(PATTERN, **change)
    mismatch = python_verify(memoryview(content(4096, 0, other)), 0, PATTERN)
    assert mismatch is not None
    assert mismatch.bad_bytes > 4000


def test_the_pattern_looks_random() -> None:
    data = content(1 << 20, 0)
    ones = sum(byte.bit_count() for byte in data)
    assert abs(ones - (4 << 20)) < 3.3 * (8 << 20) ** 0.5 / 2
    assert len({bytes(data[i : i + 8]) for i in range(0, len(data), 8)}) == len(data) // 8


def test_a_flipped_bit_is_described() -> None:
    data = content(10_000, 500)
    good = bytes(data)
    data[6_000] ^= 4
    data[9_990] ^= 4
    mismatch = python_verify(memoryview(data), 500, PATTERN)
    assert mismatch == PatternMismatch(6_500, good[6_000:6_016], bytes(data[6_000:6_016]), 2)


def test_what_is_shown_ends_with_the_range() -> None:
    data = content(100, 0)
    good = bytes(data)
    data[97] ^= 1
    mismatch = python_verify(memoryview(data), 0, PATTERN)
    assert mismatch == PatternMismatch(97, good[97:], bytes(data[97:]), 1)


@pytest.mark.skipif(not native.available()[0], reason=native.available()[1])
@given(PATTERNS, st.integers(0, 2**62), st.integers(1, 10_000), st.data())
def test_the_c_engine_has_the_same_pattern_and_finds_the_same(
    pattern: Pattern, file_offset: int, size: int, data: st.DataObject
) -> None:
    expected = content(size, file_offset, pattern)
    filled = bytearray(size)
    fill(memoryview(filled), file_offset, pattern)
    assert filled == expected
    for at in data.draw(st.lists(st.integers(0, size - 1), max_size=3)):
        filled[at] ^= 8
    assert verify(memoryview(filled), file_offset, pattern) == python_verify(memoryview(filled), file_offset, pattern)
