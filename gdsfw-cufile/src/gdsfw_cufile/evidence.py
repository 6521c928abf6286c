"""Which way cuFile's bytes took: settings, the nvidia-fs driver and its counters. A return code proves nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from gdsfw.backend import CacheState, FileHandle, Transport, TransportKind

STATS = Path("/proc/driver/nvidia-fs/stats")


@dataclass(frozen=True)
class Facts:
    """Settings of the library; None where it does not say."""

    version: str
    compat_forced: bool | None
    compat_allowed: bool | None
    p2pdma: bool | None


@dataclass(frozen=True)
class Counters:
    """Reads and writes that nvidia-fs completed, system-wide; None without the driver."""

    ok: int | None


def snapshot() -> Counters:
    """The counters now."""
    try:
        text = STATS.read_text()
    except OSError:
        return Counters(None)
    return Counters(sum(int(n) for n in re.findall(r"^(?:Reads|Writes)\s*:.*\bok=(\d+)", text, re.MULTILINE)))


def direct_possible(facts: Facts) -> tuple[bool, str]:
    """Whether a peer-to-peer transfer could happen at all, and why (not)."""
    if facts.compat_forced:
        return False, "compatibility mode is forced"
    if STATS.exists():
        return True, "the nvidia-fs driver is loaded"
    if facts.p2pdma:
        return True, "PCI P2PDMA is switched on"
    return False, "there is no nvidia-fs driver and PCI P2PDMA is off: cuFile bounces through host memory"


def judge(facts: Facts, before: Counters, files: tuple[FileHandle, ...]) -> Transport:
    """p2p or compat where the evidence decides, else unknown."""
    possible, reason = direct_possible(facts)
    after = snapshot()
    kind: TransportKind = "unknown"
    lines = [f"libcufile {facts.version}", reason]
    if not possible:
        kind = "compat"
    elif before.ok is not None and after.ok is not None:
        moved = after.ok - before.ok
        lines.append(f"nvidia-fs counted {moved} transfers, system-wide")
        if moved == 0:
            kind = "compat"
        elif all(file.direct for file in files):
            kind = "p2p"
    cache: CacheState = "bypassed" if kind == "p2p" or all(file.direct for file in files) else "unknown"
    return Transport(kind, cache, tuple(lines))
