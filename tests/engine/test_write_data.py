from __future__ import annotations

import zlib
from dataclasses import replace

import pytest
from gdsfw.engine.buffers import WriteData
from gdsfw.engine.spec import BlockSizes, LoopFile, LoopSpec

BLOCK = 16384
SPEC = LoopSpec(
    rw="write",
    random=False,
    read_blocks=BlockSizes(((BLOCK, 1),)),
    write_blocks=BlockSizes(((BLOCK, 1),)),
    block_align=0,
    files=(LoopFile(0, 0, 1 << 20),),
    seed=1,
)


def blocks(spec: LoopSpec, count: int, size: int = BLOCK) -> list[bytes]:
    """What a loop of depth 1 would write."""
    data = WriteData(spec)
    buffer = bytearray(BLOCK)
    data.make(memoryview(buffer), 0)
    written = []
    for _ in range(count):
        data.prepare(memoryview(buffer)[:size], 0, stale=False)
        written.append(bytes(buffer[:size]))
    return written


def test_data_is_incompressible_and_no_sector_repeats_by_default() -> None:
    stream = b"".join(blocks(SPEC, 20))
    assert len(zlib.compress(stream[:BLOCK])) >= BLOCK
    sectors = {stream[at : at + 512] for at in range(0, len(stream), 512)}
    assert len(sectors) == len(stream) // 512


@pytest.mark.parametrize("percent", [25, 50, 90])
def test_the_share_asked_for_compresses_in_every_block(percent: int) -> None:
    for block in blocks(replace(SPEC, compress_percent=percent), 5):
        for at in range(0, BLOCK, 4096):
            ratio = len(zlib.compress(block[at : at + 4096], 9)) / 4096
            assert ratio == pytest.approx(1 - percent / 100, abs=0.02)


def test_fully_compressible_data_is_zero() -> None:
    assert set(blocks(replace(SPEC, compress_percent=100), 3)) == {bytes(BLOCK)}


@pytest.mark.parametrize("percent", [30, 100])
def test_the_share_asked_for_repeats_one_block(percent: int) -> None:
    written = blocks(replace(SPEC, dedupe_percent=percent), 400)
    repeated = max(written.count(block) for block in set(written))
    assert abs(repeated - 4 * percent) < 3.3 * (400 * percent / 100 * (1 - percent / 100)) ** 0.5 + 1
    assert len(set(written)) == 400 - repeated + 1


def test_slots_differ_unless_data_is_to_repeat() -> None:
    first, second = bytearray(4096), bytearray(4096)
    for spec, equal in ((SPEC, False), (replace(SPEC, dedupe_percent=10), True)):
        data = WriteData(spec)
        data.make(memoryview(first), 0)
        data.make(memoryview(second), 1)
        assert (first == second) == equal


def test_pieces_for_a_copy_make_up_the_same_data() -> None:
    spec = replace(SPEC, write_blocks=BlockSizes(((3000, 1),)), compress_percent=50)
    data, whole = WriteData(spec), bytearray(3_000_000)
    data.make(memoryview(whole), 2)
    pieces = data.staging(2, len(whole))
    assert len(pieces) == 3
    assert b"".join(piece for _, piece in pieces) == whole
    assert [at for at, _ in pieces] == [0, len(pieces[0][1]), 2 * len(pieces[0][1])]


def test_a_block_shorter_than_a_stamp_is_left_alone() -> None:
    assert len(blocks(SPEC, 1, size=5)[0]) == 5
