"""Evidence that does not depend on the vendor: the page cache behind the staged path."""

from __future__ import annotations

from gdsfw.backend import CacheState, IOPath, Transport
from gdsfw.storage import filesystems, residency


def staged_snapshot(path: IOPath) -> tuple[int | None, ...]:
    """Resident bytes of each file, None where nobody can tell or where the cache is bypassed."""
    return tuple(None if file.direct else residency.resident_bytes(file.fd) for file in path.files)


def staged_transport(path: IOPath, before: tuple[int | None, ...]) -> Transport:
    """Staged by construction: storage to pinned host memory, then the device's copy engine."""
    states: set[CacheState] = set()
    evidence = ["every byte went through pinned host memory and a copy on the worker's stream"]
    for file, resident in zip(path.files, before, strict=True):
        ram = filesystems.kind(file.fd) in filesystems.RAM_BACKED
        states.add(residency.cache_state(file.direct, ram, resident, file.target.nbytes))
        evidence.append(file.direct_reason)
    return Transport("staged", states.pop() if len(states) == 1 else "unknown", tuple(dict.fromkeys(evidence)))
