"""The types of the data plane: what gdsfw_io returns. A backend imports them from gdsfw.backend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, runtime_checkable

from gdsfw.errors import Domain

if TYPE_CHECKING:
    from gdsfw.backend import Buffer, FileHandle
    from gdsfw.engine.native import NativeTable

Direction = Literal["read", "write"]
CopyDirection = Literal["to_host", "from_host"]


@dataclass(frozen=True)
class Pattern:
    """What the bytes of a file are when verified: a pure function of these and the offset (gdsfw_backend.h).

    Args:
        generation: how often the block was written before; 0 unless the job asks for generations.
    """

    seed: int
    file_id: int
    generation: int = 0


@dataclass(frozen=True)
class PatternMismatch:
    """How a range differs from its pattern.

    Args:
        file_offset: of the first byte that differs.
        expected, found: up to 16 bytes from there on, as far as the range goes.
        bad_bytes: bytes that differ in the whole range.
    """

    file_offset: int
    expected: bytes
    found: bytes
    bad_bytes: int


@dataclass(frozen=True)
class BlockData:
    """What a block to be written holds, a pure function of these and the byte's place in it (struct gdsfw_block_data).

    Of every `piece` bytes the first `random` are those of the pattern (seed, file_id) at the same place of a file, each
    8 of them xored with `nonce`; the rest is zero. With `stamped` nothing is xored: every 512 bytes of the piece's
    random part begin with 8 of nonce + place * 0x9E3779B97F4A7C15, if the block goes so far.
    """

    seed: int
    file_id: int
    nonce: int
    piece: int
    random: int
    stamped: bool


class QueueRequest(NamedTuple):
    """One I/O for a queue. `cookie` comes back in the completion; consecutive requests have consecutive cookies."""

    direction: Direction
    file: FileHandle
    size: int
    file_offset: int
    buffer_offset: int
    cookie: int


@dataclass(slots=True)
class Completion:
    """What became of a request: `result` bytes moved when `domain` is NONE, else a positive error `code`.

    With count > 1 the requests cookie .. cookie + count - 1 are done at once, each in full. storage_ns, copy_ns:
    time spent at the storage and copying, where the path tells them apart.
    """

    cookie: int
    result: int = 0
    domain: Domain = Domain.NONE
    code: int = 0
    count: int = 1
    storage_ns: int = 0
    copy_ns: int = 0


@runtime_checkable
class PythonIO(Protocol):
    """The data plane in Python. Offsets and sizes in bytes; a short count is allowed, 0 means end of file.

    Optional methods, looked for once; buffer_offset counts from the start of the worker's buffer:

    - `flush(file, data_only)`: fsync, or fdatasync. Needed for the fsync keys.
    - `submit(requests) -> int` and `reap(at_least, timeout_ns) -> Sequence[Completion]`: a queue. `submit` takes the
      first k QueueRequests and returns k, 0 when full; `reap` waits until so many completions are there or the
      timeout has passed. With both present the loop uses the queue. `cancel()`, if there, asks for what is in flight
      to end early; its completions (ECANCELED) still come through `reap`.
    - `fill(size, file_offset, buffer_offset, pattern)` and
      `verify(size, file_offset, buffer_offset, pattern) -> PatternMismatch | None`: needed to verify in memory that the
      host cannot touch (Buffer.host_view is None).
    - `copy(buffer_offset, host_view, direction)`: how data gets into such memory before a write.
    - `make_data(size, buffer_offset, data)`: put the block that a BlockData describes there; without it, data in such
      memory is made once for each slot, and the shares of buffer_compress and buffer_dedupe are those of the slots.
    - `register_buffer(buffer_offset, size)` and `deregister_buffer(buffer_offset)`: for `register_buffers: per_io`.
    - `max_transfer`, an attribute: most bytes of one call; the loop splits larger blocks.

    Failures are OSError (errno) or BackendError (any domain).
    """

    def read(self, file: FileHandle, size: int, file_offset: int, buffer_offset: int) -> int:
        """Move `size` bytes from the file into the worker's buffer and return the count moved."""
        ...

    def write(self, file: FileHandle, size: int, file_offset: int, buffer_offset: int) -> int:
        """Move `size` bytes from the worker's buffer into the file and return the count moved."""
        ...


class IOPath:
    """What gdsfw_io returns: the data plane of one worker, native, Python or both.

    Args:
        name: the path in use (`psync`), which may differ from the one asked for (`auto`).
        files: the worker's files in the order of the request; native calls get `file_values[i]`.
        python: an object as PythonIO describes.
        native: table of C functions (gdsfw_backend.h) and one opaque 64-bit value for each file.
        iodepth: depth it will really keep.
        iodepth_batch: how many I/Os to submit and collect at once; 0: as the job says.
        registers: false where there is nobody to register blocks with, so that `register_buffers: per_io` asks nothing.
        notes: lines for the result, for instance why it is not the path that was asked for.
        keep: objects that must live as long as the path.
    """

    def __init__(
        self,
        name: str,
        files: Sequence[FileHandle],
        *,
        python: PythonIO | None = None,
        native: NativeTable | None = None,
        file_values: Sequence[int] = (),
        iodepth: int = 1,
        iodepth_batch: int = 0,
        registers: bool = True,
        notes: Sequence[str] = (),
        keep: Sequence[Any] = (),
    ) -> None:
        if python is None and native is None:
            raise TypeError("an IOPath needs `python`, `native` or both")
        if native is not None and len(file_values) != len(files):
            raise TypeError(f"{len(files)} files but {len(file_values)} file values")
        self.name = name
        self.files = tuple(files)
        self.python = python
        self.native = native
        self.file_values = tuple(file_values)
        self.iodepth = iodepth
        self.iodepth_batch = iodepth_batch
        self.registers = registers
        self.notes = tuple(notes)
        self.keep = tuple(keep)
        self.instrumented: tuple[str, ...] = ()

    def as_python(self, buffer: Buffer) -> PythonIO:
        """This path as read/write calls, whatever it is made of: what a wrapping plugin builds on (WrappedPath)."""
        if self.python is not None:
            return self.python
        from gdsfw.engine.table_io import table_io

        assert self.native is not None
        values = dict(zip(map(id, self.files), self.file_values, strict=True))
        return table_io(self.native, values, buffer, self.iodepth)

    def close(self) -> None:
        """Release what the path holds. Called once, when nothing is in flight; override as needed."""


class WrappedPath(IOPath):
    """A path with a plugin's calls around its own: what a wrapper of gdsfw_io returns.

    The Python loop drives it, and the result says `instrumented: [plugin]`. What else a backend keeps on its path is
    found on this one too.

    Args:
        inner: what the backend, or the wrapper before, returned. It is closed when this cannot be made.
        buffer: the worker's buffer.
        plugin: name of the wrapping plugin.
        wrap: makes the calls from those of the inner path (`as_python`). What they offer beside read and write should
            be passed on: the loop and the job need it (PythonIO).
    """

    def __init__(self, inner: IOPath, buffer: Buffer, plugin: str, wrap: Callable[[PythonIO], PythonIO]) -> None:
        self._inner = inner
        try:
            calls = inner.as_python(buffer)
            same = {name: getattr(inner, name) for name in ("iodepth", "iodepth_batch", "registers", "notes")}
            super().__init__(inner.name, inner.files, python=wrap(calls), **same)
        except BaseException:
            inner.close()
            raise
        self.instrumented = (*inner.instrumented, plugin)
        # Made for this path alone, while a path's own object is closed with the path.
        self._made: Any = calls if inner.python is None else None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_inner"], name)

    def close(self) -> None:
        """Close the calls that were made for this path, then the inner path."""
        try:
            getattr(self._made, "close", lambda: None)()
        finally:
            self._inner.close()
