"""Dividing bytes among workers and files so that each byte is covered exactly once."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class Range(NamedTuple):
    """Bytes [start, start + length)."""

    start: int
    length: int

    @property
    def end(self) -> int:
        """The byte after the last."""
        return self.start + self.length


class Piece(NamedTuple):
    """A part of one of several ranges: which one, and the bytes."""

    whole: int
    range: Range


def split(wholes: Sequence[Range], parts: int, unit: int) -> list[list[Piece]]:
    """`wholes`, one after another, in `parts` neighbouring parts that differ by at most one `unit` of bytes.

    Boundaries are multiples of `unit` from the start of their range, whose last piece takes its odd tail. Parts
    beyond the number of units are empty.
    """
    base, extra = divmod(sum(-(-whole.length // unit) for whole in wholes), parts)
    result: list[list[Piece]] = []
    index = 0
    position = wholes[0].start if wholes else 0
    for part in range(parts):
        quota = base + (part < extra)
        pieces: list[Piece] = []
        while quota and index < len(wholes):
            end = min(wholes[index].end, position + quota * unit)
            if end > position:
                pieces.append(Piece(index, Range(position, end - position)))
            quota -= -(-(end - position) // unit)
            position = end
            if position == wholes[index].end:
                index += 1
                position = wholes[index].start if index < len(wholes) else 0
        result.append(pieces)
    return result


def share_out(length: int, parts: int, unit: int) -> list[int]:
    """`length` bytes in `parts` lengths that differ by at most one `unit`; the last with any takes the odd tail."""
    return [sum(piece.range.length for piece in part) for part in split([Range(0, length)], parts, unit)]
