"""The limit on locked memory, which registered buffers count against unless the process may lock what it likes."""

from __future__ import annotations

import resource
from pathlib import Path

#: CAP_IPC_LOCK of linux/capability.h.
_IPC_LOCK = 14


def limit() -> int | None:
    """Bytes that this user may lock; None for no limit, which is what CAP_IPC_LOCK means too."""
    soft = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    return None if soft == resource.RLIM_INFINITY or _may_lock_all() else soft


def _may_lock_all() -> bool:
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return False
    effective = next((line.split()[1] for line in lines if line.startswith("CapEff:")), "0")
    return bool(int(effective, 16) >> _IPC_LOCK & 1)
