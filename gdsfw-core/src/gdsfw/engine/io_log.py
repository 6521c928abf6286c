"""One line of text for each I/O, gathered in memory and written in large pieces. The twin of native/log.c."""

from __future__ import annotations

import errno
import os

from gdsfw.errors import UnavailableError

#: Fields of a line: completion since the start of the loop (ns), read or write, index of the file in the worker, offset
#: and size (bytes), latency from the scheduled start (ns), domain and code of the error (0 and 0 for success).
FIELDS = "time_ns,operation,file,offset,bytes,latency_ns,domain,code"
GATHERED = 64 << 10


class IoLog:
    """The I/O log of one worker.

    Workers may share a file: it is opened for appending, and whole lines go out in one write.

    Raises:
        UnavailableError: the file cannot be opened.
    """

    def __init__(self, path: str) -> None:
        try:
            self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise UnavailableError(f"io_log {path}: {error.strerror}") from None
        self._lines: list[str] = []
        self._gathered = 0
        #: Why the log is incomplete; 0 when it is not.
        self.error = 0

    def add(self, line: str) -> None:
        """Remember a line that ends with a newline."""
        self._lines.append(line)
        self._gathered += len(line)
        if self._gathered > GATHERED:
            self.flush()

    def flush(self) -> None:
        """Write what was gathered. A failure ends the log and not the I/O."""
        data = memoryview("".join(self._lines).encode("ascii"))
        self._lines.clear()
        self._gathered = 0
        try:
            while data and not self.error:
                data = data[os.write(self._fd, data) :]
        except OSError as error:
            self.error = error.errno or errno.EIO

    def close(self) -> None:
        """Write the rest and close the file."""
        self.flush()
        os.close(self._fd)
