"""What write buffers hold. The twin of native/buffers.c: the same bytes for the same spec.

Constant or repeated data flatters storage that compresses or deduplicates. So every slot is filled with random bytes
once, and each write stamps a new random number into every 512 bytes of its block: a cheap way (fio does the same) to
make no sector repeat. compress_percent leaves that share of every 4 KiB zero; with dedupe_percent all slots hold the
same bytes and that share of the writes repeats one fixed stamp.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from gdsfw.backend import Pattern
from gdsfw.engine import pattern
from gdsfw.engine.streams import GOLD, MASK64, Purpose, Stream, mix

if TYPE_CHECKING:
    from gdsfw.engine.spec import LoopSpec

STAMP_EVERY = 512
LARGEST_PIECE = 4096
STAGING_BYTES = 1 << 20
REPEATED_STAMP = 0x6764736677
_STAMP = struct.Struct("=Q")


class WriteData:
    """Makes the data of write buffers, but for the verification pattern."""

    def __init__(self, spec: LoopSpec) -> None:
        self._zero = spec.write_fill == "zero"
        self._dedupe = spec.dedupe_percent
        self._seed = mix((spec.seed & MASK64) ^ Purpose.BUFFER)
        self._nonces = Stream(spec.seed, Purpose.BUFFER)
        self._piece = min(spec.write_blocks.smallest, LARGEST_PIECE)
        # In whole stamps, so that a stamp never reaches into the compressible part.
        self._random = self._piece * (100 - spec.compress_percent) // 100 // 8 * 8
        self._stamps = not self._zero and self._random > 0

    def make(self, view: memoryview, slot: int, at: int = 0) -> None:
        """Base data of a slot from its byte `at` on, a multiple of the piece, into `view` (bytes)."""
        if self._zero:
            view[:] = bytes(len(view))
            return
        pattern.fill(view, at, Pattern(self._seed, 0 if self._dedupe else slot))
        for piece in range(0, len(view), self._piece):
            end = min(piece + self._piece, len(view))
            if end > piece + self._random:
                view[piece + self._random : end] = bytes(end - piece - self._random)

    def staging(self, slot: int, size: int) -> list[tuple[int, bytearray]]:
        """Base data of a slot in pieces for a copy into memory that the host cannot touch: (offset, bytes)."""
        most = STAGING_BYTES - STAGING_BYTES % self._piece
        pieces = []
        for at in range(0, size, most):
            data = bytearray(min(most, size - at))
            self.make(memoryview(data), slot, at)
            pieces.append((at, data))
        return pieces

    def stamp(self, view: memoryview) -> None:
        """Make the block in `view` (bytes) unlike every other block written."""
        if not self._stamps:
            return
        nonce = self._nonces.next()
        if self._dedupe and nonce * 100 >> 64 < self._dedupe:
            nonce = REPEATED_STAMP
        put = _STAMP.pack_into
        last = len(view) - _STAMP.size
        for piece in range(0, len(view), self._piece):
            for at in range(piece, min(piece + self._random, last + 1), STAMP_EVERY):
                put(view, at, (nonce + at * GOLD) & MASK64)
