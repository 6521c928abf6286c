"""What write buffers hold. The twin of native/buffers.c: the same bytes for the same spec.

Constant or repeated data flatters storage that compresses or deduplicates. A block below 64 KiB is made anew for each
write: the worker's pool of random bytes xored with a random 64-bit number, so that neither a block nor a part of one
occurs twice in a record that storage compresses. A larger block keeps the random bytes of its slot, which lie further
apart than most compressors look back, and gets a stamp of that number in every 512 bytes, so that no sector repeats
(fio does the same). compress_percent leaves that share of every 4 KiB zero; with dedupe_percent all slots hold the same
bytes and that share of the writes has one fixed number.

Memory that the host cannot touch has the same data by the path's make_data, anew for each write only where a share to
compress or to repeat was asked for: it costs a launch on the device each time.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from gdsfw.backend import BlockData, Pattern
from gdsfw.engine import pattern
from gdsfw.engine.streams import GOLD, MASK64, Purpose, Stream, mix

if TYPE_CHECKING:
    from gdsfw.engine.spec import LoopSpec

STAMP_EVERY = 512
LARGEST_PIECE = 4096
STAGING_BYTES = 1 << 20
REPEATED_NONCE = 0x6764736677
#: Blocks of this size and more are stamped, smaller ones made anew.
STAMPED_FROM = 64 << 10
_STAMP = struct.Struct("=Q")


class WriteData:
    """Makes the data of write buffers, but for the verification pattern."""

    def __init__(self, spec: LoopSpec) -> None:
        self._zero = spec.write_fill == "zero"
        self._dedupe = spec.dedupe_percent
        self._shares = bool(spec.dedupe_percent or spec.compress_percent)
        self._seed = mix((spec.seed & MASK64) ^ Purpose.BUFFER)
        self._nonces = Stream(spec.seed, Purpose.BUFFER)
        self._piece = min(spec.write_blocks.smallest, LARGEST_PIECE)
        # In whole stamps, so that a stamp never reaches into the compressible part.
        self._random = self._piece * (100 - spec.compress_percent) // 100 // 8 * 8
        self._stamps = not self._zero and self._random > 0
        self._pool = b""
        if self._stamps and spec.rw != "read" and spec.write_blocks.smallest < STAMPED_FROM:
            pool = bytearray(min(spec.write_blocks.largest, STAMPED_FROM))
            self.make(memoryview(pool), 0)
            self._pool = bytes(pool)

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

    def prepare(self, view: memoryview, slot: int, stale: bool) -> bool:
        """Make the block in `view` (bytes) unlike every other block written.

        Args:
            stale: something else has replaced the slot's own data.

        Returns:
            Whether the slot's data is stale now.
        """
        if self._pool and len(view) < STAMPED_FROM:
            self._make_anew(view, self._next_nonce())
            # A larger block that is to repeat begins with the slot's own bytes.
            return stale or self._dedupe > 0
        if stale:
            self.make(view, slot)
        if self._stamps:
            self._stamp(view, self._next_nonce())
        return False

    @property
    def remakes(self) -> bool:
        """Whether make_data is to make each block before it is written."""
        return self._stamps and self._shares

    def base(self, slot: int) -> BlockData:
        """What make_data is to put into a slot before the loop."""
        return self._described(slot, 0, False)

    def block(self, slot: int, size: int) -> BlockData:
        """The next block for a slot, as make_data takes it."""
        large = size >= STAMPED_FROM
        return self._described(slot if large else 0, self._next_nonce(), large)

    def _described(self, slot: int, nonce: int, stamped: bool) -> BlockData:
        random = 0 if self._zero else self._random
        return BlockData(self._seed, 0 if self._dedupe else slot, nonce, self._piece, random, stamped)

    def _next_nonce(self) -> int:
        nonce = self._nonces.next()
        repeats = self._dedupe and nonce * 100 >> 64 < self._dedupe
        return REPEATED_NONCE if repeats else nonce

    def _make_anew(self, view: memoryview, nonce: int) -> None:
        size = len(view)
        piece = _STAMP.pack(nonce) * (self._random // _STAMP.size) + bytes(self._piece - self._random)
        key = (piece * -(-size // self._piece))[:size]
        # One number with as many digits as the block has bytes: a loop over them would take a thousand times as long.
        mixed = int.from_bytes(key, "little") ^ int.from_bytes(self._pool[:size], "little")
        view[:] = mixed.to_bytes(size, "little")

    def _stamp(self, view: memoryview, nonce: int) -> None:
        put = _STAMP.pack_into
        last = len(view) - _STAMP.size
        for piece in range(0, len(view), self._piece):
            for at in range(piece, min(piece + self._random, last + 1), STAMP_EVERY):
                put(view, at, (nonce + at * GOLD) & MASK64)
