"""SIGINT and SIGTERM during a run: the handler sets a flag and does nothing else."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType, TracebackType
from typing import Any

from gdsfw.errors import ExitCode


class Interrupts:
    """While active, the first SIGINT or SIGTERM sets `flag`; a second one leaves the process at once.

    Why a flag: an exception raised inside Thread.join can make a later join return while the thread still runs
    (seen with CPython 3.11), and no lock may be taken in a handler. Outside the main thread nothing is installed.
    """

    def __init__(self) -> None:
        self.flag = threading.Event()
        self.signal: int | None = None
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, previous in self._previous.items():
            signal.signal(number, previous)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.signal is not None:
            os._exit(ExitCode.INTERRUPTED)
        self.signal = number
        self.flag.set()
