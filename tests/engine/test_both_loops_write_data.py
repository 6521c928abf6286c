"""Both loops write the same bytes, and what they write neither compresses nor repeats."""

from __future__ import annotations

import zlib
from dataclasses import replace
from typing import Any

import pytest
from gdsfw.engine.spec import BlockSizes, EndedBy, LoopFile, LoopSpec

KIB = 1024
LENGTH = 1 << 20
SPEC = LoopSpec(
    rw="write",
    random=False,
    read_blocks=BlockSizes(((4 * KIB, 1),)),
    write_blocks=BlockSizes(((4 * KIB, 1),)),
    block_align=0,
    files=(LoopFile(0, 0, LENGTH),),
    seed=11,
    slot_stride=128 * KIB,
)
SIZES = {
    "512": BlockSizes(((512, 1),)),
    "1000": BlockSizes(((1000, 1),)),
    "1001": BlockSizes(((1001, 1),)),
    "4KiB": BlockSizes(((4 * KIB, 1),)),
    "60KiB": BlockSizes(((60 * KIB, 1),)),
    "64KiB": BlockSizes(((64 * KIB, 1),)),
    "96KiB": BlockSizes(((96 * KIB, 1),)),
    "5 bytes to 128KiB": BlockSizes(((5, 3), (4 * KIB, 3), (64 * KIB, 1), (128 * KIB, 1))),
}


def written(twins: Any, way: str, spec: LoopSpec) -> bytes:
    run = twins.run(way, spec, twins.store([bytearray(LENGTH)]))
    assert (run.result.error_count, len(run.files[0])) == (0, LENGTH)
    return bytes(run.files[0])


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("share", [{}, {"compress_percent": 37}, {"dedupe_percent": 40}])
def test_the_loops_write_the_same_bytes(twins: Any, way: str, sizes: str, share: dict[str, Any]) -> None:
    spec = replace(SPEC, write_blocks=SIZES[sizes], **share)
    for one in (spec, replace(spec, rw="readwrite", random=True, read_blocks=SIZES[sizes])):
        assert written(twins, way, one) == written(twins, "python", one)


@pytest.mark.parametrize("sizes", ["512", "1000", "4KiB", "60KiB"])
def test_small_blocks_do_not_compress_as_a_stream(twins: Any, way: str, sizes: str) -> None:
    data = written(twins, way, replace(SPEC, write_blocks=SIZES[sizes]))
    assert len(zlib.compress(data)) > 0.99 * LENGTH


@pytest.mark.parametrize("percent", [25, 50])
def test_small_blocks_compress_by_the_share_asked_for(twins: Any, way: str, percent: int) -> None:
    data = written(twins, way, replace(SPEC, compress_percent=percent))
    assert len(zlib.compress(data, 9)) / LENGTH == pytest.approx(1 - percent / 100, abs=0.02)


@pytest.mark.parametrize("sizes", ["512", "4KiB", "64KiB", "96KiB"])
def test_no_sector_repeats(twins: Any, way: str, sizes: str) -> None:
    data = written(twins, way, replace(SPEC, write_blocks=SIZES[sizes]))
    assert len({data[at : at + 512] for at in range(0, LENGTH, 512)}) == LENGTH // 512


def test_a_write_after_a_read_is_new_data(twins: Any, way: str) -> None:
    spec = replace(SPEC, rw="readwrite", random=True, loops=2)
    data = written(twins, way, spec)
    blocks = [data[at : at + 4 * KIB] for at in range(0, LENGTH, 4 * KIB)]
    made = [block for block in blocks if any(block)]
    assert len(set(made)) == len(made) > 100
    assert len(zlib.compress(b"".join(made))) > 0.99 * 4 * KIB * len(made)


def test_a_block_that_is_to_repeat_does_so_among_smaller_ones(twins: Any, way: str) -> None:
    """What a smaller block left in the slot must not show."""
    sizes = BlockSizes(((4 * KIB, 1), (64 * KIB, 1)))
    spec = replace(SPEC, write_blocks=sizes, dedupe_percent=100)
    run = twins.run(way, spec, twins.store([bytearray(LENGTH)]))
    large = {run.files[0][at : at + size] for _, _, at, size in run.calls if size == 64 * KIB}
    small = {run.files[0][at : at + size] for _, _, at, size in run.calls if size == 4 * KIB}
    assert (len(large), len(small)) == (1, 1)


SHARES = [{"compress_percent": 37}, {"dedupe_percent": 40}, {"compress_percent": 50, "dedupe_percent": 30}]


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("share", SHARES)
def test_memory_that_makes_its_data_holds_what_the_hosts_would(
    twins: Any, way: str, sizes: str, share: dict[str, Any]
) -> None:
    spec = replace(SPEC, write_blocks=SIZES[sizes], **share)
    store = twins.store([bytearray(LENGTH)])
    run = twins.run(way, spec, store, makes=True)
    assert run.result.error_count == 0
    assert bytes(run.files[0]) == written(twins, "python", spec)
    assert "copy" not in store.memory_calls


@pytest.mark.parametrize("fill", ["random", "zero"])
def test_without_a_share_each_slot_is_made_once(twins: Any, way: str, fill: Any) -> None:
    spec = replace(SPEC, write_fill=fill, write_blocks=SIZES["64KiB"])
    store = twins.store([bytearray(LENGTH)])
    run = twins.run(way, spec, store, makes=True)
    assert store.memory_calls == ["make_data"]
    blocks = {bytes(run.files[0][at : at + 64 * KIB]) for at in range(0, LENGTH, 64 * KIB)}
    assert len(blocks) == 1
    assert (blocks == {bytes(64 * KIB)}) is (fill == "zero")


def test_data_that_cannot_be_made_is_an_error_with_its_name(twins: Any, way: str) -> None:
    store = twins.store([bytearray(LENGTH)])
    store.memory_faults["make_data"] = twins.errno(12)
    run = twins.run(way, replace(SPEC, compress_percent=50), store, makes=True)
    assert run.result.ended_by is EndedBy.ERROR
    (error,) = run.result.errors
    assert (error.operation, error.code) == ("fill", 12)
