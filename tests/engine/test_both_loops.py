"""The C loop and the Python loop do the same: order, data, accounts, errors, endings."""

from __future__ import annotations

import errno
from dataclasses import replace
from typing import Any

import pytest
from gdsfw.engine import native
from gdsfw.engine.offsets import IOSequence
from gdsfw.engine.spec import BlockSizes, Distribution, EndedBy, LoopError, LoopFile, LoopSpec, Verify
from gdsfw.errors import Domain
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

KIB = 1024
WAYS = ("native", "python", "table")
usable, reason = native.available()
with_engine = pytest.mark.skipif(not usable, reason=reason)

SPEC = LoopSpec(
    rw="read",
    random=False,
    read_blocks=BlockSizes(((4 * KIB, 1),)),
    write_blocks=BlockSizes(((4 * KIB, 1),)),
    block_align=0,
    files=(LoopFile(5, 0, 64 * KIB, pattern_seed=9),),
    seed=7,
    slot_stride=16 * KIB,
)

SIZES = st.sampled_from([512, 1000, 1024, 4096, 8192])


@st.composite
def block_sizes(draw: st.DrawFn) -> BlockSizes:
    kind = draw(st.sampled_from(["one", "split", "range"]))
    if kind == "one":
        return BlockSizes(((draw(SIZES), 1),))
    if kind == "range":
        low = draw(st.sampled_from([512, 1024]))
        return BlockSizes(((low, 0), (low + draw(st.integers(0, 6000)), 0)), step=draw(st.sampled_from([512, 100])))
    choices = draw(st.lists(st.tuples(SIZES, st.integers(0, 5)), min_size=1, max_size=4))
    return BlockSizes((*choices, (2048, 1)))


DISTRIBUTIONS = st.one_of(
    st.builds(Distribution, once_per_block=st.booleans()),
    st.builds(Distribution, st.just("zipf"), st.sampled_from([0.3, 1.0, 1.2])),
    st.builds(Distribution, st.just("pareto"), st.sampled_from([0.1, 0.4])),
    st.builds(Distribution, st.just("normal"), st.sampled_from([5.0, 100.0])),
    st.builds(Distribution, st.just("runs"), st.sampled_from([1.0, 6.0])),
)


@st.composite
def specs(draw: st.DrawFn) -> LoopSpec:
    lengths = draw(st.lists(st.integers(0, 30_000), min_size=1, max_size=3).filter(any))
    starts = draw(st.tuples(*(st.sampled_from([0, 512, 5000]) for _ in lengths)))
    files = tuple(
        LoopFile(20 + i, start, length, pattern_seed=i)
        for i, (start, length) in enumerate(zip(starts, lengths, strict=True))
    )
    fill: Any = draw(st.sampled_from(["random", "zero", "pattern"]))
    return LoopSpec(
        rw=draw(st.sampled_from(["read", "write", "readwrite"])),
        random=draw(st.booleans()),
        read_blocks=draw(block_sizes()),
        write_blocks=draw(block_sizes()),
        block_align=draw(st.sampled_from([0, 0, 512, 4096])),
        files=files,
        seed=draw(st.integers(0, 2**64 - 1)),
        read_percent=draw(st.sampled_from([0, 30, 50, 100])),
        distribution=draw(DISTRIBUTIONS),
        file_service=draw(st.sampled_from(["roundrobin", "random", "sequential"])),
        io_size=draw(st.sampled_from([0, 0, 1, 10_000, 100_001])),
        loops=draw(st.integers(1, 2)),
        buffer_offset=draw(st.sampled_from([0, 64])),
        slot_stride=16 * KIB,
        fsync_every=draw(st.sampled_from([0, 0, 1, 3])),
        fdatasync_every=draw(st.sampled_from([0, 0, 2])),
        end_fsync=draw(st.booleans()),
        write_fill=fill,
        compress_percent=draw(st.sampled_from([0, 50, 99, 100])),
        dedupe_percent=draw(st.sampled_from([0, 60, 100])),
        verify=Verify(draw(st.booleans()), draw(st.booleans())) if fill == "pattern" else None,
        error_limit=draw(st.sampled_from([0, 2, 2**63])),
        latencies=draw(st.booleans()),
    )


@st.composite
def planted(draw: st.DrawFn, twins: Any) -> tuple[dict[int, Any], dict[int, Any]]:
    kinds = st.sampled_from(
        [
            twins.errno(errno.EIO),
            twins.errno(errno.ENOSPC),
            twins.gpu(719),
            twins.file(5),
            lambda size: size // 2 + 1,
            lambda size: 1,
            lambda size: 0,
            lambda size: size + 1,
        ]
    )
    faults = draw(st.dictionaries(st.integers(0, 40), kinds, max_size=5))
    return faults, draw(st.dictionaries(st.integers(0, 3), st.just(twins.errno(errno.EDQUOT)), max_size=1))


def contents(spec: LoopSpec) -> list[bytearray]:
    return [bytearray(file.start + file.length) for file in spec.files]


def run_all(twins: Any, spec: LoopSpec, *, max_transfer: int = 0, **store: Any) -> list[Any]:
    """The same spec over an equal store in every way."""
    return [twins.run(way, spec, twins.store(contents(spec), **store), max_transfer=max_transfer) for way in WAYS]


def assert_same(twins: Any, runs: list[Any]) -> None:
    first = runs[0]
    for run, way in zip(runs[1:], WAYS[1:], strict=True):
        assert run.calls == first.calls, way
        assert twins.accounts(run.result) == twins.accounts(first.result), way
        assert run.files == first.files, way
        assert run.buffer == first.buffer, way


def io_only(calls: list[tuple[str, int, int, int]]) -> list[tuple[str, int, int, int]]:
    return [call for call in calls if "sync" not in call[0]]


property_test = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@with_engine
@property_test
@given(spec=specs())
def test_equal_specs_give_equal_io_data_and_accounts(twins: Any, spec: LoopSpec) -> None:
    runs = run_all(twins, spec)
    assert_same(twins, runs)
    planned = [("write" if io.direction else "read", io.file, io.offset, io.size) for io in IOSequence(spec)]
    if spec.verify is None:
        assert io_only(runs[0].calls) == planned


@with_engine
@property_test
@given(spec=specs(), max_transfer=st.sampled_from([512, 1000, 4096]))
def test_blocks_larger_than_a_call_may_be_are_split_alike(twins: Any, spec: LoopSpec, max_transfer: int) -> None:
    runs = run_all(twins, spec, max_transfer=max_transfer)
    assert_same(twins, runs)
    assert all(call[3] <= max_transfer for call in runs[0].calls)
    assert runs[0].result.read.short_ios == runs[0].result.write.short_ios == 0


@with_engine
@property_test
@given(spec=specs(), data=st.data())
def test_planted_errors_and_short_counts_have_the_same_effect(twins: Any, spec: LoopSpec, data: st.DataObject) -> None:
    faults, flush_faults = data.draw(planted(twins))
    assert_same(twins, run_all(twins, spec, faults=faults, flush_faults=flush_faults))


# ---- errors --------------------------------------------------------------------------------------------------

BLOCK = 4 * KIB


def run_one(twins: Any, way: str, spec: LoopSpec, **store: Any) -> Any:
    return twins.run(way, spec, twins.store(contents(spec), **store))


@pytest.mark.parametrize(
    ("plant", "domain", "code"),
    [
        (lambda twins: twins.errno(errno.EIO), Domain.ERRNO, errno.EIO),
        (lambda twins: twins.gpu(719), Domain.GPU, 719),
        (lambda twins: twins.file(30), Domain.FILE, 5030),
        (lambda twins: lambda size: 0, Domain.ERRNO, errno.ENODATA),
        (lambda twins: lambda size: size + 1, Domain.ERRNO, errno.EPROTO),
    ],
)
def test_an_error_is_named_with_its_place_and_ends_the_loop(
    twins: Any, way: str, plant: Any, domain: Domain, code: int
) -> None:
    result = run_one(twins, way, SPEC, faults={3: plant(twins)}).result
    assert result.ended_by is EndedBy.ERROR
    assert result.errors == (LoopError("read", 0, 3 * BLOCK, BLOCK, domain, code),)
    assert (result.read.ios, result.read.errors, result.error_count) == (3, 1, 1)


def test_errors_within_the_limit_are_counted_and_the_next_one_ends_the_loop(twins: Any, way: str) -> None:
    faults = dict.fromkeys((1, 4, 9), twins.errno(errno.EIO))
    within = run_one(twins, way, replace(SPEC, error_limit=3), faults=faults).result
    assert (within.ended_by, within.read.ios, within.error_count) == (EndedBy.IO_SIZE, 13, 3)
    beyond = run_one(twins, way, replace(SPEC, error_limit=2), faults=faults).result
    assert (beyond.ended_by, beyond.read.ios, beyond.error_count) == (EndedBy.ERROR, 7, 3)


def test_sixteen_errors_are_described_and_all_are_counted(twins: Any, way: str) -> None:
    faults = dict.fromkeys(range(100), twins.errno(errno.EIO))
    result = run_one(twins, way, replace(SPEC, loops=3, error_limit=2**63), faults=faults).result
    assert (len(result.errors), result.error_count, result.read.ios) == (16, 48, 0)


def test_a_write_that_moves_nothing_is_an_error(twins: Any, way: str) -> None:
    result = run_one(twins, way, replace(SPEC, rw="write"), faults={0: lambda size: 0}).result
    assert result.errors == (LoopError("write", 0, 0, BLOCK, Domain.ERRNO, errno.EIO),)


def test_short_counts_are_continued_and_counted_once_a_block(twins: Any, way: str) -> None:
    run = run_one(twins, way, replace(SPEC, io_size=2 * BLOCK), faults=dict.fromkeys(range(3), lambda size: 1000))
    assert run.calls == [
        ("read", 0, 0, 4096),
        ("read", 0, 1000, 3096),
        ("read", 0, 2000, 2096),
        ("read", 0, 3000, 1096),
        ("read", 0, 4096, 4096),
    ]
    assert (run.result.read.ios, run.result.read.bytes, run.result.read.short_ios) == (2, 2 * BLOCK, 1)


def test_bytes_of_a_failed_block_count_as_moved_and_not_as_done(twins: Any, way: str) -> None:
    faults = {0: lambda size: 1000, 1: twins.errno(errno.EIO)}
    result = run_one(twins, way, replace(SPEC, error_limit=1, io_size=2 * BLOCK), faults=faults).result
    assert (result.read.bytes, result.total_bytes, result.total_ios) == (BLOCK, BLOCK + 1000, 1)


def test_a_failed_flush_is_named(twins: Any, way: str) -> None:
    spec = replace(SPEC, rw="write", fsync_every=5)
    result = run_one(twins, way, spec, flush_faults={0: twins.errno(errno.EDQUOT)}).result
    assert result.errors == (LoopError("flush", 0, 0, 0, Domain.ERRNO, errno.EDQUOT),)
    assert (result.ended_by, result.write.ios, result.flushes) == (EndedBy.ERROR, 5, 1)


@pytest.mark.parametrize(
    ("fault", "raised"), [(ZeroDivisionError("a defect"), "a defect"), (lambda size: -5, "returned -5 bytes")]
)
def test_what_is_no_io_error_comes_out_of_the_python_loop(twins: Any, fault: Any, raised: str) -> None:
    with pytest.raises((ZeroDivisionError, ValueError), match=raised):
        run_one(twins, "python", SPEC, faults={0: fault})


# ---- flushes -------------------------------------------------------------------------------------------------


def test_flushes_come_after_every_n_writes_and_at_the_end(twins: Any, way: str) -> None:
    spec = replace(SPEC, rw="write", io_size=7 * BLOCK, fsync_every=3, fdatasync_every=2, end_fsync=True)
    run = run_one(twins, way, spec)
    assert [call[0] for call in run.calls] == [
        *("write", "write", "fdatasync", "write", "fsync", "write"),
        *("write", "fdatasync", "write", "fsync", "write", "fsync"),
    ]
    assert run.result.flushes == 5


def test_only_files_written_since_the_last_flush_are_flushed(twins: Any, way: str) -> None:
    files = tuple(LoopFile(i, 0, 2 * BLOCK) for i in range(3))
    spec = replace(SPEC, rw="write", files=files, file_service="sequential", fsync_every=2, end_fsync=True)
    flushed = [call[1] for call in run_one(twins, way, spec).calls if call[0] == "fsync"]
    assert flushed == [0, 1, 2]
