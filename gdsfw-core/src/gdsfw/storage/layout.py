"""Laying out files for jobs that read: gdsfw's own files, filled with the verification pattern.

The pattern is incompressible and a pure function of seed, file and offset, so any later job can check it.
"""

from __future__ import annotations

import errno
import mmap
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from gdsfw.backend import Pattern, Target
from gdsfw.engine import pattern as pattern_data
from gdsfw.errors import RefusedError, StoppedError, UnavailableError
from gdsfw.storage.filesystems import free_space, granule
from gdsfw.storage.identity import identify
from gdsfw.storage.manifest import Entry, Manifest
from gdsfw.storage.safe_open import close_file, open_target

#: Bytes that are filled and written at once: large enough for the device, small enough for the CPU's cache.
CHUNK = 1 << 20
#: Threads: filling takes the CPU about as long as writing into the page cache, so two keep each other busy.
THREADS = 2


@dataclass(frozen=True)
class LaidOut:
    """What layout did: whether it wrote, how long it took, and the seed of the pattern that is in the file."""

    created: bool
    seconds: float
    pattern_seed: int


def ensure_file(
    target: Target,
    *,
    pattern_seed: int,
    need_pattern: bool,
    progress: Callable[[int, int], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> LaidOut:
    """Make sure that gdsfw's own file is there and has `target.nbytes` bytes of data.

    Args:
        target: the file; an existing one is reused when gdsfw made it as long as this.
        pattern_seed: seed for a new file.
        need_pattern: the job verifies, so a reused file must hold the pattern from end to end.
        progress: called with (bytes done, bytes in all).
        stop: asked between chunks; True removes the partial file.

    Raises:
        RefusedError: a file of that name is not gdsfw's own.
        UnavailableError: no space, no permission.
        StoppedError: `stop` said so.
    """
    began = time.monotonic()
    entry = _reusable(target, need_pattern)
    if entry is not None:
        return LaidOut(False, time.monotonic() - began, entry.pattern_seed)
    handle = open_target(Target(**{**vars(target), "create": True, "direct": "false"}), "rw")
    manifest = Manifest.load(target.path.parent)
    try:
        manifest.update(target.path.name, size=target.nbytes, complete=False, written=(), unknown=())
        _fill(handle.fd, target, Pattern(pattern_seed, target.file_id), progress, stop)
        os.fsync(handle.fd)
    except StoppedError:
        target.path.unlink(missing_ok=True)
        manifest.forget(target.path.name)
        raise
    except OSError as error:
        raise _explain(target, error) from error
    finally:
        close_file(handle)
    manifest.update(
        target.path.name,
        complete=True,
        pattern_seed=pattern_seed,
        generations=False,
        written=((0, target.nbytes),),
    )
    return LaidOut(True, time.monotonic() - began, pattern_seed)


def _reusable(target: Target, need_pattern: bool) -> Entry | None:
    """The entry of an existing file that will do; None when the file must be written; refuses the user's."""
    try:
        found = identify(target.path)
    except FileNotFoundError:
        return None
    manifest = Manifest.load(target.path.parent)
    entry = manifest.entry(target.path.name)
    if entry is None or not manifest.owns(target.path.name, found):
        doubt = f" ({manifest.distrust})" if manifest.distrust else ""
        raise RefusedError(
            f"{target.path} exists and gdsfw did not create it{doubt}",
            hint="choose another `name` or `directory`, or name the file with `filename` to read it as it is",
        )
    if found.status.st_size < target.nbytes or not entry.complete:
        return None
    if entry.generations or not entry.holds_pattern(0, target.nbytes):
        return None if need_pattern else entry
    return entry


def _fill(
    fd: int,
    target: Target,
    pattern: Pattern,
    progress: Callable[[int, int], None] | None,
    stop: Callable[[], bool] | None,
) -> None:
    nbytes = target.nbytes
    os.ftruncate(fd, nbytes)
    mapped = mmap.mmap(fd, nbytes) if granule(fd) != mmap.PAGESIZE else None  # hugetlbfs takes no write
    done = 0
    lock = threading.Lock()
    failed = threading.Event()

    def lane(first: int) -> None:
        nonlocal done
        with mmap.mmap(-1, CHUNK) as memory, memoryview(memory) as view:
            for offset in range(first * CHUNK, nbytes, THREADS * CHUNK):
                if failed.is_set() or (stop is not None and stop()):
                    failed.set()
                    raise StoppedError
                length = min(CHUNK, nbytes - offset)
                with view[:length] as piece:
                    pattern_data.fill(piece, offset, pattern)
                    if mapped is not None:
                        mapped[offset : offset + length] = piece
                    else:
                        _write_all(fd, piece, offset, failed)
                with lock:
                    done += length
                    if progress is not None:
                        progress(done, nbytes)

    with ThreadPoolExecutor(THREADS) as pool:
        lanes = [pool.submit(lane, index) for index in range(THREADS)]
    if mapped is not None:
        mapped.close()
    errors = [error for error in (lane.exception() for lane in lanes) if error is not None]
    for error in errors:
        if not isinstance(error, StoppedError):
            raise error
    if errors:
        raise errors[0]


def _write_all(fd: int, piece: memoryview, offset: int, failed: threading.Event) -> None:
    done = 0
    try:
        while done < len(piece):
            done += os.pwrite(fd, piece[done:], offset + done)
    except OSError:
        failed.set()
        raise


def _explain(target: Target, error: OSError) -> UnavailableError:
    name = errno.errorcode.get(error.errno or 0, str(error.errno))
    return UnavailableError(
        f"{target.path}: layout of {target.nbytes} bytes failed: {name} ({error.strerror}); "
        f"{free_space(target.path.parent)} bytes are free",
        hint="lower `size`, raise the limit, or choose another `directory`; `gdsfw clean` removes gdsfw's own files",
    )
