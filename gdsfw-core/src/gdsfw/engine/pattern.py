"""The verification pattern: what the byte at offset x of a file is, written and compared.

A file is cut into chunks of 4 KiB. A chunk's key is made from (seed, file id, generation, chunk number) with the
splitmix64 finaliser; its 1024 little-endian 32-bit lanes are the murmur3 finaliser over a counter that starts at the
key's low half, XORed with its high half. So a byte depends on nothing but those numbers: not on block size, worker or
depth. native/pattern.c has the same function, and is used here where the library is there.

Sources: splitmix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014. Murmur3: Appleby, 2010.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gdsfw.backend import PatternMismatch
from gdsfw.engine import native_library as native
from gdsfw.engine.streams import GOLD, MASK64, mix

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gdsfw.backend import Pattern

CHUNK_BITS = 12
CHUNK = 1 << CHUNK_BITS
LANES = CHUNK // 4
#: Bytes of the expected and the found data that a mismatch shows.
SHOWN = 16

# All 1024 lanes of a chunk are computed at once in one big integer, each in a slot of 64 bits so that a product of
# two 32-bit numbers stays inside its slot: 0.02 ms for a chunk, where a loop over the lanes takes 0.5 ms.
_ONES = int.from_bytes(b"\1\0\0\0\0\0\0\0" * LANES, "little")
_LOW_HALVES = 0xFFFFFFFF * _ONES
_COUNTER = int.from_bytes(b"".join((i * 0x9E3779B9 & 0xFFFFFFFF).to_bytes(8, "little") for i in range(LANES)), "little")


def file_key(pattern: Pattern) -> int:
    """The part of every chunk's key that is the file's: seed, file and generation."""
    return mix(mix(pattern.seed) ^ (pattern.file_id * GOLD & MASK64)) ^ mix((pattern.generation + 1) & MASK64)


def chunk_key(pattern: Pattern, chunk: int) -> int:
    """The 64-bit key of chunk number `chunk` (file offset divided by 4096)."""
    return mix(file_key(pattern) ^ ((chunk + 1) * 0xD1342543DE82EF95 & MASK64))


def chunk_bytes(pattern: Pattern, chunk: int) -> bytes:
    """The 4096 bytes of a chunk."""
    key = chunk_key(pattern, chunk)
    z = (_COUNTER + (key & 0xFFFFFFFF) * _ONES) & _LOW_HALVES
    z ^= (z >> 16) & _LOW_HALVES
    z = z * 0x85EBCA6B & _LOW_HALVES
    z ^= (z >> 13) & _LOW_HALVES
    z = z * 0xC2B2AE35 & _LOW_HALVES
    z ^= (z >> 16) & _LOW_HALVES
    z ^= (key >> 32) * _ONES
    return memoryview(z.to_bytes(8 * LANES, "little")).cast("I")[::2].tobytes()


def fill(view: memoryview, file_offset: int, pattern: Pattern) -> None:
    """Write the pattern's bytes for the file range that begins at `file_offset` into `view` (bytes, writable)."""
    if view and native.load() is not None:
        native.pattern_fill(view, file_offset, pattern)
    else:
        python_fill(view, file_offset, pattern)


def verify(view: memoryview, file_offset: int, pattern: Pattern) -> PatternMismatch | None:
    """Compare `view` (bytes) with the file range that begins at `file_offset`; None when all bytes match."""
    if view and native.load() is not None:
        return native.pattern_verify(view, file_offset, pattern)
    return python_verify(view, file_offset, pattern)


def python_fill(view: memoryview, file_offset: int, pattern: Pattern) -> None:
    """`fill` without the C engine."""
    for begin, end, expected in _pieces(len(view), file_offset, pattern):
        view[begin:end] = expected


def python_verify(view: memoryview, file_offset: int, pattern: Pattern) -> PatternMismatch | None:
    """`verify` without the C engine."""
    first = -1
    bad_bytes = 0
    for begin, end, expected in _pieces(len(view), file_offset, pattern):
        found = bytes(view[begin:end])
        if found == expected:
            continue
        differs = list(map(int.__ne__, found, expected))
        bad_bytes += sum(differs)
        if first < 0:
            first = begin + differs.index(True)
    if first < 0:
        return None
    end = min(len(view), first + SHOWN)
    shown = bytearray(end - first)
    python_fill(memoryview(shown), file_offset + first, pattern)
    return PatternMismatch(file_offset + first, bytes(shown), bytes(view[first:end]), bad_bytes)


def _pieces(size: int, file_offset: int, pattern: Pattern) -> Iterator[tuple[int, int, bytes]]:
    """The range cut at chunk borders: (begin, end) in the range, and what belongs there."""
    begin = 0
    while begin < size:
        chunk, inside = divmod(file_offset + begin, CHUNK)
        end = min(size, begin + CHUNK - inside)
        yield begin, end, chunk_bytes(pattern, chunk)[inside : inside + end - begin]
        begin = end
