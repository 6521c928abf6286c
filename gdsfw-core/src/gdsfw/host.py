"""What probes may look at: a machine's files, or a tree of them recorded on another machine."""

from __future__ import annotations

import os
from pathlib import Path

#: Where a recorded tree has the environment's variables that probes asked for, a line `NAME=value` each.
ENVIRONMENT = "gdsfw-environment"
#: More than any file of /proc and /sys that a probe reads.
_MOST_BYTES = 1 << 20


class Host:
    """Read-only look at a machine. No method raises.

    Args:
        root: folder that stands for `/`.
        live: false for a recorded tree: what it says is then no statement about this machine, and libraries and
            devices must not be asked.
        asks: probes may ask drivers and libraries, which takes time and can hang; otherwise they read files only.
    """

    def __init__(self, root: str | Path = "/", live: bool = True, asks: bool = False) -> None:
        self.root = Path(root)
        self.live = live
        self.asks = asks and live

    def variable(self, name: str) -> str | None:
        """An environment variable of this process, or of the one that recorded the tree."""
        if self.live:
            return os.environ.get(name)
        for line in (self.read(f"/{ENVIRONMENT}") or "").splitlines():
            key, _, value = line.partition("=")
            if key == name:
                return value
        return None

    def read(self, path: str) -> str | None:
        """Text of the file at the absolute `path`, without the final newline; None when it cannot be read.

        At most 1 MiB; bytes that are no UTF-8 are replaced.
        """
        try:
            # A probe must not hang on a FIFO or a device: those are not opened for waiting.
            descriptor = os.open(self._place(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except (OSError, ValueError):
            return None
        try:
            return self._drain(descriptor)
        except OSError:
            return None
        finally:
            os.close(descriptor)

    def read_bytes(self, path: str, most: int = 4096) -> bytes:
        """The first `most` bytes of a file; empty when it cannot be read."""
        try:
            descriptor = os.open(self._place(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except (OSError, ValueError):
            return b""
        try:
            return os.read(descriptor, most)
        except OSError:
            return b""
        finally:
            os.close(descriptor)

    def has_word(self, path: str, word: str) -> bool | None:
        """Whether a file of any length has `word` in it; None when it cannot be read or is empty."""
        seen, tail = False, b""
        try:
            with self._place(path).open("rb") as file:
                while piece := file.read(1 << 20):
                    seen = True
                    if word.encode() in tail + piece:
                        return True
                    tail = piece[-len(word) :]
        except (OSError, ValueError):
            return None
        return False if seen else None

    def resolve(self, path: str) -> str | None:
        """`path` with its symbolic links followed, as an absolute path of that machine; None when nothing is there."""
        try:
            root = os.path.realpath(self.root)
            real = os.path.realpath(self._place(path))
        except (OSError, ValueError):
            return None
        if not os.path.lexists(real):
            return None
        return real if root == "/" else "/" + os.path.relpath(real, root)

    def exists(self, path: str) -> bool:
        """Whether there is something at `path`; a broken symbolic link counts."""
        try:
            return os.path.lexists(self._place(path))
        except (OSError, ValueError):
            return False

    def listdir(self, path: str) -> list[str]:
        """Sorted names in the folder `path`; empty when there is none or it cannot be read."""
        try:
            return sorted(entry.name for entry in self._place(path).iterdir())
        except (OSError, ValueError):
            return []

    def _place(self, path: str) -> Path:
        """`path` below `root`; neither `..` nor a recorded symbolic link leads out of it."""
        place = self.root / os.path.normpath(f"/{path}").lstrip("/")
        if not self.live and not Path(os.path.realpath(place)).is_relative_to(os.path.realpath(self.root)):
            raise ValueError(f"{path} leads out of {self.root}")
        return place

    @staticmethod
    def _drain(descriptor: int) -> str:
        pieces = []
        left = _MOST_BYTES
        while left and (piece := os.read(descriptor, left)):
            pieces.append(piece)
            left -= len(piece)
        return b"".join(pieces).decode("utf-8", "replace").rstrip("\n")
