"""gdsfw backend for NVIDIA GPUs over cuFile (GPUDirect Storage).

This version describes itself and says what a machine lacks; its I/O paths are not written yet. It imports no vendor
library.
"""

from __future__ import annotations

from typing import Any, NoReturn

from gdsfw import hookimpl
from gdsfw.backend import BackendInfo, Buffer, Check, IOPath, IOPathInfo
from gdsfw.errors import UnavailableError
from gdsfw.gpu.presence import Piece, check, missing
from gdsfw.host import Host

__version__ = "0.1.0"

_NO_IO = f"gdsfw-cufile {__version__} has no I/O paths yet"

_LIBRARY_FOLDERS = ("/usr/local/cuda/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64")

#: What cuFile needs, in the order in which one would install it.
PIECES = (
    Piece(
        "driver",
        "install NVIDIA's driver (on Debian and Ubuntu: apt install nvidia-driver)",
        files=("/proc/driver/nvidia/version",),
    ),
    Piece("device", "no GPU is visible: look at `nvidia-smi`", files=("/proc/driver/nvidia/gpus/*",)),
    Piece(
        "libcufile",
        "pip install 'gdsfw-cufile[cuda13]', or apt install libcufile-13-0 from NVIDIA's repository",
        files=tuple(f"{folder}/libcufile.so.0" for folder in _LIBRARY_FOLDERS),
        distributions=("nvidia-cufile", "nvidia-cufile-cu12"),
    ),
    Piece("cuda-python", "pip install 'gdsfw-cufile[cuda13]'", distributions=("cuda-bindings",)),
)


@hookimpl
def gdsfw_backend() -> BackendInfo:
    """What the backend will be; opens nothing."""
    return BackendInfo(
        name="cufile",
        title="NVIDIA GPU memory through cuFile",
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
    raise UnavailableError(f"backend cufile: {_NO_IO}{also}", hint="; ".join(found.fix for found in lacking) or None)


__all__ = ["PIECES", "__version__"]
