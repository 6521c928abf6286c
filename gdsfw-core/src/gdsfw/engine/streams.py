"""Pseudorandom numbers of the loops: splitmix64 streams and a keyed permutation, the same as in native/random.h.

Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014.
"""

from __future__ import annotations

from enum import IntEnum

MASK64 = 2**64 - 1
GOLD = 0x9E3779B97F4A7C15
#: Pass number of the permutation that spreads the hot ranks of zipf and pareto.
HOT_PASS = MASK64
ROUNDS = 4


class Purpose(IntEnum):
    """What a stream is for. A draw for one purpose never shifts the draws for another."""

    DIRECTION = 1
    SIZE = 2
    FILE = 3
    OFFSET = 4
    BUFFER = 5
    ARRIVAL = 6


def mix(z: int) -> int:
    """The splitmix64 finaliser: a bijection of 64-bit numbers."""
    z ^= z >> 30
    z = z * 0xBF58476D1CE4E5B9 & MASK64
    z ^= z >> 27
    z = z * 0x94D049BB133111EB & MASK64
    return z ^ (z >> 31)


class Stream:
    """An endless sequence of 64-bit numbers, given by a seed and a purpose."""

    __slots__ = ("_state",)

    def __init__(self, seed: int, purpose: int) -> None:
        self._state = mix((seed + purpose * GOLD) & MASK64)

    def next(self) -> int:
        """The next number, uniform in [0, 2**64)."""
        self._state = (self._state + GOLD) & MASK64
        return mix(self._state)

    def below(self, n: int) -> int:
        """The next number, uniform in [0, n); the bias is below n / 2**64."""
        return self.next() * n >> 64

    def unit(self) -> float:
        """The next number, uniform in [0, 1), a multiple of 2**-53."""
        return (self.next() >> 11) * 2.0**-53


class Permutation:
    """A keyed permutation of [0, n) in constant memory, for "every block once".

    A bijection of the k-bit numbers (k bits hold n - 1) is made of rounds of add, multiply by an odd number and
    xor-shift; results outside [0, n) are put in again until they fall inside, fewer than two steps on average.

    Args:
        pass_number: which pass over the file, so that each has its own order.
        n: at least 1.
    """

    __slots__ = ("_keys", "_mask", "_shift", "n")

    def __init__(self, seed: int, file_index: int, pass_number: int, n: int) -> None:
        bits = max(1, (n - 1).bit_length())
        self.n = n
        self._mask = (1 << bits) - 1
        self._shift = (bits + 1) // 2
        state = mix(seed ^ mix((file_index * GOLD + pass_number) & MASK64))
        draws = [mix((state + i * GOLD) & MASK64) for i in range(1, 2 * ROUNDS + 1)]
        self._keys = [(add, multiply | 1) for add, multiply in zip(draws[::2], draws[1::2], strict=True)]

    def __getitem__(self, i: int) -> int:
        """Where i in [0, n) goes."""
        mask, shift = self._mask, self._shift
        x = i
        while True:
            for add, multiply in self._keys:
                x = (x + add) & mask
                x = x * multiply & mask
                x ^= x >> shift
            if x < self.n:
                return x
