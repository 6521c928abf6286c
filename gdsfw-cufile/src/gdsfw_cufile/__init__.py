"""gdsfw backend for NVIDIA GPUs: cuFile (GPUDirect Storage), and staging that needs the CUDA driver only.

The logic is gdsfw.gpu's; here are CUDA and cuFile. No vendor library is imported before a job needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gdsfw.gpu.plugin import GpuPlugin

if TYPE_CHECKING:
    from gdsfw.gpu.vendor import Vendor

__version__ = "0.1.0"


def _vendor() -> Vendor:
    from gdsfw.gpu.vendor import Vendor

    from gdsfw_cufile.errors import explain
    from gdsfw_cufile.library import CuFileLibrary
    from gdsfw_cufile.options import CuFileOptions
    from gdsfw_cufile.pieces import PIECES
    from gdsfw_cufile.probe import probe
    from gdsfw_cufile.runtime import CudaRuntime

    return Vendor(
        name="cufile",
        title="NVIDIA GPU memory through cuFile or staging",
        version=__version__,
        options=CuFileOptions,
        pieces=PIECES,
        runtime=CudaRuntime,
        library=CuFileLibrary,
        explain=explain,
        dlpack_type=2,  # kDLCUDA
        probe=probe,
    )


#: What the entry point names.
plugin = GpuPlugin(_vendor)

__all__ = ["__version__", "plugin"]
