"""The proof: a small file written, read back and verified on each I/O path, through the engine that jobs use."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from gdsfw.backend import IOPathInfo
    from gdsfw.results.model import RunResult

_SIZE, _BLOCK = 1 << 20, 64 << 10


def prove(name: str, folder: str, say: Callable[..., None]) -> None:
    """Try each path of a backend, and say of each how it went before the next begins.

    Args:
        folder: where the files go; the caller removes it.
    """
    import gdsfw
    from gdsfw.errors import GdsfwError
    from gdsfw.plugins import PluginManager
    from gdsfw.workload.loader import load_data

    info = PluginManager.installed(os.environ).backend(name)
    for path in info.io_paths:
        if path.name == "auto" and len(info.io_paths) > 1:
            continue
        say(begin=f"{name}: {path.name}")
        place = Path(folder) / f"{name}-{path.name}"
        place.mkdir()
        began = time.monotonic()
        try:
            result = gdsfw.run(load_data(_workload(name, path, str(place))))
        except GdsfwError as error:
            say(proof={"io_path": path.name, "ok": False, "seen": error.message})
            continue
        say(proof={"io_path": path.name, "seconds": round(time.monotonic() - began, 3), **_outcome(result)})


def _workload(name: str, path: IOPathInfo, directory: str) -> dict[str, Any]:
    writer = path.name if path.writes and not path.page_cache else "auto"
    common = {"backend": name, "block_size": _BLOCK, "verify": True, "iodepth": 1}
    depth = 1 if path.max_iodepth == 1 else 4
    return {
        "version": 1,
        "defaults": {"directory": directory, "size": _SIZE},
        "jobs": [
            {"name": "proof", "rw": "write", "end_fsync": True, **common, "io_path": writer},
            {"name": "back", "rw": "read", "files_from": "proof", **common, "io_path": path.name, "iodepth": depth},
        ],
    }


def _outcome(result: RunResult) -> dict[str, Any]:
    broken = next((job for job in result.jobs if job.exit_code), None)
    if broken is not None:
        why = broken.errors[0].message if broken.errors else broken.status
        return {"ok": False, "seen": f"{broken.job.get('rw', broken.name)}: {why}"}
    last = result.jobs[-1]
    checked = last.verify.checked_bytes if last.verify is not None else 0
    return {
        "ok": True,
        "seen": f"{checked} bytes verified",
        "transport": last.transport.kind,
        "cache": last.transport.cache,
        "evidence": last.transport.evidence[:3],
    }
