"""The sequence of I/O: which direction, file, offset and size come next. The twin of native/offsets.c.

Equal specs give equal sequences in both. Each I/O takes its draws in the order file, direction, size, offset, each
from its own stream, and only where there is a choice:

- A mix with read_percent 0 or 100 has one direction, and no direction is drawn.
- Sequential: every direction of a file has its own position; a direction's pass is over when its position reaches the
  length. Random: both directions share one pass; with once_per_block (uniform only) it is over after all cells were
  visited, otherwise once the bytes issued to the file in this pass reach its length.
- A file is finished when its pass is over in every direction. When the last file finishes, a new pass of all of them
  begins at once, with a new permutation and no run. Files of length 0 are always finished.
- A drawn size is cut first to the file (random: its length; once_per_block and sequential: what is left at the offset)
  and last, with the offset already chosen, to what is left of the whole sequence.
- Round robin begins with file 0, and so does every pass of the sequential service.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gdsfw.engine.distribution import Positions
from gdsfw.engine.streams import MASK64, Permutation, Purpose, Stream

if TYPE_CHECKING:
    from gdsfw.engine.spec import BlockSizes, LoopFile, LoopSpec

READ, WRITE = 0, 1
#: io_size that no loop reaches.
UNLIMITED = MASK64


class PlannedIO(NamedTuple):
    """One I/O: `direction` is READ or WRITE, `file` an index into the spec's files, offset and size in bytes."""

    direction: int
    file: int
    offset: int
    size: int


class _Blocks:
    """Block sizes of one direction."""

    __slots__ = ("_choices", "_low", "_single", "_step", "_steps", "_total", "unit")

    def __init__(self, sizes: BlockSizes, align: int) -> None:
        if not sizes.choices or sizes.smallest <= 0 or (sizes.step and len(sizes.choices) != 2):
            raise ValueError(f"no block can be drawn from {sizes}")
        self._choices = sizes.choices
        self._total = sum(weight for _, weight in sizes.choices)
        self._low = sizes.choices[0][0]
        self._step = sizes.step
        self._steps = (sizes.choices[1][0] - self._low) // sizes.step + 1 if sizes.step else 0
        if self._steps < 0 or (len(sizes.choices) > 1 and not sizes.step and self._total == 0):
            raise ValueError(f"no block can be drawn from {sizes}")
        self._single = len(sizes.choices) == 1 or self._steps == 1
        self.unit = align or sizes.smallest

    def draw(self, stream: Stream) -> int:
        if self._single:
            return self._low
        if self._steps:
            return self._low + self._step * stream.below(self._steps)
        r = stream.below(self._total)
        for size, weight in self._choices:
            if r < weight:
                return size
            r -= weight
        raise AssertionError("r is below the sum of the weights")


class _File:
    """Where the pass over one file stands."""

    __slots__ = ("done", "finished", "length", "order", "pass_length", "position", "positions", "start")

    def __init__(self, file: LoopFile, pass_length: int, positions: Positions) -> None:
        self.start = file.start
        self.length = file.length
        self.pass_length = pass_length
        self.positions = positions
        self.position = [0, 0]
        self.done = 0
        self.finished = False
        self.order: Permutation | None = None


class IOSequence:
    """An iterator over the I/O of one loop; it ends when the spec's bytes are issued.

    Raises:
        ValueError: the spec cannot issue anything (no files, only empty ones, no blocks).
    """

    def __init__(self, spec: LoopSpec) -> None:
        seed = spec.seed & MASK64
        reads = spec.rw == "read" or (spec.rw == "readwrite" and spec.read_percent > 0)
        writes = spec.rw == "write" or (spec.rw == "readwrite" and spec.read_percent < 100)
        self._seed = seed
        self._direction_stream = Stream(seed, Purpose.DIRECTION)
        self._size_stream = Stream(seed, Purpose.SIZE)
        self._file_stream = Stream(seed, Purpose.FILE)
        self._offset_stream = Stream(seed, Purpose.OFFSET)
        self._random = spec.random
        self._kind = spec.distribution.kind
        self.once = spec.random and spec.distribution.once_per_block and self._kind == "uniform"
        self._mixed = reads and writes
        self._only = READ if reads else WRITE
        self._read_percent = spec.read_percent
        self._service = spec.file_service
        self._blocks = {
            direction: _Blocks(sizes, spec.block_align)
            for direction, sizes, used in ((READ, spec.read_blocks, reads), (WRITE, spec.write_blocks, writes))
            if used
        }
        largest = max(sizes.largest for sizes, used in ((spec.read_blocks, reads), (spec.write_blocks, writes)) if used)
        align = spec.block_align or 1
        self.cell = -(-largest // align) * align
        self._files = [self._file(file, index, spec) for index, file in enumerate(spec.files)]
        if not any(file.length for file in self._files):
            raise ValueError("no file has a byte to read or write")
        self._current = len(self._files) - 1 if self._service == "roundrobin" else 0
        self.limit = byte_limit(spec)
        self.issued = 0
        self._pass = 0
        self._unfinished = 0
        self._begin_pass()

    def _file(self, file: LoopFile, index: int, spec: LoopSpec) -> _File:
        pass_length = -(-file.length // self.cell) if self.once else file.length
        return _File(file, pass_length, Positions(spec.distribution, self._seed, index))

    def _begin_pass(self) -> None:
        for index, file in enumerate(self._files):
            file.position = [0, 0]
            file.done = 0
            file.positions.run_position = None
            file.finished = file.length == 0
            if self.once and file.length:
                file.order = Permutation(self._seed, index, self._pass, file.pass_length)
        self._unfinished = sum(not file.finished for file in self._files)
        if self._service == "sequential":
            self._current = 0

    def __iter__(self) -> IOSequence:
        return self

    def __next__(self) -> PlannedIO:
        if self.issued >= self.limit:
            raise StopIteration
        index = self._pick_file()
        file = self._files[index]
        direction = self._pick_direction(file)
        size = self._blocks[direction].draw(self._size_stream)
        if not self._random:
            offset, size = self._place_sequential(file, direction, size)
        elif self.once:
            offset, size = self._place_once(file, size)
        else:
            offset, size = self._place_random(file, direction, size)
        size = min(size, self.limit - self.issued)
        self.issued += size
        if file.finished:
            self._unfinished -= 1
            if self._unfinished == 0:
                self._pass += 1
                self._begin_pass()
        return PlannedIO(direction, index, offset, size)

    def _pick_file(self) -> int:
        files = self._files
        if len(files) == 1:
            return 0
        index = self._current
        if self._service == "random":
            index = self._file_stream.below(len(files))
        elif self._service == "roundrobin":
            index = (index + 1) % len(files)
        while files[index].finished:
            index = (index + 1) % len(files)
        self._current = index
        return index

    def _pick_direction(self, file: _File) -> int:
        if not self._mixed:
            return self._only
        direction = READ if self._direction_stream.below(100) < self._read_percent else WRITE
        if not self._random and file.position[direction] >= file.length:
            return 1 - direction
        return direction

    def _place_sequential(self, file: _File, direction: int, size: int) -> tuple[int, int]:
        at = file.position[direction]
        size = min(size, file.length - at)
        file.position[direction] = at + size
        other_over = not self._mixed or file.position[1 - direction] >= file.length
        file.finished = at + size >= file.length and other_over
        return file.start + at, size

    def _place_once(self, file: _File, size: int) -> tuple[int, int]:
        assert file.order is not None
        at = file.order[file.done] * self.cell
        file.done += 1
        file.finished = file.done >= file.pass_length
        return file.start + at, min(size, file.length - at)

    def _place_random(self, file: _File, direction: int, size: int) -> tuple[int, int]:
        unit = self._blocks[direction].unit
        size = min(size, file.length)
        n = (file.length - size) // unit + 1
        if self._kind == "uniform":
            position = self._offset_stream.below(n)
        else:
            position = file.positions.draw(self._offset_stream, direction, n)
            file.positions.run_position = position + -(-size // unit)
        file.done += size
        file.finished = file.done >= file.pass_length
        return file.start + unit * position, size


def byte_limit(spec: LoopSpec) -> int:
    """Bytes after which the sequence of `spec` ends."""
    if spec.io_size:
        return spec.io_size
    if spec.runtime_ns:
        return UNLIMITED
    return min(UNLIMITED, (spec.loops or 1) * sum(file.length for file in spec.files))
