"""What a BlockData describes, by the words of its docstring."""

from __future__ import annotations

from gdsfw.backend import BlockData, Pattern
from gdsfw.engine.pattern import python_fill

GOLD = 0x9E3779B97F4A7C15


def made(data: BlockData, size: int) -> bytes:
    """The block of `size` bytes."""
    pattern = bytearray(size)
    python_fill(memoryview(pattern), 0, Pattern(data.seed, data.file_id))
    block = bytearray(size)
    for piece in range(0, size, data.piece):
        end = min(piece + data.random, piece + data.piece, size)
        block[piece:end] = pattern[piece:end] if data.stamped else _xored(pattern[piece:end], data.nonce)
        for at in range(piece, end, 512) if data.stamped else ():
            if at + 8 <= size:
                block[at : at + 8] = ((data.nonce + at * GOLD) % 2**64).to_bytes(8, "little")
    return bytes(block)


def _xored(content: bytes | bytearray, nonce: int) -> bytes:
    key = (nonce.to_bytes(8, "little") * (len(content) // 8 + 1))[: len(content)]
    return bytes(a ^ b for a, b in zip(content, key, strict=True))
