"""The I/O log: a CSV file with one line for each I/O.

The job creates it and writes its header; the workers' loops append. `IoLog` is the Python loop's side of it, the twin
of native/log.c: lines are gathered in memory and written in large pieces.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from gdsfw.errors import UnavailableError, UsageError

#: Fields of a line: completion since the start of the loop (ns), read or write, index of the file in the worker, offset
#: and size (bytes), latency from the scheduled start (ns), domain and code of the error (0 and 0 for success).
FIELDS = "time_ns,operation,file,offset,bytes,latency_ns,domain,code"
HEADER = FIELDS + "\n"
GATHERED = 64 << 10


def check_log(path: str) -> None:
    """Refuse to append to a file that is not an I/O log; a missing or empty one will do.

    Raises:
        UsageError: what is there is something else.
        UnavailableError: it cannot be read.
    """
    try:
        if not stat.S_ISREG(Path(path).stat().st_mode):
            raise UsageError(f"io_log {path} is not a regular file", hint="name a new file or an earlier I/O log")
        with Path(path).open(encoding="utf-8", errors="replace") as file:
            found = file.read(len(HEADER))
    except FileNotFoundError:
        return
    except OSError as error:
        raise _cannot_be_used(path, error) from None
    if found not in ("", HEADER):
        raise UsageError(
            f"io_log {path} exists and is no I/O log of gdsfw: it does not begin with {FIELDS}",
            hint="name another file, or remove this one; an earlier I/O log is appended to",
        )


def begin_log(path: str) -> None:
    """Create the log with its header; an earlier one only gets its last line ended.

    Raises:
        UsageError: a file that is not an I/O log is there.
        UnavailableError: it cannot be written.
    """
    check_log(path)
    try:
        with Path(path).open("a+b", buffering=0) as file:
            size = file.seek(0, os.SEEK_END)
            if size == 0:
                file.write(HEADER.encode("ascii"))
            elif os.pread(file.fileno(), 1, size - 1) != b"\n":
                file.write(b"\n")  # a full disk cut the line
    except OSError as error:
        raise _cannot_be_used(path, error) from None


def open_log(path: str) -> int:
    """A descriptor for appending to a log that has begun; whole lines in one write stay whole.

    Raises:
        UnavailableError: it cannot be opened.
    """
    try:
        return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    except OSError as error:
        raise _cannot_be_used(path, error) from None


def _cannot_be_used(path: str, error: OSError) -> UnavailableError:
    return UnavailableError(f"io_log {path}: {error.strerror}")


class IoLog:
    """The I/O log of one worker. Workers may share the file: whole lines go out in one write.

    Raises:
        UnavailableError: the file cannot be opened.
    """

    def __init__(self, path: str) -> None:
        self._fd = open_log(path)
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
