"""Interleaved pairs: A B A B ... in one run, the ratio pair by pair, its median and a 95 % interval."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Figures = Mapping[str, float]


@dataclass(frozen=True)
class Comparison:
    """Ratios ours / theirs of one figure, higher is better.

    The interval is the percentile bootstrap of the median (Efron 1979), 4,000 resamples, fixed seed.
    """

    ours: tuple[float, ...]
    theirs: tuple[float, ...]

    @property
    def ratios(self) -> list[float]:
        return [a / b for a, b in zip(self.ours, self.theirs, strict=True)]

    @property
    def median(self) -> float:
        return statistics.median(self.ratios)

    @property
    def interval(self) -> tuple[float, float]:
        ratios = self.ratios
        draw = random.Random(1).choices
        medians = sorted(statistics.median(draw(ratios, k=len(ratios))) for _ in range(4000))
        return medians[int(0.025 * len(medians))], medians[int(0.975 * len(medians)) - 1]


def interleave_figures(ours: Callable[[], Figures], theirs: Callable[[], Figures], pairs: int) -> dict[str, Comparison]:
    """Run both `pairs` times in turn, after one round that is not counted; who goes first alternates.

    Returns:
        A comparison of each figure that both have.
    """
    shared = [name for name in ours() if name in theirs()]
    mine: list[Figures] = []
    other: list[Figures] = []
    for number in range(pairs):
        if number % 2 == 0:
            mine.append(ours())
            other.append(theirs())
        else:
            other.append(theirs())
            mine.append(ours())
    return {
        name: Comparison(tuple(figures[name] for figures in mine), tuple(figures[name] for figures in other))
        for name in shared
    }


def interleave(ours: Callable[[], float], theirs: Callable[[], float], pairs: int) -> Comparison:
    """The same for one figure."""
    return interleave_figures(lambda: {"figure": ours()}, lambda: {"figure": theirs()}, pairs)["figure"]
