"""The C loop and the Python loop find the same in real files whose content is wrong, and miss nothing."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from gdsfw.backend import Pattern
from gdsfw.engine.pattern import fill
from gdsfw.engine.spec import BlockSizes, EndedBy, LoopError, LoopFile, LoopSpec, Mismatch, Verify
from gdsfw.errors import Domain, UsageError

KIB = 1024
BLOCK = 4 * KIB
LENGTH = 16 * BLOCK
FILE = LoopFile(5, 0, LENGTH, pattern_seed=9)

READ = LoopSpec(
    rw="read",
    random=True,
    read_blocks=BlockSizes(((BLOCK, 1),)),
    write_blocks=BlockSizes(((BLOCK, 1),)),
    block_align=0,
    files=(FILE,),
    seed=7,
    slot_stride=16 * KIB,
    verify=Verify(),
)
WRITE = replace(READ, rw="write", write_fill="pattern")


def content(offset: int, size: int, *, seed: int = 9, file_id: int = 5, generation: int = 0) -> bytes:
    data = bytearray(size)
    fill(memoryview(data), offset, Pattern(seed, file_id, generation))
    return bytes(data)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file that holds its pattern."""
    made = tmp_path / "data"
    made.write_bytes(content(0, LENGTH))
    return made


def put(path: Path, offset: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)


def found_in(twins: Any, way: str, path: Path, spec: LoopSpec = READ) -> list[Mismatch]:
    """What a read job finds; the blocks are counted, and all bytes were checked."""
    result = twins.run_on_files(way, spec, [path])
    assert result.verify.checked_bytes == result.verify.expected_bytes == result.read.bytes == LENGTH
    assert result.verify.bad_blocks == len(result.verify.mismatches)
    assert (result.ended_by, result.errors) == (EndedBy.IO_SIZE, ())
    return sorted(result.verify.mismatches, key=lambda mismatch: mismatch.file_offset)


def test_a_good_file_has_no_mismatch(twins: Any, way: str, path: Path) -> None:
    assert found_in(twins, way, path) == []


@pytest.mark.parametrize("block", [512, 1000, 12 * KIB])
def test_the_block_size_of_the_reader_does_not_matter(twins: Any, way: str, path: Path, block: int) -> None:
    assert found_in(twins, way, path, replace(READ, read_blocks=BlockSizes(((block, 1),)))) == []


def test_what_a_loop_writes_a_loop_finds_right(twins: Any, way: str, tmp_path: Path) -> None:
    path = tmp_path / "written"
    written = twins.run_on_files(way, WRITE, [path])
    assert path.read_bytes() == content(0, LENGTH)
    assert written.written == ((0, 0, LENGTH),)
    assert found_in(twins, way, path) == []


def test_a_flipped_bit(twins: Any, way: str, path: Path) -> None:
    good = content(0, LENGTH)
    at = 3 * BLOCK + 1234
    put(path, at, bytes([good[at] ^ 16]))
    expected, found = good[at : at + 16], bytes([good[at] ^ 16]) + good[at + 1 : at + 16]
    assert found_in(twins, way, path) == [Mismatch(0, at, expected, found, 1)]


def test_two_swapped_blocks(twins: Any, way: str, path: Path) -> None:
    second, ninth = content(2 * BLOCK, BLOCK), content(9 * BLOCK, BLOCK)
    put(path, 2 * BLOCK, ninth)
    put(path, 9 * BLOCK, second)
    first, other = found_in(twins, way, path)
    assert (first.file_offset, first.expected, first.found) == (2 * BLOCK, second[:16], ninth[:16])
    assert (other.file_offset, other.expected, other.found) == (9 * BLOCK, ninth[:16], second[:16])


def test_a_torn_block(twins: Any, way: str, path: Path) -> None:
    at = 4 * BLOCK + 1024
    put(path, at, content(at, BLOCK - 1024, seed=8))
    (mismatch,) = found_in(twins, way, path)
    assert (mismatch.file_offset, mismatch.found) == (at, content(at, 16, seed=8))
    assert mismatch.bad_bytes > 3000


def test_a_hole(twins: Any, way: str, path: Path) -> None:
    put(path, 7 * BLOCK, bytes(BLOCK))
    (mismatch,) = found_in(twins, way, path)
    assert (mismatch.file_offset // BLOCK, mismatch.found) == (7, bytes(16))


def test_a_block_of_an_earlier_run(twins: Any, way: str, path: Path) -> None:
    put(path, 11 * BLOCK, content(11 * BLOCK, BLOCK, seed=1))
    (mismatch,) = found_in(twins, way, path)
    assert mismatch.found == content(11 * BLOCK, 16, seed=1)


def test_a_block_of_another_workers_file(twins: Any, way: str, path: Path) -> None:
    put(path, 0, content(0, BLOCK, file_id=6))
    (mismatch,) = found_in(twins, way, path)
    assert mismatch.found == content(0, 16, file_id=6)


def test_a_truncated_file_is_an_error_and_not_a_mismatch(twins: Any, way: str, path: Path) -> None:
    os.truncate(path, 10 * BLOCK + 100)
    spec = replace(READ, random=False, error_limit=100)
    result = twins.run_on_files(way, spec, [path])
    assert result.errors[0] == LoopError("read", 0, 10 * BLOCK, BLOCK, Domain.ERRNO, errno.ENODATA)
    assert (result.error_count, result.read.ios, result.verify.bad_blocks) == (6, 10, 0)
    assert result.verify.checked_bytes == result.verify.expected_bytes == 10 * BLOCK


def test_sixteen_bad_blocks_are_described_and_all_are_counted(twins: Any, way: str, path: Path) -> None:
    path.write_bytes(bytes(LENGTH))
    result = twins.run_on_files(way, replace(READ, loops=2), [path])
    assert (len(result.verify.mismatches), result.verify.bad_blocks, result.verify.checked_blocks) == (16, 32, 32)


def test_a_mix_of_reads_and_writes_checks_its_reads(twins: Any, way: str, path: Path) -> None:
    put(path, 5 * BLOCK, bytes(BLOCK))
    mix = replace(WRITE, rw="readwrite", loops=4)
    result = twins.run_on_files(way, mix, [path])
    assert result.verify.checked_bytes == result.verify.expected_bytes == result.read.bytes > 0
    # The hole is found when it is read before the first write there, and gone afterwards.
    assert {mismatch.file_offset // BLOCK for mismatch in result.verify.mismatches} <= {5}
    assert path.read_bytes() == content(0, LENGTH)


def test_generations_tell_a_lost_rewrite(twins: Any, way: str, path: Path) -> None:
    spec = replace(WRITE, rw="readwrite", loops=6, verify=Verify(generations=True))
    result = twins.run_on_files(way, spec, [path])
    assert result.verify.bad_blocks == 0
    assert result.verify.checked_bytes == result.verify.expected_bytes > 0
    generations = {
        generation
        for block in range(16)
        for generation in range(8)
        if path.read_bytes()[block * BLOCK :][:BLOCK] == content(block * BLOCK, BLOCK, generation=generation)
    }
    assert max(generations) > 1


def test_a_lost_rewrite_is_found_with_generations_only(twins: Any, way: str) -> None:
    mix = replace(WRITE, rw="readwrite", random=False, files=(replace(FILE, length=BLOCK),), loops=30)

    def run(generations: bool, faults: dict[int, Any]) -> Any:
        spec = replace(mix, verify=Verify(generations=generations))
        return twins.run(way, spec, twins.store([bytearray(content(0, BLOCK))], faults=faults))

    calls = [call[0] for call in run(True, {}).calls]
    rewrite = next(i for i in range(6, 30) if calls[i : i + 2] == ["write", "read"])
    faults = {rewrite: twins.lost}
    assert run(False, faults).result.verify.bad_blocks == 0
    found = run(True, faults).result.verify
    assert found.bad_blocks == 1
    written_before = calls[:rewrite].count("write")
    assert found.mismatches[0].found == content(0, 16, generation=written_before)
    assert found.mismatches[0].expected == content(0, 16, generation=written_before + 1)


def test_after_a_failed_write_nobody_knows_what_to_expect(twins: Any, way: str) -> None:
    mix = replace(WRITE, rw="readwrite", random=False, files=(replace(FILE, length=BLOCK),), loops=12, error_limit=1)
    spec = replace(mix, verify=Verify(generations=True))
    calls = [call[0] for call in twins.run(way, spec, twins.store([bytearray(content(0, BLOCK))])).calls]
    failing = next(i for i in range(12) if calls[i : i + 2] == ["write", "read"])
    store = twins.store([bytearray(content(0, BLOCK))], faults={failing: twins.errno(errno.EIO)})
    result = twins.run(way, spec, store).result
    unknown = next((i for i in range(failing + 1, 12) if calls[i] == "write"), 12) - failing - 1
    assert result.verify.unknown_bytes == unknown * BLOCK
    assert result.verify.bad_blocks == 0
    assert result.verify.expected_bytes == result.verify.checked_bytes == result.read.bytes - unknown * BLOCK


def test_acknowledged_ranges_are_merged_and_leave_out_failed_blocks(twins: Any, way: str) -> None:
    spec = replace(WRITE, random=False, files=(replace(FILE, start=512),), io_size=10 * BLOCK + 100, error_limit=1)
    store = twins.store([bytearray(512 + LENGTH)], faults={3: twins.errno(errno.EIO)})
    result = twins.run(way, spec, store).result
    assert result.written == ((0, 512, 3 * BLOCK), (0, 512 + 4 * BLOCK, 6 * BLOCK + 100))


#: A part of the second block, the end of the fourth to the middle of the seventh, all from the fourteenth on.
KNOWN = ((BLOCK + 100, 1000), (4 * BLOCK - 1, 2 * BLOCK + 2048), (13 * BLOCK, 3 * BLOCK))
KNOWN_BYTES = sum(length for _, length in KNOWN)


def known_content() -> bytearray:
    """The pattern where it is known to be, zeros elsewhere."""
    data = bytearray(LENGTH)
    for start, length in KNOWN:
        data[start : start + length] = content(start, length)
    return data


@pytest.mark.parametrize("block", [512, 1000, 4 * KIB, 12 * KIB])
def test_only_what_is_known_to_be_written_is_verified(twins: Any, way: str, path: Path, block: int) -> None:
    path.write_bytes(known_content())
    spec = replace(READ, files=(replace(FILE, known=KNOWN),), read_blocks=BlockSizes(((block, 1),)))
    verify = twins.run_on_files(way, spec, [path]).verify
    assert verify.checked_bytes == verify.expected_bytes == KNOWN_BYTES
    assert verify.unknown_bytes == LENGTH - KNOWN_BYTES
    assert verify.bad_blocks == 0
    touched = {at // block for start, length in KNOWN for at in range(start, start + length)}
    assert verify.checked_blocks == len(touched)


def test_damage_is_found_at_both_ends_of_a_known_range_and_not_beside_it(twins: Any, way: str, path: Path) -> None:
    for start, length in KNOWN:
        for at, bad in ((start - 1, 0), (start, 1), (start + length - 1, 1), (start + length, 0)):
            if at >= LENGTH:
                continue
            data = known_content()
            data[at] ^= 4
            path.write_bytes(data)
            verify = twins.run_on_files(way, replace(READ, files=(replace(FILE, known=KNOWN),)), [path]).verify
            assert (verify.bad_blocks, [m.file_offset for m in verify.mismatches]) == (bad, [at] * bad)


def test_nothing_known_is_nothing_checked(twins: Any, way: str, path: Path) -> None:
    path.write_bytes(bytes(LENGTH))
    verify = twins.run_on_files(way, replace(READ, files=(replace(FILE, known=()),)), [path]).verify
    assert (verify.checked_bytes, verify.expected_bytes, verify.checked_blocks, verify.bad_blocks) == (0, 0, 0, 0)
    assert verify.unknown_bytes == LENGTH


def test_known_ranges_belong_to_their_file(twins: Any, way: str, path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(known_content())
    spec = replace(READ, files=(FILE, replace(FILE, known=KNOWN)))
    verify = twins.run_on_files(way, spec, [path, other]).verify
    assert verify.checked_bytes == verify.expected_bytes == LENGTH + KNOWN_BYTES
    assert (verify.unknown_bytes, verify.bad_blocks) == (LENGTH - KNOWN_BYTES, 0)


def test_known_ranges_and_generations_go_together(twins: Any, way: str) -> None:
    spec = replace(WRITE, rw="readwrite", loops=4, verify=Verify(generations=True))
    spec = replace(spec, files=(replace(FILE, known=KNOWN),))
    verify = twins.run(way, spec, twins.store([known_content()])).result.verify
    assert verify.bad_blocks == 0
    assert verify.checked_bytes == verify.expected_bytes > 0
    assert verify.unknown_bytes > 0


@pytest.mark.parametrize("way_of_use", [{"end_fsync": True}, {"fsync_every": 16}])
def test_a_failed_flush_ends_the_loop_with_an_error(twins: Any, way: str, way_of_use: dict[str, Any]) -> None:
    store = twins.store([bytearray(LENGTH)], flush_faults={0: twins.errno(errno.EIO)})
    result = twins.run(way, replace(WRITE, **way_of_use), store).result
    assert (result.ended_by, result.error_count) == (EndedBy.ERROR, 1)
    assert (result.errors[0].operation, result.errors[0].code) == ("flush", errno.EIO)


#: So many blocks that even one bit for each takes more than 256 MiB.
ENDLESS = replace(WRITE, random=False, files=(replace(FILE, length=1 << 44),), io_size=4 * BLOCK)


def test_without_room_for_a_record_of_what_was_written_the_job_still_runs(twins: Any, way: str) -> None:
    run = twins.run(way, ENDLESS, twins.store([bytearray()]))
    assert run.result.written is None
    assert (run.result.error_count, run.files[0]) == (0, content(0, 4 * BLOCK))


def test_without_room_for_generations_the_job_is_refused_and_told_why(twins: Any, way: str) -> None:
    spec = replace(ENDLESS, verify=Verify(generations=True))
    with pytest.raises(UsageError, match="verify with generations needs more than 256 MiB") as caught:
        twins.run(way, spec, twins.store([bytearray()]))
    assert "without generations" in str(caught.value.hint)
