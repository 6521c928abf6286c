"""A child process of a run: takes stages from the run, runs them here, answers with their results.

Why a process started anew: some libraries read their options once, and a fork would inherit what they have read.
"""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
from multiprocessing.connection import Connection
from types import FrameType
from typing import Any

from gdsfw.engine.child_link import Failed, Hello, RunStage, Shown, Stop, unpack
from gdsfw.engine.in_process import InProcess, StageEnd
from gdsfw.errors import ExitCode, GdsfwError
from gdsfw.plugins import PluginManager
from gdsfw.results.progress import Progress

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def main(fd: int) -> None:
    """Serve the run at the other end of `fd` until it closes its end.

    A signal stops the stage as in any run. It may come twice, from the terminal and through the run, so that only the
    run decides about leaving at once: by closing its end of the pipe.
    """
    child = _Child(Connection(fd))

    def stop(number: int, frame: FrameType | None) -> None:
        child.stopped.set()

    for number in STOP_SIGNALS:
        signal.signal(number, stop)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)  # the run blocked them until here
    child.serve()


class _Child:
    def __init__(self, connection: Connection) -> None:
        self.stopped = threading.Event()
        self._connection = connection
        self._stages: queue.SimpleQueue[RunStage | None] = queue.SimpleQueue()
        self._busy = False

    def serve(self) -> None:
        threading.Thread(target=self._listen, daemon=True).start()
        plugins = PluginManager.installed(os.environ)
        self._send(Hello({name: plugin.version for name, plugin in plugins.plugins().items()}))
        stages = InProcess(plugins, _Forward(self._send), self.stopped)
        while (wanted := self._stages.get()) is not None:
            self._busy = True
            end = _run(stages, wanted, plugins)
            self._busy = False
            self._send(end)
            if isinstance(end, StageEnd) and end.abandoned:
                # A thread is still inside a call that does not return: nothing may wait for it.
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(0)

    def _listen(self) -> None:
        """In a thread of its own, so that a stop arrives during a stage."""
        while True:
            try:
                message = self._connection.recv()
            except (EOFError, OSError):
                break
            if isinstance(message, Stop):
                self.stopped.set()
            else:
                self._stages.put(message)
        # The run is gone. When it had asked for a stop, the user wants to be out at once.
        if self._busy and self.stopped.is_set():
            os._exit(ExitCode.INTERRUPTED)
        self.stopped.set()
        self._stages.put(None)

    def _send(self, message: Any) -> None:
        try:
            self._connection.send(message)
        except OSError:  # nobody is there to hear it
            self.stopped.set()


def _run(stages: InProcess, wanted: RunStage, plugins: PluginManager) -> StageEnd | Failed:
    try:
        return stages.run(unpack(wanted.packed, plugins))
    except GdsfwError as error:
        return Failed(error.message, error.hint, int(error.exit_code))
    except Exception as error:
        return Failed(f"{type(error).__name__}: {error}", None, int(ExitCode.INTERNAL))


class _Forward(Progress):
    """Lets the run show what is going on."""

    def __init__(self, send: Any) -> None:
        super().__init__(sys.stderr, quiet=True)
        self._tell = send

    def layout(self, name: str, done: int, total: int) -> None:
        """See Progress."""
        self._tell(Shown("layout", (name, done, total)))

    def job(self, label: str, ios: int, nbytes: int, share: float | None, errors: int, depth: int = 0) -> None:
        """See Progress."""
        self._tell(Shown("job", (label, ios, nbytes, share, errors, depth)))

    def note(self, text: str) -> None:
        """See Progress."""
        self._tell(Shown("note", (text,)))
