"""Progress on stderr: one line that is rewritten on a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import time
from typing import IO

from gdsfw.results.table import quantity, size

#: Seconds between two lines where there is no terminal.
PLAIN_INTERVAL = 5.0
REDRAW_INTERVAL = 0.25


class Progress:
    """Shows what is going on.

    Args:
        stream: usually sys.stderr.
        quiet: show nothing.
    """

    def __init__(self, stream: IO[str], quiet: bool = False) -> None:
        self._stream = stream
        self._quiet = quiet
        self._terminal = stream.isatty()
        self._last = 0.0
        self._rates: dict[str, tuple[float, int, int]] = {}
        self._dirty = False

    def layout(self, name: str, done: int, total: int) -> None:
        """A file is being laid out: bytes done, bytes in all."""
        if self._due(final=done >= total and self._terminal):
            self._show(f"laying out {name}: {size(done)} of {size(total)} ({100 * done / max(1, total):.0f} %)")

    def job(self, label: str, ios: int, nbytes: int, share: float | None, errors: int) -> None:
        """A job is running: I/Os and bytes so far, the share done (0 to 1, None unknown), errors so far."""
        if not self._due():
            return
        now = time.monotonic()
        then, ios_then, bytes_then = self._rates.get(label, (now, ios, nbytes))
        self._rates[label] = (now, ios, nbytes)
        seconds = now - then
        rate = ""
        if seconds > 0 and ios >= ios_then:
            rate = f", {quantity((ios - ios_then) / seconds)} IOPS, {size((nbytes - bytes_then) / seconds)}/s"
        done = "" if share is None else f" {100 * min(1.0, share):3.0f} %"
        failed = f", {errors} errors" if errors else ""
        self._show(f"{label}:{done} {size(nbytes)}{rate}{failed}")

    def note(self, text: str) -> None:
        """A line that stays."""
        self.clear()
        if not self._quiet:
            print(text, file=self._stream, flush=True)

    def clear(self) -> None:
        """Take the moving line away."""
        if self._dirty:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._dirty = False

    def _due(self, final: bool = False) -> bool:
        if self._quiet:
            return False
        now = time.monotonic()
        if not final and now - self._last < (REDRAW_INTERVAL if self._terminal else PLAIN_INTERVAL):
            return False
        first = self._last == 0.0
        self._last = now
        return self._terminal or not first

    def _show(self, text: str) -> None:
        if self._terminal:
            self._stream.write(f"\r\x1b[K{text}")
            self._stream.flush()
            self._dirty = True
        else:
            print(text, file=self._stream, flush=True)
