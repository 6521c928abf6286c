from __future__ import annotations

import ctypes as c
import random

import pytest
from gdsfw.backend import Pattern
from gdsfw.engine import pattern as twin
from gdsfw.engine.native import pattern_fill, pattern_verify
from hypothesis import given, settings
from hypothesis import strategies as st

SEED = Pattern(seed=0x1234, file_id=9)
patterns = st.builds(Pattern, st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1), st.integers(0, 5))


def filled(size: int, offset: int, pattern: Pattern = SEED) -> bytearray:
    data = bytearray(size)
    pattern_fill(memoryview(data), offset, pattern)
    return data


@given(patterns, st.integers(0, 2**62), st.integers(1, 9000))
@settings(max_examples=60)
def test_compiled_bytes_are_the_python_twins(pattern: Pattern, offset: int, size: int) -> None:
    expected = bytearray(size)
    twin.fill(memoryview(expected), offset, pattern)
    assert filled(size, offset, pattern) == expected


@given(st.integers(0, 3 * 4096), st.integers(1, 5 * 4096))
@settings(max_examples=100)
def test_any_piece_is_the_same_as_that_part_of_the_whole(offset: int, size: int) -> None:
    whole = filled(9 * 4096, 0)
    assert filled(size, offset) == whole[offset : offset + size]


@pytest.mark.parametrize("size", [1, 3, 4, 511, 512, 4095, 4096, 4097, 8192, 10_000])
@pytest.mark.parametrize("offset", [0, 1, 4, 512, 4095, 4096, 10**12 + 7])
def test_one_flipped_bit_is_found_wherever_it_is(size: int, offset: int) -> None:
    data = filled(size, offset)
    assert pattern_verify(memoryview(data), offset, SEED) is None
    for at in sorted({0, size // 2, size - 1, max(0, size - 5), min(size - 1, 4096 - offset % 4096)}):
        data[at] ^= 1 << (at % 8)
        found = pattern_verify(memoryview(data), offset, SEED)
        assert found is not None
        assert (found.file_offset, found.bad_bytes) == (offset + at, 1)
        assert found.found == bytes(data[at : at + 16])
        data[at] ^= 1 << (at % 8)
        assert found.expected == bytes(data[at : at + 16])


@given(st.data())
@settings(max_examples=60)
def test_mismatch_counts_every_byte_and_names_the_first(data: st.DataObject) -> None:
    size, offset = data.draw(st.integers(1, 12_000)), data.draw(st.integers(0, 10_000))
    block = filled(size, offset)
    bad = data.draw(st.sets(st.integers(0, size - 1), min_size=1, max_size=40))
    for at in bad:
        block[at] ^= data.draw(st.integers(1, 255))
    found = pattern_verify(memoryview(block), offset, SEED)
    assert found is not None
    assert (found.file_offset, found.bad_bytes) == (offset + min(bad), len(bad))


@pytest.mark.parametrize(
    "other",
    [Pattern(0x1235, 9), Pattern(0x1234, 8), Pattern(0x1234, 9, generation=1), Pattern(0, 0)],
    ids=["an earlier run", "a foreign file", "a lost rewrite", "anything else"],
)
def test_bytes_of_another_origin_do_not_pass(other: Pattern) -> None:
    stale = filled(4096, 4096, other)
    found = pattern_verify(memoryview(stale), 4096, SEED)
    assert found is not None
    assert found.bad_bytes > 3900


def test_swapped_blocks_and_holes_do_not_pass() -> None:
    data = filled(4 * 4096, 0)
    data[4096:8192], data[8192:12288] = data[8192:12288], data[4096:8192]
    data[0:512] = bytes(512)
    found = pattern_verify(memoryview(data), 0, SEED)
    assert found is not None
    assert found.file_offset == 0
    assert found.bad_bytes > 8000


def test_data_does_not_compress_and_does_not_repeat() -> None:
    import zlib

    data = filled(1 << 20, 0)
    assert len(zlib.compress(bytes(data))) > 0.999 * len(data)
    sectors = {bytes(data[i : i + 512]) for i in range(0, len(data), 512)}
    assert len(sectors) == len(data) // 512


def test_unaligned_memory_is_filled_and_verified(library: c.CDLL) -> None:
    rng = random.Random(1)
    data = bytearray(20_000)
    for _ in range(50):
        begin, size = rng.randrange(64), rng.randrange(1, 19_000)
        view = memoryview(data)[begin : begin + size]
        pattern_fill(view, 777, SEED)
        assert bytes(view) == filled(size, 777)
        assert pattern_verify(view, 777, SEED) is None
