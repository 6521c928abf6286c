"""Progress on stderr: a line for each running job, drawn anew on a terminal; a line every few seconds elsewhere."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from gdsfw.results.table import duration, quantity, size

if TYPE_CHECKING:
    from rich.live import Live

#: Seconds between two lines where there is no terminal.
PLAIN_INTERVAL = 5.0
REDRAW_INTERVAL = 0.25
#: Seconds after which a job that tells nothing any more has no line.
STALE = 2.0


@dataclass
class _Seen:
    """What was known of a job when its line was made first, and last."""

    began: float
    share: float
    then: float
    ios: int
    nbytes: int
    text: str = ""


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
        self._shown: dict[str, float] = {}
        self._jobs: dict[str, _Seen] = {}
        self._live: Live | None = None

    def layout(self, name: str, done: int, total: int) -> None:
        """A file is being laid out: bytes done, bytes in all."""
        if self._due("", final=done >= total and self._terminal):
            text = f"laying out {name}: {size(done)} of {size(total)} ({100 * done / max(1, total):.0f} %)"
            self._show([text] if self._terminal else [], text)

    def job(self, label: str, ios: int, nbytes: int, share: float | None, errors: int, depth: int = 0) -> None:
        """A job is running.

        Args:
            label: of the job and its sweep point.
            ios: I/Os so far.
            nbytes: bytes so far.
            share: done, 0 to 1; None: unknown.
            errors: failed I/Os so far.
            depth: I/Os that all workers keep in flight together, for the mean latency; 0: they wait for a rate or a
                think time in between, which tells nothing of latency.
        """
        if not self._due(label):
            return
        now = time.monotonic()
        seen = self._jobs.get(label)
        if seen is None or ios < seen.ios:  # the ramp has ended, or a repetition has begun
            seen = self._jobs[label] = _Seen(now, share or 0.0, now, ios, nbytes)
        parts = [size(nbytes), *_rates(seen, now, ios, nbytes, depth)]
        if errors:
            parts.append(f"{errors} errors")
        left = _seconds_left(seen, now, share)
        if left is not None:
            parts.append(f"{left:.0f} s left")
        done = "" if share is None else f" {100 * min(1.0, max(0.0, share)):3.0f} %"
        seen.then, seen.ios, seen.nbytes, seen.text = now, ios, nbytes, f"{label}:{done} {', '.join(parts)}"
        self._show([known.text for known in self._jobs.values() if now - known.then < STALE], seen.text)

    def note(self, text: str) -> None:
        """A line that stays."""
        self.clear()
        if not self._quiet:
            print(text, file=self._stream, flush=True)

    def clear(self) -> None:
        """Take the moving lines away."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _due(self, label: str, final: bool = False) -> bool:
        """Whether it is time for a line; without a terminal short jobs have none."""
        if self._quiet:
            return False
        now, last = time.monotonic(), self._shown.get(label)
        if last is not None and not final and now - last < (REDRAW_INTERVAL if self._terminal else PLAIN_INTERVAL):
            return False
        self._shown[label] = now
        return self._terminal or last is not None

    def _show(self, lines: list[str], newest: str) -> None:
        if not self._terminal:
            print(newest, file=self._stream, flush=True)
            return
        from rich.text import Text

        if self._live is None:
            self._live = self._start()
        self._live.update(Text("\n".join(lines), overflow="ellipsis", no_wrap=True), refresh=True)

    def _start(self) -> Live:
        from rich.console import Console
        from rich.live import Live

        console = Console(file=self._stream)
        live = Live(console=console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False)
        live.start()
        console.show_cursor(True)  # a second Ctrl-C leaves at once and would leave it hidden
        return live


def _rates(seen: _Seen, now: float, ios: int, nbytes: int, depth: int) -> list[str]:
    """Since the line before; the mean latency by Little's law: in flight, divided by completions in a second."""
    seconds, done = now - seen.then, ios - seen.ios
    if seconds <= 0:
        return []
    rates = [f"{size((nbytes - seen.nbytes) / seconds)}/s", f"{quantity(done / seconds)} IOPS"]
    return [*rates, f"mean {duration(depth * seconds / done * 1e9)}"] if depth and done else rates


def _seconds_left(seen: _Seen, now: float, share: float | None) -> float | None:
    """As long as what is left takes at the speed so far."""
    if share is None or share <= max(0.0, seen.share) or share >= 1:
        return None
    return (now - seen.began) * (1 - share) / (share - max(0.0, seen.share))
