from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from gdsfw.engine import native
from gdsfw.engine.distribution import Pareto, Zipf, normal_position
from gdsfw.engine.native_loop import preview
from gdsfw.engine.offsets import READ, WRITE, IOSequence, PlannedIO
from gdsfw.engine.spec import BlockSizes, Distribution, LoopFile, LoopSpec
from gdsfw.engine.streams import Permutation, Purpose, Stream
from hypothesis import given, settings
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Sequence

KIB = 1024


def one_size(size: int) -> BlockSizes:
    return BlockSizes(((size, 1),))


SPEC = LoopSpec(
    rw="read",
    random=False,
    read_blocks=one_size(4 * KIB),
    write_blocks=one_size(4 * KIB),
    block_align=0,
    files=(LoopFile(0, 0, 64 * KIB),),
    seed=7,
)


def take(spec: LoopSpec, n: int | None = None) -> list[PlannedIO]:
    return list(itertools.islice(IOSequence(spec), n))


def assert_distributed(seen: Sequence[float], expected: Sequence[float]) -> None:
    """Chi-square test at p = 0.001, with the critical value by Wilson and Hilferty (1931)."""
    statistic = sum((a - b) ** 2 / b for a, b in zip(seen, expected, strict=True))
    k = len(seen) - 1
    critical = k * (1 - 2 / (9 * k) + 3.09 * math.sqrt(2 / (9 * k))) ** 3
    assert statistic < critical


def assert_uniform(seen: Sequence[float]) -> None:
    assert_distributed(seen, [sum(seen) / len(seen)] * len(seen))


# ---- permutation --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [*range(1, 70), 127, 128, 129, 1000, 4095, 4096, 4097])
def test_the_permutation_visits_every_number_once(n: int) -> None:
    order = Permutation(seed=n, file_index=1, pass_number=2, n=n)
    assert sorted(order[i] for i in range(n)) == list(range(n))


@pytest.mark.parametrize("n", [5, 16, 100])
def test_the_permutation_sends_a_number_anywhere_with_equal_probability(n: int) -> None:
    for i in (0, 1, n - 1):
        places = Counter(Permutation(seed, 0, 0, n)[i] for seed in range(100 * n))
        assert_uniform([places[place] for place in range(n)])


def test_neighbours_in_the_permutation_are_not_neighbours_in_the_file() -> None:
    n = 64
    steps = Counter(
        (order[i + 1] - order[i]) % n
        for order in (Permutation(seed, 0, 0, n) for seed in range(200))
        for i in range(n - 1)
    )
    assert_uniform([steps[step] for step in range(1, n)])


def test_the_permutation_of_ten_tebibytes_takes_constant_memory() -> None:
    n = 10 * 1024**4 // 4096
    order = Permutation(3, 0, 0, n)
    places = [order[i] for i in range(20_000)]
    assert len(set(places)) == len(places)
    assert_uniform([Counter(place * 50 // n for place in places)[part] for part in range(50)])


# ---- coverage -----------------------------------------------------------------------------------------------------


def test_sequential_io_covers_a_partial_range_in_order_with_a_short_tail() -> None:
    spec = replace(SPEC, files=(LoopFile(0, 1000, 10_000),))
    assert [(io.offset, io.size) for io in take(spec)] == [(1000, 4096), (5096, 4096), (9192, 1808)]


def test_loops_go_over_the_files_again() -> None:
    once = take(SPEC)
    assert take(replace(SPEC, loops=3)) == once * 3


def test_io_size_counts_bytes_and_cuts_the_last_block() -> None:
    ios = take(replace(SPEC, io_size=100_000))
    assert sum(io.size for io in ios) == 100_000
    assert ios[-1].size == 100_000 % (4 * KIB)
    assert len(take(replace(SPEC, io_size=1))) == 1


def test_runtime_without_io_size_repeats_for_ever() -> None:
    assert len(take(replace(SPEC, runtime_ns=1), 10_000)) == 10_000
    assert len(take(replace(SPEC, runtime_ns=1, io_size=8 * KIB), 10_000)) == 2


def test_once_per_block_visits_every_block_once_in_each_pass_and_in_another_order() -> None:
    spec = replace(SPEC, random=True, files=(LoopFile(0, 512, 61 * KIB),), loops=2)
    ios = take(spec)
    first, second = ios[:16], ios[16:]
    cells = [(512 + i * 4096, min(4096, 61 * KIB - i * 4096)) for i in range(16)]
    assert sorted((io.offset, io.size) for io in first) == cells
    assert sorted((io.offset, io.size) for io in second) == cells
    assert first != second


def test_a_random_mix_shares_one_pass_over_the_blocks() -> None:
    ios = take(replace(SPEC, random=True, rw="readwrite"))
    assert len({io.offset for io in ios}) == 16
    assert {io.direction for io in ios} == {READ, WRITE}


def test_a_sequential_mix_covers_the_file_in_both_directions() -> None:
    ios = take(replace(SPEC, rw="readwrite", loops=2))
    for direction in (READ, WRITE):
        assert [io.offset for io in ios if io.direction == direction][:16] == list(range(0, 64 * KIB, 4 * KIB))


def test_random_offsets_are_multiples_of_block_align() -> None:
    spec = replace(SPEC, random=True, read_blocks=one_size(3000), block_align=512, distribution=Distribution("zipf", 1))
    assert all(io.offset % 512 == 0 and io.offset + io.size <= 64 * KIB for io in take(replace(spec, loops=20)))


@pytest.mark.parametrize("read_percent", [0, 100])
def test_a_mix_of_one_direction_equals_that_direction(read_percent: int) -> None:
    mix = replace(SPEC, rw="readwrite", random=True, read_percent=read_percent)
    assert take(mix) == take(replace(mix, rw="read" if read_percent else "write"))


# ---- files --------------------------------------------------------------------------------------------------------

THREE = replace(SPEC, files=(LoopFile(0, 0, 8 * KIB), LoopFile(1, 0, 0), LoopFile(2, 0, 16 * KIB)))


def test_round_robin_takes_turns_and_skips_finished_files() -> None:
    assert [io.file for io in take(THREE)] == [0, 2, 0, 2, 2, 2]


def test_sequential_service_finishes_a_file_first() -> None:
    assert [io.file for io in take(replace(THREE, file_service="sequential", loops=2))] == [0, 0, 2, 2, 2, 2] * 2


def test_random_service_covers_every_file() -> None:
    ios = take(replace(THREE, file_service="random"))
    assert sorted((io.file, io.offset) for io in ios) == sorted((io.file, io.offset) for io in take(THREE))
    files = tuple(LoopFile(i, 0, 4096 * KIB) for i in range(5))
    seen = Counter(io.file for io in take(replace(THREE, files=files, file_service="random"), 4000))
    assert_uniform([seen[i] for i in range(5)])


@pytest.mark.parametrize("files", [(), (LoopFile(0, 0, 0),)])
def test_a_spec_without_a_byte_is_refused(files: tuple[LoopFile, ...]) -> None:
    with pytest.raises(ValueError, match="byte to read or write"):
        IOSequence(replace(SPEC, files=files))


@pytest.mark.parametrize("blocks", [BlockSizes(((0, 1),)), BlockSizes(((512, 0), (1024, 0))), BlockSizes(((9, 0),), 1)])
def test_blocks_that_cannot_be_drawn_are_refused(blocks: BlockSizes) -> None:
    with pytest.raises(ValueError, match="no block can be drawn"):
        IOSequence(replace(SPEC, read_blocks=blocks))


# ---- shares and distributions ---------------------------------------------------------------------------------------

BIG = replace(SPEC, random=True, files=(LoopFile(0, 0, 1024**3),))


def test_the_share_of_reads_is_read_percent() -> None:
    ios = take(replace(BIG, rw="readwrite", read_percent=70), 10_000)
    reads = sum(io.direction == READ for io in ios)
    assert_distributed([reads, 10_000 - reads], [7000, 3000])


def test_a_weighted_split_gives_sizes_by_weight() -> None:
    sizes = Counter(
        io.size for io in take(replace(BIG, read_blocks=BlockSizes(((512, 60), (4096, 30), (65536, 10)))), 6000)
    )
    assert_distributed([sizes[512], sizes[4096], sizes[65536]], [3600, 1800, 600])


def test_a_range_gives_every_step_equally() -> None:
    sizes = Counter(io.size for io in take(replace(BIG, read_blocks=BlockSizes(((1024, 0), (8192, 0)), 512)), 6000))
    assert set(sizes) == set(range(1024, 8193, 512))
    assert_uniform(list(sizes.values()))


def test_uniform_offsets_fill_the_range_evenly() -> None:
    spec = replace(BIG, distribution=Distribution(once_per_block=False))
    parts = Counter(io.offset * 64 // 1024**3 for io in take(spec, 10_000))
    assert_uniform([parts[part] for part in range(64)])


@pytest.mark.parametrize("theta", [0.3, 0.99, 1.0, 1.2, 3.0])
def test_zipf_ranks_have_probability_proportional_to_a_power(theta: float) -> None:
    n, draws = 1000, 20_000
    ranks = Zipf(n, theta)
    stream = Stream(1, Purpose.OFFSET)
    seen = Counter(ranks.rank(stream) for _ in range(draws))
    weights = [rank**-theta for rank in range(1, n + 1)]
    expected = [draws * weight / sum(weights) for weight in weights]
    kept = sum(1 for value in expected if value >= 5)
    groups = [[*range(i, i + 1)] for i in range(kept)] + ([[*range(kept, n)]] if kept < n else [])
    # A chi-square test wants five expected values in a group: the tail's ranks are taken together.
    assert_distributed([sum(seen[i] for i in g) for g in groups], [sum(expected[i] for i in g) for g in groups])


@pytest.mark.parametrize("h", [0.1, 0.2, 0.4])
def test_pareto_gives_a_share_h_of_the_blocks_a_share_one_minus_h_of_the_io(h: float) -> None:
    n, draws = 10_000, 20_000
    ranks = Pareto(n, h)
    stream = Stream(2, Purpose.OFFSET)
    hot = sum(ranks.rank(stream) < h * n for _ in range(draws))
    assert_distributed([hot, draws - hot], [(1 - h) * draws, h * draws])


@pytest.mark.parametrize("percent", [1.0, 10.0])
def test_normal_positions_have_the_mean_in_the_middle_and_the_deviation_asked_for(percent: float) -> None:
    n, draws = 100_000, 10_000
    stream = Stream(3, Purpose.OFFSET)
    z = [(normal_position(stream, percent, n) - n / 2) / (n * percent / 100) for _ in range(draws)]
    inside = [sum(abs(x) < k for x in z) for k in (1, 2)]
    shares = [math.erf(k / math.sqrt(2)) for k in (1, 2)]
    assert_distributed(
        [inside[0], inside[1] - inside[0], draws - inside[1]],
        [draws * shares[0], draws * (shares[1] - shares[0]), draws * (1 - shares[1])],
    )
    assert abs(sum(z) / draws) < 3.3 / math.sqrt(draws)


def test_a_normal_distribution_much_wider_than_the_range_still_ends() -> None:
    stream = Stream(4, Purpose.OFFSET)
    assert all(0 <= normal_position(stream, 1e9, 10) < 10 for _ in range(50))


def test_runs_have_the_mean_length_asked_for() -> None:
    ios = take(replace(BIG, distribution=Distribution("runs", 8.0)), 20_000)
    breaks = sum(b.offset != a.offset + a.size for a, b in itertools.pairwise(ios))
    assert_distributed([breaks, len(ios) - breaks], [len(ios) / 8, len(ios) * 7 / 8])


@pytest.mark.parametrize("kind", ["zipf", "pareto"])
def test_hot_blocks_are_spread_and_stay_hot_in_the_next_pass(kind: str) -> None:
    distribution = Distribution(kind, 1.2 if kind == "zipf" else 0.1)  # type: ignore[arg-type]
    spec = replace(SPEC, random=True, files=(LoopFile(0, 0, 4096 * KIB),), distribution=distribution, loops=10)
    ios = take(spec)
    passes = [Counter(io.offset for io in part) for part in (ios[: len(ios) // 2], ios[len(ios) // 2 :])]
    hottest = [offset for offset, _ in passes[0].most_common(5)]
    assert len({offset for offset, _ in passes[1].most_common(8)} & set(hottest)) >= 4
    assert all(abs(a - b) > 4 * KIB for a, b in itertools.pairwise(sorted(hottest)))


def test_equal_specs_give_equal_sequences_and_other_seeds_others() -> None:
    spec = replace(BIG, rw="readwrite", read_blocks=BlockSizes(((512, 1), (4096, 1))))
    assert take(spec, 500) == take(spec, 500)
    assert take(spec, 500) != take(replace(spec, seed=8), 500)


# ---- the C engine's sequence -----------------------------------------------------------------------------

SIZES = st.sampled_from([512, 1000, 4096, 65536, 1 << 20])
BLOCKS = st.one_of(
    SIZES.map(one_size),
    st.tuples(SIZES, st.integers(0, 100_000), st.sampled_from([1, 512])).map(
        lambda x: BlockSizes(((x[0], 0), (x[0] + x[1], 0)), x[2])
    ),
    st.lists(st.tuples(SIZES, st.integers(0, 9)), min_size=1, max_size=4).map(lambda x: BlockSizes((*x, (512, 1)))),
)
THETAS = {
    "zipf": [0.3, 0.99, 1.0, 1.2, 5.0],
    "pareto": [0.05, 0.2, 0.5, 0.9],
    "normal": [0.1, 10.0, 1e6],
    "runs": [1.0, 50.0],
}
DISTRIBUTIONS = st.one_of(
    st.builds(Distribution, once_per_block=st.booleans()),
    *(st.builds(Distribution, st.just(kind), st.sampled_from(thetas)) for kind, thetas in THETAS.items()),
)
LENGTHS = st.one_of(st.integers(0, 40_000), st.sampled_from([0, 1, 1 << 30, 10 << 40]))
SPECS = st.builds(
    LoopSpec,
    rw=st.sampled_from(["read", "write", "readwrite"]),
    random=st.booleans(),
    read_blocks=BLOCKS,
    write_blocks=BLOCKS,
    block_align=st.sampled_from([0, 512, 4096]),
    files=st.lists(st.tuples(LENGTHS, st.sampled_from([0, 777, 4096])), min_size=1, max_size=4)
    .filter(lambda files: any(length for length, _ in files))
    .map(lambda files: tuple(LoopFile(i, start, length) for i, (length, start) in enumerate(files))),
    seed=st.integers(0, 2**64 - 1),
    read_percent=st.sampled_from([0, 1, 30, 50, 99, 100]),
    distribution=DISTRIBUTIONS,
    file_service=st.sampled_from(["roundrobin", "random", "sequential"]),
    io_size=st.one_of(st.just(0), st.integers(1, 10**7)),
    loops=st.integers(1, 3),
    runtime_ns=st.sampled_from([0, 1]),
)


@pytest.mark.skipif(not native.available()[0], reason=native.available()[1])
@settings(max_examples=300, deadline=None)
@given(SPECS)
def test_the_c_engine_has_the_same_sequence(spec: LoopSpec) -> None:
    planned = [("write" if io.direction else "read", io.file, io.offset, io.size) for io in take(spec, 200)]
    assert preview(spec, 200) == planned
