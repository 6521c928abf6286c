"""Which way cuFile's bytes took: settings, the nvidia-fs driver and its counters. A return code proves nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gdsfw.gpu.statistics import Routes, routes, transport, verdict

if TYPE_CHECKING:
    from gdsfw.backend import FileHandle, Transport, TransportKind

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
    """Transfers that nvidia-fs completed, system-wide, and the library's own count; None where nobody counts."""

    ok: int | None
    routes: Routes | None


def snapshot(level3: tuple[bytes, int] | None) -> Counters:
    """The counters now."""
    counted = routes(*level3) if level3 is not None else None
    try:
        text = STATS.read_text()
    except OSError:
        return Counters(None, counted)
    ok = sum(int(n) for n in re.findall(r"^(?:Reads|Writes)\s*:.*\bok=(\d+)", text, re.MULTILINE))
    return Counters(ok, counted)


def direct_possible(facts: Facts) -> tuple[bool, str]:
    """Whether a peer-to-peer transfer could happen at all, and why (not)."""
    if facts.compat_forced:
        return False, "compatibility mode is forced"
    if STATS.exists():
        return True, "the nvidia-fs driver is loaded"
    if facts.p2pdma:
        return True, "PCI P2PDMA is switched on"
    return False, "there is no nvidia-fs driver and PCI P2PDMA is off: cuFile bounces through host memory"


def judge(facts: Facts, before: Counters, after: Counters, files: tuple[FileHandle, ...]) -> Transport:
    """p2p or compat where the evidence decides, else unknown."""
    possible, reason = direct_possible(facts)
    lines = [f"libcufile {facts.version}", reason]
    kind: TransportKind = "unknown"
    if before.routes is not None and after.routes is not None:
        kind, line = verdict(after.routes.since(before.routes))
        lines.append(line)
    elif not possible:
        kind = "compat"
    elif before.ok is not None and after.ok is not None:
        moved = after.ok - before.ok
        lines.append(f"nvidia-fs counted {moved} transfers, system-wide")
        if moved == 0:
            kind = "compat"
        elif all(file.direct for file in files):
            kind = "p2p"
    else:
        lines.append("nothing counts the transfers; the option `statistics` lets the library do so")
    if kind == "compat" and possible:
        lines.insert(0, "fell back: peer-to-peer looked possible, and no transfer went that way")
    return transport(kind, files, tuple(lines))
