"""The data plane of a synchronous path, with faults at its calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gdsfw_fault.queue import FaultyQueue
from gdsfw_fault.script import act

if TYPE_CHECKING:
    from gdsfw.backend import FileHandle, PythonIO

    from gdsfw_fault.script import Script


def faulty(calls: PythonIO, script: Script) -> PythonIO:
    """`calls`, with what the script says happening to them."""
    queued = hasattr(calls, "submit") and hasattr(calls, "reap")
    return FaultyQueueIO(calls, script) if queued else FaultyIO(calls, script)


class FaultyIO:
    """Reads, writes and flushes. Whatever else the inner path has is passed on as it is."""

    def __init__(self, inner: Any, script: Script) -> None:
        self._inner = inner
        self._script = script
        if hasattr(inner, "flush"):  # a path without it must not seem to have it
            self.flush = self._flush

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def read(self, file: FileHandle, size: int, file_offset: int, buffer_offset: int) -> int:
        """Read, unless the script says otherwise."""
        return self._move("read", file, size, file_offset, buffer_offset)

    def write(self, file: FileHandle, size: int, file_offset: int, buffer_offset: int) -> int:
        """Write, unless the script says otherwise."""
        return self._move("write", file, size, file_offset, buffer_offset)

    def _move(self, name: str, file: FileHandle, size: int, file_offset: int, buffer_offset: int) -> int:
        hit = self._script.look(name)
        act(hit)
        moved: int = getattr(self._inner, name)(file, min(size, hit.short or size), file_offset, buffer_offset)
        return moved

    def _flush(self, file: FileHandle, data_only: bool) -> None:
        self._script.strike("flush")
        self._inner.flush(file, data_only)


class FaultyQueueIO(FaultyIO):
    """The same, and requests in flight."""

    def __init__(self, inner: Any, script: Script) -> None:
        super().__init__(inner, script)
        queue = FaultyQueue(inner, script)
        self.submit, self.reap, self.cancel = queue.submit, queue.reap, queue.cancel
