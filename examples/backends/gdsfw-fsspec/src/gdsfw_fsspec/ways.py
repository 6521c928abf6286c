"""The ways to read and write a range of an open file, none of which depends on where another call left the file."""

from __future__ import annotations

import errno
import os
import threading
from typing import Any

#: All who open one file of memory:// get one object with one position, so they all share one lock.
_MEMORY = threading.Lock()


class Way:
    """How the bytes of one open file move. Safe from any thread.

    Args:
        words: the way, for the evidence in a result.
    """

    #: Whether two calls can be on their way together.
    parallel = True

    def __init__(self, words: str) -> None:
        self.words = words

    def read(self, view: memoryview, offset: int) -> int:
        """Fill `view` from the file's byte `offset` on; fewer bytes at the end of the file."""
        raise NotImplementedError

    def write(self, view: memoryview, offset: int) -> int:
        """Put `view` at the file's byte `offset`."""
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    def flush(self, data_only: bool) -> None:
        """Wait until what was written is on storage; nothing where there is none."""

    def close(self) -> None:
        """Close the file."""


class Descriptor(Way):
    """A file of this machine: positional calls on the descriptor that fsspec opened.

    The file object around it has a buffer and a position, which would show old data and mix up workers.
    """

    def __init__(self, file: Any, words: str) -> None:
        super().__init__(words)
        self._file = file
        self.fd: int = file.fileno()

    def read(self, view: memoryview, offset: int) -> int:
        """One preadv(2)."""
        return os.preadv(self.fd, [view], offset)

    def write(self, view: memoryview, offset: int) -> int:
        """One pwrite(2)."""
        return os.pwrite(self.fd, view, offset)

    def flush(self, data_only: bool) -> None:
        """fdatasync(2) or fsync(2)."""
        (os.fdatasync if data_only else os.fsync)(self.fd)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class Ranges(Way):
    """An object store or web server: each read is one request for a range, nothing is kept.

    Args:
        fs: an asynchronous file system of fsspec; its calls from several threads run beside each other.
        nbytes: size of the object when it was opened; behind that nothing is asked for.
    """

    def __init__(self, fs: Any, path: str, nbytes: int, words: str) -> None:
        super().__init__(words)
        self._fs = fs
        self._path = path
        self._nbytes = nbytes

    def read(self, view: memoryview, offset: int) -> int:
        """One request."""
        size = min(view.nbytes, self._nbytes - offset)
        if size <= 0:
            return 0
        found: bytes = self._fs.cat_file(self._path, start=offset, end=offset + size)
        if len(found) > size:
            words = f"the server sent {len(found)} bytes where {size} were asked for: it ignores ranges"
            raise OSError(errno.EPROTO, words, self._path)
        view[: len(found)] = found
        return len(found)


class Seeking(Way):
    """Anything else: a file object with one position, and a lock around it."""

    parallel = False

    def __init__(self, file: Any, words: str, *, shared: bool = False, nbytes: int | None = None) -> None:
        """Take over an open file.

        Args:
            shared: other openers have the same object.
            nbytes: size of a file that cannot grow; behind it nothing is asked for.
        """
        super().__init__(words)
        self._file = file
        self._lock = _MEMORY if shared else threading.Lock()
        self._nbytes = nbytes

    def read(self, view: memoryview, offset: int) -> int:
        """Go there and read."""
        if self._nbytes is not None and offset >= self._nbytes:
            return 0
        with self._lock:
            self._file.seek(offset)
            return int(self._file.readinto(view))

    def write(self, view: memoryview, offset: int) -> int:
        """Go there and write."""
        with self._lock:
            self._file.seek(offset)
            return int(self._file.write(view))

    def close(self) -> None:
        """Close the file, which for memory:// means nothing."""
        self._file.close()
