"""Which bytes were acknowledged as written, and how often a block was rewritten. The twin of native/track.c.

The range of every file is cut into granules. A granule divides every block and offset that the loop writes, so that
only the end of a file or the very last block of all covers part of one.
"""

from __future__ import annotations

from array import array
from math import gcd
from typing import TYPE_CHECKING

from gdsfw.errors import UsageError

if TYPE_CHECKING:
    from gdsfw.engine.offsets import PlannedIO
    from gdsfw.engine.spec import LoopFile, LoopSpec

MOST_MEMORY = 256 << 20
#: Or-ed to a generation: a write failed, the bytes may be old or new.
UNKNOWN = 1 << 31


class TooLargeError(Exception):
    """Keeping track would take more than MOST_MEMORY bytes."""


def generations_too_large() -> UsageError:
    """Verification with generations cannot do without that memory."""
    return UsageError(
        f"verify with generations needs more than {MOST_MEMORY >> 20} MiB to remember how often each block was written",
        hint="use larger blocks, a smaller size, or verify without generations",
    )


class _File:
    __slots__ = ("acknowledged", "generations", "granules", "length", "start")

    def __init__(self, file: LoopFile, granule: int, generations: bool) -> None:
        self.start = file.start
        self.length = file.length
        self.granules = -(-file.length // granule)
        self.acknowledged = bytearray(self.granules)
        self.generations = array("I", bytes(4 * (self.granules + 1))) if generations else None


class Track:
    """What a loop wrote.

    Args:
        cell: distance of offsets with once_per_block, else 0.

    Raises:
        TooLargeError: the blocks are so small that keeping track takes more than 256 MiB.
    """

    def __init__(self, spec: LoopSpec, cell: int, *, generations: bool) -> None:
        blocks = spec.write_blocks
        self.granule = gcd(spec.block_align, blocks.step, cell, *(size for size, _ in blocks.choices))
        granules = sum(file.length // self.granule + 1 for file in spec.files)
        if granules // 8 + (4 * granules if generations else 0) > MOST_MEMORY:
            raise TooLargeError
        self._files = [_File(file, self.granule, generations) for file in spec.files]
        self.generations = generations
        # The last block, when it covered part of a granule: (file, start, length).
        self._last: tuple[int, int, int] | None = None

    def written(self, io: PlannedIO, *, acknowledged: bool) -> None:
        """A write was acknowledged, or it failed."""
        file = self._files[io.file]
        granule = self.granule
        begin = io.offset - file.start
        end = begin + io.size
        first, touched = begin // granule, -(-end // granule)
        # A granule at the end of the range counts as whole; elsewhere only the last block of all is cut.
        whole = touched if end == file.length else end // granule
        if acknowledged:
            file.acknowledged[first:whole] = b"\1" * (whole - first)
            if whole < touched:
                self._last = (io.file, file.start + whole * granule, end - whole * granule)
        else:
            file.acknowledged[first:touched] = bytes(touched - first)
        if file.generations is not None:
            for i in range(first, touched):
                count = (file.generations[i] & ~UNKNOWN) + 1
                file.generations[i] = count if acknowledged else count | UNKNOWN

    def run(self, file_index: int, offset: int, size: int) -> tuple[int, int]:
        """From `offset` of a file on: how many bytes, at most `size`, share one generation, and which."""
        file = self._files[file_index]
        if file.generations is None:
            return size, 0
        begin = offset - file.start
        at = begin // self.granule
        generation = file.generations[at]
        end = begin
        while end < begin + size and file.generations[at] == generation:
            at += 1
            end = at * self.granule
        return min(end - begin, size), generation

    def ranges(self) -> tuple[tuple[int, int, int], ...]:
        """(file index, start, length) acknowledged as written, merged, in file order."""
        found: list[tuple[int, int, int]] = []
        for index, file in enumerate(self._files):
            last = self._last if self._last is not None and self._last[0] == index else None
            for begin, end in self._runs(file):
                if last is not None and last[1] < file.start + begin:
                    _append(found, last)
                    last = None
                _append(found, (index, file.start + begin, end - begin))
                if last is not None and last[1] < file.start + end:
                    last = None  # a whole write covers it
            if last is not None:
                _append(found, last)
        return tuple(found)

    def _runs(self, file: _File) -> list[tuple[int, int]]:
        runs = []
        at = file.acknowledged.find(1)
        while at >= 0:
            end = file.acknowledged.find(0, at)
            end = file.granules if end < 0 else end
            runs.append((at * self.granule, min(end * self.granule, file.length)))
            at = file.acknowledged.find(1, end)
        return runs


def _append(ranges: list[tuple[int, int, int]], piece: tuple[int, int, int]) -> None:
    if ranges and ranges[-1][0] == piece[0] and sum(ranges[-1][1:]) == piece[1]:
        file, start, length = ranges[-1]
        ranges[-1] = (file, start, length + piece[2])
    else:
        ranges.append(piece)
