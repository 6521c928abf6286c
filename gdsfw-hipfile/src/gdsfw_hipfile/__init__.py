"""gdsfw backend for AMD GPUs over hipFile.

This version describes itself and says what a machine lacks; its I/O paths are not written yet. It imports no vendor
library: hip-python's calls do not raise when ROCm is absent, they return garbage.
"""

from __future__ import annotations

from typing import Any, NoReturn

from gdsfw import hookimpl
from gdsfw.backend import BackendInfo, Buffer, Check, IOPath, IOPathInfo
from gdsfw.errors import UnavailableError
from gdsfw.gpu.presence import Piece, check, missing
from gdsfw.host import Host

__version__ = "0.1.0"

_NO_IO = f"gdsfw-hipfile {__version__} has no I/O paths yet"

#: What hipFile needs, in the order in which one would install it.
PIECES = (
    Piece("driver", "install AMD's amdgpu driver (apt install amdgpu-dkms from AMD's repository)", files=("/dev/kfd",)),
    Piece(
        "device",
        "no GPU is visible: look at `rocminfo`, and at this user's groups (render, video)",
        files=("/dev/dri/renderD*",),
    ),
    Piece(
        "libamdhip64",
        "install ROCm 7.2 or newer (apt install rocm-hip-runtime from AMD's repository)",
        files=("/opt/rocm/lib/libamdhip64.so",),
        distributions=("rocm-sdk-core",),
    ),
    Piece("libhipfile", "apt install hipfile from AMD's repository", files=("/opt/rocm/lib/libhipfile.so*",)),
    Piece("hip-python", "pip install 'gdsfw-hipfile[rocm]'", distributions=("rocm-bindings-hip",)),
)


@hookimpl
def gdsfw_backend() -> BackendInfo:
    """What the backend will be; opens nothing."""
    return BackendInfo(
        name="hipfile",
        title="AMD GPU memory through hipFile",
        version=__version__,
        io_paths=(IOPathInfo("sync", native=True, summary="not in this version"),),
        memory=("device",),
    )


@hookimpl
def gdsfw_probe(host: Host) -> list[Check]:
    """Say which pieces are there, and that I/O is not."""
    no_io = Check("io", "fail", _NO_IO, meaning="jobs on this backend end with exit code 3")
    return [no_io, *(check(piece, host) for piece in PIECES)]


@hookimpl
def gdsfw_open() -> Any:
    """Refuse."""
    _refuse(Host())


@hookimpl
def gdsfw_alloc() -> Buffer:
    """Refuse."""
    _refuse(Host())


@hookimpl
def gdsfw_free() -> None:
    """Nothing is ever allocated."""


@hookimpl
def gdsfw_io() -> IOPath:
    """Refuse."""
    _refuse(Host())


def _refuse(host: Host) -> NoReturn:
    lacking = missing(PIECES, host)
    names = ", ".join(found.name for found in lacking)
    also = f"; this machine also lacks: {names}" if lacking else ""
    raise UnavailableError(f"backend hipfile: {_NO_IO}{also}", hint="; ".join(found.fix for found in lacking) or None)
