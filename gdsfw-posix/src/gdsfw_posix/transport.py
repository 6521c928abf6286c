"""What the page cache did: residency before and after, the file system, and how the files were opened."""

from __future__ import annotations

from dataclasses import dataclass

from gdsfw.backend import CacheState, FileHandle, IOPath, Transport
from gdsfw.storage import filesystems, residency


@dataclass(frozen=True)
class Snapshot:
    """Resident bytes of each file, None where the kernel does not say."""

    resident: tuple[int | None, ...]


def snapshot(path: IOPath) -> Snapshot:
    """Look at every file of the path."""
    return Snapshot(tuple(None if file.direct else _resident(file) for file in path.files))


def judge(path: IOPath, before: Snapshot) -> Transport:
    """The one answer for all files, `unknown` where they differ."""
    answers = [_judge_file(file, resident) for file, resident in zip(path.files, before.resident, strict=True)]
    states = {state for state, _ in answers}
    cache: CacheState = states.pop() if len(states) == 1 else "unknown"
    setup = getattr(path, "setup", None)
    details = {"io_uring": setup} if setup else {}
    return Transport("host", cache, evidence=tuple(dict.fromkeys(line for _, line in answers)), details=details)


def _judge_file(file: FileHandle, before: int | None) -> tuple[CacheState, str]:
    filesystem = filesystems.kind(file.fd)
    nbytes = file.target.nbytes
    state = residency.cache_state(file.direct, filesystem in filesystems.RAM_BACKED, before, nbytes)
    if file.direct:
        return state, file.direct_reason
    share = "of unknown residency" if before is None else f"{100 * before / max(1, nbytes):.0f} % resident at the start"
    return state, f"buffered I/O on {filesystem}, {share}; direct I/O: {file.direct_reason}"


def _resident(file: FileHandle) -> int | None:
    try:
        return residency.resident_bytes(file.fd)
    except OSError:
        return None
