"""The device functions of kernels.cpp: compiled at run time for the device at hand, kept on disk, loaded once."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from gdsfw.errors import BackendError, UnavailableError
from gdsfw.gpu import abi

if TYPE_CHECKING:
    from gdsfw.gpu.vendor import Runtime

#: Members of struct gdsfw_gpu_kernels, and the functions of kernels.cpp behind them.
FUNCTIONS = {"move": "gdsfw_move", "fill": "gdsfw_fill", "verify": "gdsfw_verify", "make": "gdsfw_make"}


class Compiler(Protocol):
    """A vendor's run-time compiler."""

    #: Name and version: another one makes other code.
    version: str

    def compile(self, source: str, architecture: str) -> bytes:
        """Device code for an architecture; BackendError or UnavailableError with the compiler's own words."""


@dataclass(frozen=True)
class Loaded:
    """Functions for one device, or why there are none (the copy engine and the host do their work then)."""

    functions: Mapping[str, int]
    missing: str = ""

    def table(self) -> abi.Kernels | None:
        """As the C engine takes them; None when there are none."""
        return None if self.missing else abi.Kernels(**self.functions)


@cache
def source() -> str:
    """The text of kernels.cpp."""
    return (files("gdsfw.gpu") / "kernels.cpp").read_text(encoding="utf-8")


def load(runtime: Runtime, ordinal: int) -> Loaded:
    """Compile, or take from the cache, and load into the current context of device `ordinal`. Never raises."""
    try:
        compiler = runtime.compiler()
        architecture = runtime.architecture(ordinal)
        functions = runtime.load_functions(_code(compiler, architecture), tuple(FUNCTIONS.values()))
    except (UnavailableError, BackendError) as error:
        return Loaded({}, f"no device kernels: {error.message}")
    return Loaded({member: functions[name] for member, name in FUNCTIONS.items()})


def cache_directory() -> Path:
    """Where compiled kernels are kept: $XDG_CACHE_HOME/gdsfw/kernels, by default below ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "gdsfw" / "kernels"


def _code(compiler: Compiler, architecture: str) -> bytes:
    """Device code; what is kept is told apart by source, architecture and compiler."""
    key = hashlib.sha256("\0".join((source(), architecture, compiler.version)).encode()).hexdigest()
    kept = _kept(key)
    if kept:
        return kept
    code = compiler.compile(source(), architecture)
    with suppress(OSError):  # a cache that cannot be written costs a second each time, and no more
        _keep(key, code)
    return code


def _kept(key: str) -> bytes:
    """Code from the cache; it is run on the device, so only a file of this user that nobody else may write counts."""
    try:
        path = cache_directory() / key
        status = path.stat()
        if status.st_uid != os.geteuid() or status.st_mode & 0o022:
            return b""
        content = path.read_bytes()
    except (OSError, RuntimeError):
        return b""
    digest, code = content[:32], content[32:]
    return code if hashlib.sha256(code).digest() == digest else b""


def _keep(key: str, code: bytes) -> None:
    directory = cache_directory()
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.NamedTemporaryFile(dir=directory, delete=False) as file:
        file.write(hashlib.sha256(code).digest() + code)
    Path(file.name).replace(directory / key)
