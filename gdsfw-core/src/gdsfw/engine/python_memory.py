"""The worker's buffer as the Python loop fills and verifies it. The twin of native/buffers.c and native/verify.c.

Memory that the host can touch is handled here; other memory by the path's own `fill`, `verify` and `copy`.
"""

from __future__ import annotations

import errno
from bisect import bisect_right
from typing import TYPE_CHECKING, Any, Literal

from gdsfw.backend import Pattern
from gdsfw.engine import pattern
from gdsfw.engine.buffers import WriteData
from gdsfw.engine.spec import Mismatch, VerifyStats
from gdsfw.engine.track import UNKNOWN
from gdsfw.errors import BackendError

if TYPE_CHECKING:
    from collections.abc import Callable

    from gdsfw.backend import Buffer, PatternMismatch, PythonIO
    from gdsfw.engine.offsets import PlannedIO
    from gdsfw.engine.spec import LoopSpec
    from gdsfw.engine.track import Track

#: Bad blocks that are described; the rest is counted.
DESCRIBED = 16


class Memory:
    """Buffer slots, what goes into them and what came out.

    Args:
        track: generations and acknowledged writes, None when nothing is tracked.
    """

    def __init__(self, spec: LoopSpec, io: PythonIO, buffer: Buffer, track: Track | None) -> None:
        self._spec = spec
        self._io: Any = io
        self._view = buffer.host_view.cast("B") if buffer.host_view is not None else None
        self._track = track
        self._fill = getattr(io, "fill", None)
        self._verify = getattr(io, "verify", None)
        self._make = None if self._view is not None else getattr(io, "make_data", None)
        self._data = WriteData(spec)
        # By slot: something else has replaced the data to write.
        self._stale = [False] * spec.iodepth
        self.stats = VerifyStats()

    @property
    def filling(self) -> Literal["copy", "fill"]:
        """The operation that `fill_slots` needs."""
        return "copy" if self._make is None else "fill"

    @property
    def can_fill(self) -> bool:
        """Whether a pattern can be put into the buffer."""
        return self._fill is not None or self._view is not None

    @property
    def can_verify(self) -> bool:
        """Whether the buffer can be compared with a pattern."""
        return self._verify is not None or self._view is not None

    def offset(self, slot: int) -> int:
        """Where a slot begins in the buffer."""
        return self._spec.buffer_offset + slot * self._spec.slot_stride

    def fill_slots(self) -> None:
        """Put data to write into every slot, once before the loop.

        Raises:
            OSError, BackendError: from the path's `copy` or `make_data`.
        """
        spec = self._spec
        if spec.rw == "read" or spec.write_fill == "pattern":
            return
        size = spec.write_blocks.largest
        copy = getattr(self._io, "copy", None)
        for slot in range(spec.iodepth):
            at = self.offset(slot)
            if self._view is not None:
                self._data.make(self._view[at : at + size], slot)
            elif self._make is not None:
                self._make(size, at, self._data.base(slot))
            elif copy is not None:
                self._copy_in(copy, at, slot, size)

    def _copy_in(self, copy: Callable[[int, memoryview, str], object], at: int, slot: int, size: int) -> None:
        for piece, data in self._data.staging(slot, size):
            try:
                copy(at + piece, memoryview(data), "from_host")
            except OSError as error:
                if error.errno != errno.EOPNOTSUPP:
                    raise
                return  # no way to reach the memory: it is written as it is

    def was_read(self, slot: int) -> None:
        """A read has replaced what the slot held."""
        self._stale[slot] = True

    def prepare(self, io: PlannedIO, slot: int) -> None:
        """Make the slot's data ready for a write.

        Raises:
            OSError, BackendError: from the path's `fill` or `make_data`.
        """
        at = self.offset(slot)
        if self._spec.write_fill == "pattern":
            self._fill_pattern(io, at)
        elif self._make is not None and self._data.remakes:
            self._make(io.size, at, self._data.block(slot, io.size))
        elif self._view is not None:
            self._stale[slot] = self._data.prepare(self._view[at : at + io.size], slot, self._stale[slot])

    def _fill_pattern(self, io: PlannedIO, at: int) -> None:
        done = 0
        while done < io.size:
            size, generation = self._run(io, done, io.size - done)
            # Without generations every write repeats generation 0.
            following = (generation & ~UNKNOWN) + 1 if self._spec.verify and self._spec.verify.generations else 0
            wanted = self._pattern(io, following)
            if self._fill is not None:
                self._fill(size, io.offset + done, at + done, wanted)
            else:
                assert self._view is not None
                pattern.fill(self._view[at + done : at + done + size], io.offset + done, wanted)
            done += size

    def check(self, io: PlannedIO, slot: int, failed: Callable[[OSError | BackendError], bool]) -> bool:
        """Compare what a read brought with what should be there; what differs goes into `stats`.

        Bytes outside the file's known ranges and of a block whose last write failed are not expected: nobody can say
        what they should be.

        Args:
            failed: told of a failure of the path's `verify`; False ends the loop.

        Returns:
            False when the loop is to end.
        """
        at = self.offset(slot)
        first: PatternMismatch | None = None
        bad = done = 0
        checked_before = self.stats.checked_bytes
        while done < io.size:
            known, size = self._known(io, done)
            size, generation = self._run(io, done, size)
            begin, done = done, done + size
            if not known or generation & UNKNOWN:
                self.stats.unknown_bytes += size
                continue
            self.stats.expected_bytes += size
            try:
                mismatch = self._compare(io, at, begin, size, generation)
            except (OSError, BackendError) as error:
                if not failed(error):
                    return False
                continue
            self.stats.checked_bytes += size
            if mismatch is not None:
                first = first or mismatch
                bad += mismatch.bad_bytes
        self.stats.checked_blocks += self.stats.checked_bytes > checked_before
        if first is not None:
            self._note_bad(Mismatch(io.file, first.file_offset, first.expected, first.found, bad))
        return True

    def _compare(self, io: PlannedIO, at: int, begin: int, size: int, generation: int) -> PatternMismatch | None:
        expected = self._pattern(io, generation)
        if self._verify is not None:
            result: PatternMismatch | None = self._verify(size, io.offset + begin, at + begin, expected)
            return result
        assert self._view is not None
        return pattern.verify(self._view[at + begin : at + begin + size], io.offset + begin, expected)

    def _note_bad(self, mismatch: Mismatch) -> None:
        if self.stats.bad_blocks < DESCRIBED:
            self.stats.mismatches += (mismatch,)
        self.stats.bad_blocks += 1

    def _known(self, io: PlannedIO, done: int) -> tuple[bool, int]:
        """From byte `done` of a block on: whether bytes are known to hold the pattern, and for how many that is so."""
        known, size = self._spec.files[io.file].known, io.size - done
        if known is None:
            return True, size
        at = io.offset + done
        index = bisect_right(known, at, key=sum)
        if index == len(known):
            return False, size
        start, length = known[index]
        return start <= at, min(size, (start + length if start <= at else start) - at)

    def _run(self, io: PlannedIO, done: int, size: int) -> tuple[int, int]:
        """From byte `done` of a block on: how many bytes, at most `size`, share one generation, and which."""
        if self._track is None:
            return size, 0
        return self._track.run(io.file, io.offset + done, size)

    def _pattern(self, io: PlannedIO, generation: int) -> Pattern:
        file = self._spec.files[io.file]
        return Pattern(file.pattern_seed, file.file_id, generation)
