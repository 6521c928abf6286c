from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from gdsfw.engine.native_loop import preview
from gdsfw.engine.spec import BlockSizes, Distribution, LoopFile

Make = Callable[..., Any]
BLOCK = 4096


def _chi_square(observed: list[float], expected: list[float]) -> float:
    return sum((o - e) ** 2 / e for o, e in zip(observed, expected, strict=True))


def _agrees(observed: list[float], expected: list[float]) -> bool:
    """Chi-square within eight standard deviations: fails for a wrong shape, not for an unlucky seed."""
    freedom = len(expected) - 1
    return _chi_square(observed, expected) < freedom + 8 * math.sqrt(2 * freedom)


def _positions(make_spec: Make, distribution: Distribution, blocks: int, count: int) -> list[int]:
    spec = make_spec(length=blocks * BLOCK, random=True, distribution=distribution, io_size=count * BLOCK)
    return [offset // BLOCK for _, _, offset, _ in preview(spec, count)]


def test_uniform_offsets_are_uniform(make_spec: Make) -> None:
    counts = Counter(_positions(make_spec, Distribution("uniform", once_per_block=False), 100, 50_000))
    assert _agrees([counts[i] for i in range(100)], [500.0] * 100)


@pytest.mark.parametrize("blocks", [1, 2, 3, 64, 100, 1000, 4097])
def test_once_per_block_visits_each_block_once_in_each_pass(make_spec: Make, blocks: int) -> None:
    positions = _positions(make_spec, Distribution(), blocks, 3 * blocks)
    for number in range(3):
        assert sorted(positions[number * blocks : (number + 1) * blocks]) == list(range(blocks))
    if blocks > 60:
        assert positions[:blocks] != positions[blocks : 2 * blocks]


@pytest.mark.parametrize("theta", [0.5, 1.0, 1.2, 2.0])
def test_zipf_ranks_fall_with_the_exponent(make_spec: Make, theta: float) -> None:
    blocks, count = 50, 60_000
    ranked = Counter(_positions(make_spec, Distribution("zipf", theta), blocks, count)).most_common()
    weights = [1 / rank**theta for rank in range(1, blocks + 1)]
    expected = [count * w / sum(weights) for w in weights]
    observed = [float(n) for _, n in ranked] + [0.0] * (blocks - len(ranked))
    # Ranks of nearly equal weight may swap when sorted by count: compare in five groups.
    grouped = [sum(part) for part in (observed[:2], observed[2:8], observed[8:20], observed[20:])]
    wanted = [sum(part) for part in (expected[:2], expected[2:8], expected[8:20], expected[20:])]
    for o, e in zip(grouped, wanted, strict=True):
        assert abs(o - e) < 0.06 * e + 6 * math.sqrt(e)


def test_zipf_works_over_ranges_that_no_table_would_hold(make_spec: Make) -> None:
    positions = _positions(make_spec, Distribution("zipf", 1.1), 1 << 40, 2000)
    hottest = Counter(positions).most_common(1)[0]
    # 1 / zeta(1.1) = 0.0945 of all I/Os go to the hottest block.
    assert 0.06 * 2000 < hottest[1] < 0.13 * 2000
    assert hottest[0] > 0


def test_hot_blocks_do_not_lie_together(make_spec: Make) -> None:
    for kind, theta in (("zipf", 1.2), ("pareto", 0.2)):
        positions = _positions(make_spec, Distribution(kind, theta), 10_000, 30_000)  # type: ignore[arg-type]
        hot = sorted(block for block, _ in Counter(positions).most_common(20))
        assert hot[-1] - hot[0] > 2_000


def test_pareto_sends_the_share_it_says_to_the_hot_part(make_spec: Make) -> None:
    counts = Counter(_positions(make_spec, Distribution("pareto", 0.2), 1000, 100_000))
    hottest = sum(n for _, n in counts.most_common(200))
    assert 0.78 < hottest / 100_000 < 0.82


def test_normal_offsets_have_the_deviation_asked_for(make_spec: Make) -> None:
    blocks, count = 1000, 50_000
    positions = _positions(make_spec, Distribution("normal", 10.0), blocks, count)
    edges = [350, 400, 450, 500, 550, 600, 650]
    bounds = [-math.inf, *((edge - 500) / 100 for edge in edges), math.inf]
    share = [0.5 * (math.erf(b / math.sqrt(2)) - math.erf(a / math.sqrt(2))) for a, b in itertools.pairwise(bounds)]
    found = Counter(sum(p >= edge for edge in edges) for p in positions)
    assert _agrees([found[i] for i in range(8)], [count * s for s in share])


def test_runs_have_the_mean_length_asked_for_and_geometric_lengths(make_spec: Make) -> None:
    positions = _positions(make_spec, Distribution("runs", 8.0), 1_000_000, 80_000)
    lengths, length = [], 1
    for before, now in itertools.pairwise(positions):
        if now == before + 1:
            length += 1
        else:
            lengths.append(length)
            length = 1
    assert 7.6 < sum(lengths) / len(lengths) < 8.4
    expected = [len(lengths) * (7 / 8) ** (k - 1) / 8 for k in range(1, 20)]
    counts = Counter(lengths)
    rest = len(lengths) - sum(expected)
    observed = [float(counts[k]) for k in range(1, 20)]
    assert _agrees([*observed, len(lengths) - sum(observed)], [*expected, rest])


def test_mix_has_the_share_of_reads_asked_for(make_spec: Make) -> None:
    ios = preview(make_spec(rw="readwrite", random=True, read_percent=70, loops=1000), 40_000)
    reads = sum(io[0] == "read" for io in ios)
    assert _agrees([reads, 40_000 - reads], [28_000, 12_000])


@pytest.mark.parametrize(("percent", "direction"), [(0, "write"), (100, "read")])
def test_mix_of_one_direction_never_issues_the_other(make_spec: Make, percent: int, direction: str) -> None:
    ios = preview(make_spec(rw="readwrite", read_percent=percent, loops=3), 1000)
    assert {io[0] for io in ios} == {direction}
    assert len(ios) == 192


def test_split_sizes_have_the_shares_asked_for(make_spec: Make) -> None:
    sizes = BlockSizes(((4096, 60), (16384, 30), (65536, 10)))
    spec = make_spec(random=True, block=sizes, length=1 << 30, distribution=Distribution(once_per_block=False))
    counts = Counter(io[3] for io in preview(spec, 30_000))
    assert _agrees([counts[4096], counts[16384], counts[65536]], [18_000, 9_000, 3_000])


def test_sizes_of_a_range_are_uniform_over_its_steps(make_spec: Make) -> None:
    sizes = BlockSizes(((4096, 0), (16384, 0)), step=4096)
    spec = make_spec(random=True, block=sizes, length=1 << 30, distribution=Distribution(once_per_block=False))
    counts = Counter(io[3] for io in preview(spec, 20_000))
    assert _agrees([counts[4096 * k] for k in (1, 2, 3, 4)], [5_000.0] * 4)


def test_sequence_never_leaves_the_range_of_its_file(make_spec: Make) -> None:
    files = (LoopFile(1, 4096, 50_001), LoopFile(2, 0, 8192), LoopFile(3, 100, 0), LoopFile(4, 7, 3))
    for kind in ("uniform", "zipf", "pareto", "normal", "runs"):
        for once in (False, True):
            for random in (False, True):
                spec = make_spec(
                    rw="readwrite",
                    files=files,
                    random=random,
                    block=BlockSizes(((4096, 1), (6000, 1))),
                    loops=20,
                    distribution=Distribution(kind, 0.3 if kind == "pareto" else 1.5, once),
                    file_service="random",
                )
                for _, index, offset, size in preview(spec, 3000):
                    file = files[index]
                    assert size > 0
                    assert file.start <= offset
                    assert offset + size <= file.start + file.length


def test_sequential_pass_covers_every_byte_once(make_spec: Make) -> None:
    files = (LoopFile(1, 100, 50_001), LoopFile(2, 0, 8192))
    ios = preview(make_spec(files=files, block=BlockSizes(((4096, 1), (1000, 2)))), 1000)
    for index, file in enumerate(files):
        pieces = [(offset, size) for _, i, offset, size in ios if i == index]
        at = file.start
        for offset, size in pieces:
            assert offset == at
            at += size
        assert at == file.start + file.length


def test_ten_tebibytes_need_no_table(make_spec: Make) -> None:
    spec = make_spec(length=10 << 40, random=True)
    offsets = [offset for _, _, offset, _ in preview(spec, 5000)]
    assert len(set(offsets)) == 5000
    counts = Counter(offset * 20 // (10 << 40) for offset in offsets)
    assert _agrees([counts[i] for i in range(20)], [250.0] * 20)
