"""What hipFile needs on a machine, in the order in which one would install it."""

from __future__ import annotations

import os

from gdsfw.gpu.presence import Piece

#: Where hip-python looks for ROCm.
ROOT = os.environ.get("ROCM_PATH") or os.environ.get("ROCM_HOME") or "/opt/rocm"

DRIVER = Piece(
    "driver", "install AMD's amdgpu driver (apt install amdgpu-dkms from AMD's repository)", files=("/dev/kfd",)
)
DEVICE = Piece(
    "device",
    "no GPU is visible: look at `rocminfo`, and at this user's groups (render, video)",
    files=("/dev/dri/renderD*",),
)
RUNTIME = Piece(
    "libamdhip64",
    "install ROCm 7.2 or newer (apt install rocm-hip-runtime from AMD's repository)",
    files=(f"{ROOT}/lib/libamdhip64.so",),
    distributions=("rocm-sdk-core",),
)
LIBRARY = Piece("libhipfile", "apt install hipfile from AMD's repository", files=(f"{ROOT}/lib/libhipfile.so*",))
BINDINGS = Piece(
    "hip-python",
    "pip install 'gdsfw-hipfile[rocm]'",
    distributions=("rocm-bindings-hip", "rocm-bindings-systems"),
)
PIECES = (DRIVER, DEVICE, RUNTIME, LIBRARY, BINDINGS)
