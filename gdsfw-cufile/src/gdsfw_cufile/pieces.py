"""What cuFile needs on a machine, in the order in which one would install it."""

from __future__ import annotations

from gdsfw.gpu.presence import Piece

_LIBRARY_FOLDERS = ("/usr/local/cuda/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64")

DRIVER = Piece(
    "driver",
    "install NVIDIA's driver (on Debian and Ubuntu: apt install nvidia-driver)",
    files=("/proc/driver/nvidia/version",),
)
DEVICE = Piece("device", "no GPU is visible: look at `nvidia-smi`", files=("/proc/driver/nvidia/gpus/*",))
LIBRARY = Piece(
    "libcufile",
    "pip install 'gdsfw-cufile[cuda13]', or apt install libcufile-13-0 from NVIDIA's repository",
    files=tuple(f"{folder}/libcufile.so.0" for folder in _LIBRARY_FOLDERS),
    distributions=("nvidia-cufile", "nvidia-cufile-cu12"),
)
BINDINGS = Piece("cuda-python", "pip install 'gdsfw-cufile[cuda13]'", distributions=("cuda-bindings",))
PIECES = (DRIVER, DEVICE, LIBRARY, BINDINGS)
