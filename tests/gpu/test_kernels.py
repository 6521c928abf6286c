"""The device kernels' logic, compiled for the host: the pattern's bytes, what verify counts, what move moves."""

from __future__ import annotations

import ctypes as c
from collections.abc import Callable

import pytest
from fakes import kernels
from gdsfw.backend import BlockData, Pattern
from gdsfw.engine import pattern as host
from gdsfw.gpu.abi import Finding, Move
from helpers.made import made
from hypothesis import given, settings
from hypothesis import strategies as st

Launch = Callable[..., None]


class Made(c.Structure):
    """struct block_data of kernels.cpp."""

    _fields_ = (
        *((name, c.c_uint64) for name in ("file_key", "nonce", "piece", "random")),
        ("stamped", c.c_uint32),
    )


SIZES = st.one_of(st.integers(1, 64), st.integers(4000, 4200), st.sampled_from([512, 8192, 65536]))
OFFSETS = st.one_of(st.integers(0, 64), st.integers(4090, 4100), st.integers(0, 1 << 45))
GRIDS = st.sampled_from([(1, 32), (1, 256), (3, 128)])
quick = settings(max_examples=60, deadline=None)


@pytest.fixture(scope="module")
def launch(tmp_path_factory: pytest.TempPathFactory) -> Launch:
    command = kernels.compiler()
    if command is None:
        pytest.skip("no C++ compiler")
    library = c.CDLL(str(kernels.build(tmp_path_factory.mktemp("kernels"), command)))

    def run(name: str, *values: c._SimpleCData[int] | c.Structure, grid: tuple[int, int] = (2, 128)) -> None:
        parameters = (c.c_void_p * len(values))(*(c.addressof(value) for value in values))
        getattr(library, f"gdsfw_{name}_run")(parameters, c.c_uint(grid[0]), c.c_uint(grid[1]))

    return run


def expected(pattern: Pattern, offset: int, size: int) -> bytes:
    content = bytearray(size)
    host.python_fill(memoryview(content), offset, pattern)
    return bytes(content)


def memory(size: int, misaligned: int) -> tuple[c.Array[c.c_uint8], int]:
    """Room for `size` bytes at an address with that remainder by 16, a byte on either side of it."""
    room = (c.c_uint8 * (size + 64))()
    start = c.addressof(room) + 16
    return room, start + (misaligned - start) % 16


@quick
@given(size=SIZES, offset=OFFSETS, seed=st.integers(0, 2**64 - 1), misaligned=st.integers(0, 15), grid=GRIDS)
def test_fill_writes_the_hosts_pattern_and_nothing_beside_it(
    launch: Launch, size: int, offset: int, seed: int, misaligned: int, grid: tuple[int, int]
) -> None:
    pattern = Pattern(seed, seed % 97, seed % 3)
    _room, at = memory(size, misaligned)
    launch("fill", c.c_uint64(at), c.c_uint64(size), c.c_uint64(offset), c.c_uint64(host.file_key(pattern)), grid=grid)
    assert c.string_at(at, size).hex() == expected(pattern, offset, size).hex()
    assert c.string_at(at - 1, 1) + c.string_at(at + size, 1) == b"\0\0"


@quick
@given(size=SIZES, offset=OFFSETS, misaligned=st.integers(0, 15), grid=GRIDS, data=st.data())
def test_verify_counts_what_differs_and_names_the_first(
    launch: Launch, size: int, offset: int, misaligned: int, grid: tuple[int, int], data: st.DataObject
) -> None:
    pattern = Pattern(11, 3)
    bad = data.draw(st.sets(st.integers(0, size - 1), max_size=5))
    content = bytearray(expected(pattern, offset, size))
    for place in bad:
        content[place] ^= 0x40
    room, at = memory(size, misaligned)
    c.memmove(at, bytes(content), size)
    found = Finding(0, 2**64 - 1)
    values = (c.c_uint64(at), c.c_uint64(size), c.c_uint64(offset), c.c_uint64(host.file_key(pattern)))
    flag = c.c_uint64(0)
    launch("verify", *values, c.c_uint64(c.addressof(found)), c.c_uint64(c.addressof(flag)), grid=grid)
    assert flag.value == (1 if bad else 0)
    assert (found.bad_bytes, found.first) == (len(bad), offset + min(bad) if bad else 2**64 - 1)
    del room


@quick
@given(
    size=SIZES,
    data=st.builds(
        BlockData,
        seed=st.integers(0, 2**64 - 1),
        file_id=st.integers(0, 9),
        nonce=st.integers(0, 2**64 - 1),
        piece=st.sampled_from([5, 512, 1000, 1001, 4096]),
        random=st.sampled_from([0, 8, 400, 504, 512, 1000, 4096]),
        stamped=st.booleans(),
    ),
    misaligned=st.integers(0, 15),
    grid=GRIDS,
)
def test_make_makes_the_block_described_and_nothing_beside_it(
    launch: Launch, size: int, data: BlockData, misaligned: int, grid: tuple[int, int]
) -> None:
    _room, at = memory(size, misaligned)
    key = host.file_key(Pattern(data.seed, data.file_id))
    launch(
        "make",
        c.c_uint64(at),
        c.c_uint64(size),
        Made(key, data.nonce, data.piece, data.random, data.stamped),
        grid=grid,
    )
    assert c.string_at(at, size).hex() == made(data, size).hex()
    assert c.string_at(at - 1, 1) + c.string_at(at + size, 1) == b"\0\0"


@quick
@given(
    blocks=st.lists(st.tuples(SIZES, st.integers(0, 31), st.integers(0, 31)), min_size=1, max_size=9),
    piece=st.sampled_from([16, 512, 4096]),
    grid=GRIDS,
)
def test_move_moves_every_block_whole(
    launch: Launch, blocks: list[tuple[int, int, int]], piece: int, grid: tuple[int, int]
) -> None:
    sources = [memory(size, a) for size, a, _ in blocks]
    targets = [memory(size, b) for size, _, b in blocks]
    moves = (Move * len(blocks))()
    for index, (size, _, _) in enumerate(blocks):
        c.memmove(sources[index][1], bytes((index * 37 + i) % 251 + 1 for i in range(size)), size)
        moves[index] = Move(sources[index][1], targets[index][1], size)
    pieces = max(-(-size // piece) for size, _, _ in blocks)
    values = (c.c_uint64(c.addressof(moves)), c.c_uint32(len(blocks)), c.c_uint32(pieces), c.c_uint64(piece))
    launch("move", *values, grid=grid)
    for (_, source), (_, target), (size, _, _) in zip(sources, targets, blocks, strict=True):
        assert c.string_at(target - 1, size + 2).hex() == "00" + c.string_at(source, size).hex() + "00"
