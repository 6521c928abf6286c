"""The two data planes of a worker: one request at a time, and as many as there are threads."""

from __future__ import annotations

import errno
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from gdsfw.backend import Completion, FileHandle, QueueRequest
from gdsfw.errors import BackendError, Domain

from gdsfw_fsspec.failures import told

if TYPE_CHECKING:
    from gdsfw_fsspec.opening import Opened

T = TypeVar("T")


class Calls:
    """Read, write and flush, one after another.

    Args:
        buffer: the worker's.
    """

    def __init__(self, buffer: memoryview) -> None:
        self._buffer = buffer
        #: The first failure in the storage's own words, of which the loop keeps the number only.
        self.first_failure = ""

    def read(self, file: FileHandle, size: int, file_offset: int, buffer_offset: int) -> int:
        """From the file into the buffer; a short count at the end of the file."""
        opened: Opened = file.state
        view = self._buffer[buffer_offset : buffer_offset + size]
        return self._do("read", opened, lambda: opened.way.read(view, file_offset))

    def write(self, file: FileHandle, size: int, file_offset: int, buffer_offset: int) -> int:
        """From the buffer into the file, which becomes longer where needed."""
        opened: Opened = file.state
        if not file.writable:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), opened.url)
        view = self._buffer[buffer_offset : buffer_offset + size]
        return self._do("write", opened, lambda: opened.way.write(view, file_offset))

    def flush(self, file: FileHandle, data_only: bool) -> None:
        """Wait for the storage, where it has something to wait for."""
        opened: Opened = file.state
        self._do("flush", opened, lambda: opened.way.flush(data_only))

    def close(self) -> None:
        """Nothing runs."""

    def _do(self, operation: str, opened: Opened, call: Callable[[], T]) -> T:
        try:
            return call()
        except Exception as error:
            known = told(error, operation, opened.url)
            if known is None:
                raise
            self.first_failure = self.first_failure or f"{operation} of {opened.url}: {type(error).__name__}: {error}"
            raise known from error


class Threads(Calls):
    """The same, with up to `depth` requests on their way: file systems answer calls, so each waits in a thread.

    The threads are daemons: one that waits for a server that never answers must not keep the process.
    """

    def __init__(self, buffer: memoryview, depth: int) -> None:
        super().__init__(buffer)
        self._room = depth  # for requests that have not been reaped
        self._waiting: deque[QueueRequest] = deque()
        self._done: list[Completion] = []
        self._defect: BaseException | None = None
        self._closed = False
        lock = threading.Lock()
        self._work, self._finished = threading.Condition(lock), threading.Condition(lock)
        self._threads = [threading.Thread(target=self._serve, name=f"fsspec-{i}", daemon=True) for i in range(depth)]
        for thread in self._threads:
            thread.start()

    def submit(self, requests: Sequence[QueueRequest]) -> int:
        """Take as many as there is room for."""
        with self._work:
            taken = min(len(requests), self._room)
            self._waiting.extend(requests[:taken])
            self._room -= taken
            self._work.notify(taken)
            return taken

    def reap(self, at_least: int, timeout_ns: int) -> list[Completion]:
        """What is done, once it is `at_least` so many or the time is over."""
        with self._finished:
            self._finished.wait_for(
                lambda: self._defect is not None or len(self._done) >= at_least, timeout=timeout_ns / 1e9
            )
            if self._defect is not None:
                raise self._defect
            done, self._done = self._done, []
            self._room += len(done)
            return done

    def cancel(self) -> None:
        """Give back what no thread has begun; what is on its way comes back by itself."""
        with self._finished:
            self._done += [Completion(one.cookie, 0, Domain.ERRNO, errno.ECANCELED) for one in self._waiting]
            self._waiting.clear()
            self._finished.notify()

    def close(self) -> None:
        """End the threads."""
        with self._work:
            self._closed = True
            self._work.notify_all()
        for thread in self._threads:
            thread.join()

    def _serve(self) -> None:
        while True:
            with self._work:
                self._work.wait_for(lambda: self._closed or self._waiting)
                if self._closed:
                    return
                request = self._waiting.popleft()
            try:
                completion = self._complete(request)
            except BaseException as error:
                with self._finished:
                    self._defect = error
                    self._finished.notify()
                return
            with self._finished:
                self._done.append(completion)
                self._finished.notify()

    def _complete(self, request: QueueRequest) -> Completion:
        move = self.read if request.direction == "read" else self.write
        try:
            moved = move(request.file, request.size, request.file_offset, request.buffer_offset)
        except BackendError as error:
            return Completion(request.cookie, 0, error.domain, error.code)
        except OSError as error:
            return Completion(request.cookie, 0, Domain.ERRNO, error.errno or errno.EIO)
        return Completion(request.cookie, moved)
