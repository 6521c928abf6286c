"""Which files of a directory gdsfw created, and what it wrote into them: `.gdsfw-manifest.json`.

The manifest decides what may be overwritten and deleted, so a planted one must not be believed: it counts only as a
regular file of this user that nobody else may write, and an entry only while device, inode and time of birth still are
the file's and the file is no longer than gdsfw made it.
"""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gdsfw.storage.filesystems import granule

if TYPE_CHECKING:
    from gdsfw.storage.identity import Identity

NAME = ".gdsfw-manifest.json"
LOCK = ".gdsfw-manifest.lock"
_VERSION = 1


@dataclass(frozen=True)
class Entry:
    """One file.

    Args:
        size: bytes it was made for; a file that has grown beyond is the user's.
        created: gdsfw created it, so `clean` may delete it; else it only wrote into it, with permission.
        born: time of birth in nanoseconds, None where the file system does not keep it.
        complete: it holds data from end to end, whatever data that is.
        pattern_seed: of the verification pattern in it.
        written: merged (start, length) ranges that hold the pattern.
        unknown: ranges whose last write failed or was cut off: either content is right.
    """

    name: str
    device: int
    inode: int
    size: int
    job: str
    file_id: int
    created: bool
    born: int | None = None
    complete: bool = False
    pattern_seed: int = 0
    generations: bool = False
    written: tuple[tuple[int, int], ...] = ()
    unknown: tuple[tuple[int, int], ...] = ()

    def is_file(self, found: Identity) -> bool:
        """Whether this is the file recorded."""
        status = found.status
        return (
            stat.S_ISREG(status.st_mode)
            and (status.st_dev, status.st_ino, found.born) == (self.device, self.inode, self.born)
            and status.st_size <= self.size
        )

    def holds_pattern(self, start: int, length: int) -> bool:
        """Whether the whole range was written with the pattern."""
        return any(at <= start and start + length <= at + size for at, size in self.written)


@dataclass
class Manifest:
    """The entries of one directory. `distrust` says why a manifest that is there was not believed."""

    directory: Path
    entries: dict[str, Entry] = field(default_factory=dict)
    distrust: str | None = None

    @classmethod
    def load(cls, directory: str | Path) -> Manifest:
        """Read the manifest of a directory; never raises: what cannot be believed is empty and says why."""
        place = Path(directory)
        try:
            return cls(place, _read(place / NAME))
        except FileNotFoundError:
            return cls(place)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            return cls(place, distrust=f"{place / NAME} is not believed: {error}")

    def entry(self, name: str) -> Entry | None:
        """What is recorded of a file name."""
        return self.entries.get(name)

    def owns(self, name: str, found: Identity) -> bool:
        """Whether gdsfw created the file that was found at this name."""
        entry = self.entries.get(name)
        return entry is not None and entry.created and entry.is_file(found)

    def record(self, entry: Entry) -> None:
        """Add or replace an entry, here and on disk."""
        self._change(lambda entries: entries.__setitem__(entry.name, entry))

    def update(self, name: str, **changes: Any) -> None:
        """Change fields of an entry (`written`, `unknown`, `pattern_seed` ...), here and on disk."""

        def change(entries: dict[str, Entry]) -> None:
            if name in entries:
                entries[name] = replace(entries[name], **changes)

        self._change(change)

    def forget(self, name: str) -> None:
        """Remove an entry; the last one takes the manifest with it."""
        self._change(lambda entries: entries.pop(name, None))

    def _change(self, change: Any) -> None:
        with _locked(self.directory):
            fresh = Manifest.load(self.directory)
            if fresh.distrust and (self.directory / NAME).exists():
                # Somebody else's file stands where the manifest would be: it is left alone.
                self.distrust = fresh.distrust
                return
            change(fresh.entries)
            self.entries = fresh.entries
            _write(self.directory, fresh.entries)


def merge_ranges(ranges: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Sorted (start, length) ranges without overlaps or touching neighbours."""
    merged: list[tuple[int, int]] = []
    for start, length in sorted(ranges):
        if merged and start <= merged[-1][0] + merged[-1][1]:
            last = merged[-1]
            merged[-1] = (last[0], max(last[1], start + length - last[0]))
        else:
            merged.append((start, length))
    return tuple(merged)


def subtract_ranges(
    ranges: tuple[tuple[int, int], ...], holes: tuple[tuple[int, int], ...]
) -> tuple[tuple[int, int], ...]:
    """`ranges` without the bytes of `holes`."""
    left = list(ranges)
    for hole, size in holes:
        cut: list[tuple[int, int]] = []
        for start, length in left:
            before, after = min(start + length, hole) - start, start + length - max(start, hole + size)
            if before > 0:
                cut.append((start, before))
            if after > 0:
                cut.append((start + length - after, after))
        left = cut
    return merge_ranges(left)


def _read(path: Path) -> dict[str, Entry]:
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    with open(fd, encoding="utf-8") as file:  # noqa: PTH123 - the descriptor that was checked
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("not a regular file")
        if status.st_uid != os.geteuid():
            raise ValueError("it belongs to another user")
        if status.st_mode & 0o022:
            raise ValueError("others may write it")
        document = json.load(file)
    if document["version"] != _VERSION:
        raise ValueError(f"version {document['version']}, this gdsfw knows {_VERSION}")
    entries = [_entry(item) for item in document["files"]]
    return {entry.name: entry for entry in entries}


def _entry(item: dict[str, Any]) -> Entry:
    ranges = {key: tuple((int(a), int(b)) for a, b in item.get(key, ())) for key in ("written", "unknown")}
    entry = Entry(**{**item, **ranges})
    texts, flags = (entry.name, entry.job), (entry.created, entry.complete, entry.generations)
    numbers = (entry.device, entry.inode, entry.size, entry.file_id, entry.pattern_seed, entry.born or 0)
    sound = (
        all(type(value) is str for value in texts)
        and all(type(value) is bool for value in flags)
        and all(type(value) is int for value in numbers)
    )
    if not sound or "/" in entry.name:
        raise ValueError(f"entry {entry.name!r} is malformed")
    return entry


def _write(directory: Path, entries: dict[str, Entry]) -> None:
    path = directory / NAME
    if not entries:
        path.unlink(missing_ok=True)
        return
    document = {"version": _VERSION, "files": [asdict(entry) for entry in entries.values()]}
    temporary = directory / f"{NAME}.{os.getpid()}"
    # Without fsync on purpose: a manifest lost in a power cut makes gdsfw refuse, never overwrite.
    fd = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(fd, "wb", buffering=0) as file:  # noqa: PTH123
        _write_text(file.fileno(), json.dumps(document).encode())
    temporary.replace(path)


def _write_text(fd: int, text: bytes) -> None:
    """Into an empty file. hugetlbfs takes no write, but a mapping of whole pages; blanks, allowed in JSON, fill it."""
    page = granule(fd)
    if page == mmap.PAGESIZE:
        with open(fd, "wb", closefd=False) as file:
            file.write(text)
        return
    length = -(-len(text) // page) * page
    os.ftruncate(fd, length)
    with mmap.mmap(fd, length) as memory:
        memory[:] = text.ljust(length)


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """One gdsfw process at a time changes a directory's manifest. The lock goes with the last entry."""
    path = directory / LOCK
    fd = _lock(path)
    try:
        yield
        if not (directory / NAME).exists():
            path.unlink(missing_ok=True)
    finally:
        os.close(fd)


def _lock(path: Path) -> int:
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        fcntl.flock(fd, fcntl.LOCK_EX)
        try:
            # Whoever held it before may have removed it: then this is the lock of nothing.
            if os.path.samestat(os.fstat(fd), path.lstat()):
                return fd
        except FileNotFoundError:
            pass
        os.close(fd)
