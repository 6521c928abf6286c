"""gdsfw moves bytes between storage and memory through pluggable backends, and measures it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gdsfw.hookspecs import hookimpl

if TYPE_CHECKING:
    from gdsfw.engine.runner import run
    from gdsfw.results.load import Results
    from gdsfw.session import DeviceView, Session, open_session
    from gdsfw.workload.loader import load
    from gdsfw.workload.model import Workload

__version__ = "0.1.0"
__all__ = [
    "DeviceView",
    "Results",
    "Session",
    "Workload",
    "__version__",
    "get_include",
    "hookimpl",
    "load",
    "open_session",
    "run",
]

#: Public names by the module that holds them, imported when first used: `import gdsfw` alone stays fast.
_LAZY = {
    "load": "gdsfw.workload.loader",
    "Workload": "gdsfw.workload.model",
    "run": "gdsfw.engine.runner",
    "Results": "gdsfw.results.load",
    "open_session": "gdsfw.session",
    "Session": "gdsfw.session",
    "DeviceView": "gdsfw.session",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'gdsfw' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LAZY[name]), name)


def get_include() -> str:
    """The folder of gdsfw_backend.h, for `-I` when a backend's own C code is compiled."""
    from importlib.resources import files

    return str(files("gdsfw") / "include")
