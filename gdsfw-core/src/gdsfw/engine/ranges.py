"""What may be asked of a backend, checked before any is called: vendors' libraries differ in what they make of it.

One place and one wording, whichever backend, loop or path it is for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gdsfw.errors import UsageError

if TYPE_CHECKING:
    from gdsfw.backend import Buffer
    from gdsfw.engine.spec import LoopSpec

#: Offsets are signed 64-bit numbers in every interface below.
LARGEST_OFFSET = 2**63 - 1


def check_io(buffer: Buffer, size: int, file_offset: int, buffer_offset: int) -> None:
    """Refuse one I/O that no backend should see. All in bytes.

    A buffer of size 0 belongs to a path that moves nothing; its range is not checked.

    Raises:
        UsageError: the size is not positive, an offset is negative or too large, or the buffer's end is passed.
    """
    if size < 1:
        raise UsageError(f"an I/O of {size} bytes", hint="an I/O moves at least 1 byte")
    if file_offset < 0:
        raise UsageError(f"file offset {file_offset} is negative", hint="offsets count from the start of the file")
    if file_offset + size > LARGEST_OFFSET:
        raise UsageError(f"file offset {file_offset} is too large", hint=f"the largest offset is {LARGEST_OFFSET}")
    if buffer_offset < 0:
        raise UsageError(
            f"buffer offset {buffer_offset} is negative", hint="buffer offsets count from the start of the buffer"
        )
    if buffer.nbytes and buffer_offset + size > buffer.nbytes:
        raise UsageError(
            f"{size} bytes at buffer offset {buffer_offset} end outside the buffer of {buffer.nbytes} bytes",
            hint="the buffer holds iodepth blocks behind buffer_offset",
        )


def check_spec(spec: LoopSpec, buffer: Buffer) -> None:
    """Refuse a loop that would issue an I/O that check_io refuses, or let two requests share buffer memory.

    Raises:
        UsageError: as check_io, or slots overlap.
    """
    sizes = [spec.read_blocks] if spec.rw == "read" else [spec.write_blocks]
    if spec.rw == "readwrite":
        sizes.append(spec.read_blocks)
    largest = max(blocks.largest for blocks in sizes)
    for file in spec.files:
        check_io(buffer, min(blocks.smallest for blocks in sizes), file.start, spec.buffer_offset)
        if file.length < 0 or file.start + file.length > LARGEST_OFFSET:
            raise UsageError(f"a file range of {file.length} bytes at offset {file.start}")
    if spec.iodepth > 1 and spec.slot_stride < largest:
        raise UsageError(f"slots {spec.slot_stride} bytes apart overlap for blocks of {largest} bytes")
    check_io(buffer, largest, 0, spec.buffer_offset + (spec.iodepth - 1) * spec.slot_stride)
