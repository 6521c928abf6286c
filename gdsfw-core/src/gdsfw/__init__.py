"""gdsfw moves bytes between storage and memory through pluggable backends, and measures it."""

from gdsfw.hookspecs import hookimpl

__version__ = "0.1.0"
__all__ = ["__version__", "hookimpl"]
