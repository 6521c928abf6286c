"""Random offsets that are not uniform: the Python twin of native/distribution.c, draw by draw and float by float.

- zipf: rank r in 1..n with probability proportional to r**-theta, by rejection-inversion (Hoermann and Derflinger,
  "Rejection-inversion to generate variates from monotone discrete distributions", 1996): no table, any theta > 0.
- pareto: rank floor(n * u**(log h / log(1 - h))), 0 < h < 1: for h < 0.5 a share h of the blocks gets a share 1 - h of
  the I/O, and so on within that share (fio's lib/zipf.c).
- normal: around the middle, standard deviation theta percent of the range, drawn again when outside (Box, Muller 1958).
- runs: a uniform start, then consecutive blocks; after each the run goes on with probability 1 - 1/theta.

Ranks of zipf and pareto are spread over the range by a keyed permutation, so that hot blocks do not lie together. Both
sides call the same libm, so the order of the operations matters.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gdsfw.engine.streams import HOT_PASS, Permutation

if TYPE_CHECKING:
    from gdsfw.engine.spec import Distribution
    from gdsfw.engine.streams import Stream

NORMAL_TRIES = 64


class Zipf:
    """Zero-based ranks below n, hot ones small."""

    __slots__ = ("_first", "_last", "_n", "_squeeze", "_theta")

    def __init__(self, n: int, theta: float) -> None:
        self._n = n
        self._theta = theta
        self._first = self._integral(1.5) - 1.0
        self._last = self._integral(n + 0.5)
        self._squeeze = 2.0 - self._inverse(self._integral(2.5) - self._density(2.0))

    def rank(self, stream: Stream) -> int:
        """The next rank."""
        top = float(self._n)
        while True:
            u = self._last + stream.unit() * (self._first - self._last)
            x = self._inverse(u)
            k = top if x >= top else max(1.0, float(math.floor(x + 0.5)))
            if k - x <= self._squeeze or u >= self._integral(k + 0.5) - self._density(k):
                return min(int(k) - 1, self._n - 1)

    def _integral(self, x: float) -> float:
        """Of x**-theta, from 1 to x."""
        log_x = math.log(x)
        exponent = (1.0 - self._theta) * log_x
        return (math.expm1(exponent) / exponent if abs(exponent) > 1e-8 else 1.0 + exponent * 0.5) * log_x

    def _inverse(self, value: float) -> float:
        t = value * (1.0 - self._theta)
        if t <= -1.0:
            return math.inf
        return math.exp((math.log1p(t) / t if abs(t) > 1e-8 else 1.0 - t * 0.5) * value)

    def _density(self, x: float) -> float:
        return math.exp(-self._theta * math.log(x))


class Pareto:
    """Zero-based ranks below n, hot ones small."""

    __slots__ = ("_exponent", "_n")

    def __init__(self, n: int, h: float) -> None:
        self._n = n
        self._exponent = math.log(h) / math.log(1.0 - h)

    def rank(self, stream: Stream) -> int:
        """The next rank."""
        return _below(self._n * stream.unit() ** self._exponent, self._n)


class Spread:
    """Ranks put at places that a permutation of the file gives, the same in every pass."""

    __slots__ = ("_places", "_ranks", "n")

    def __init__(self, ranks: Zipf | Pareto, seed: int, file_index: int, n: int) -> None:
        self.n = n
        self._ranks = ranks
        self._places = Permutation(seed, file_index, HOT_PASS, n)

    def draw(self, stream: Stream) -> int:
        """The next position."""
        return self._places[self._ranks.rank(stream)]


class Positions:
    """Draws positions below n in one file.

    Args:
        distribution: any kind but uniform.
    """

    __slots__ = ("_distribution", "_file_index", "_seed", "_spread", "run_position")

    def __init__(self, distribution: Distribution, seed: int, file_index: int) -> None:
        self._distribution = distribution
        self._seed = seed
        self._file_index = file_index
        # One for each direction, whose units differ; kept while n stays the same.
        self._spread: list[Spread | None] = [None, None]
        #: The position that would continue the run, None when there is no run.
        self.run_position: int | None = None

    def draw(self, stream: Stream, direction: int, n: int) -> int:
        """The next position in [0, n)."""
        kind = self._distribution.kind
        if kind == "normal":
            return normal_position(stream, self._distribution.theta, n)
        if kind == "runs":
            return self._run(stream, n)
        spread = self._spread[direction]
        if spread is None or spread.n != n:
            ranks = (Zipf if kind == "zipf" else Pareto)(n, self._distribution.theta)
            spread = self._spread[direction] = Spread(ranks, self._seed, self._file_index, n)
        return spread.draw(stream)

    def _run(self, stream: Stream, n: int) -> int:
        following = self.run_position
        if following is not None and stream.unit() * self._distribution.theta >= 1.0 and following < n:
            return following
        return stream.below(n)


def normal_position(stream: Stream, percent: float, n: int) -> int:
    """A position below n, normally distributed around the middle with `percent` of n as standard deviation."""
    for _ in range(NORMAL_TRIES):
        radius = math.sqrt(-2.0 * math.log(1.0 - stream.unit()))
        z = radius * math.cos(6.283185307179586 * stream.unit())
        at = (0.5 + z * percent / 100.0) * n
        if 0.0 <= at < float(n):
            return _below(at, n)
    return stream.below(n)


def _below(value: float, n: int) -> int:
    return n - 1 if value >= float(n) else int(value)
