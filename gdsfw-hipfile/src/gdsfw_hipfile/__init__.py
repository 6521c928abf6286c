"""gdsfw backend for AMD GPUs: hipFile, and staging that needs the HIP runtime only.

The logic is gdsfw.gpu's; here are HIP and hipFile. It has run against stand-ins of the two libraries only, never on an
AMD GPU. No vendor library is imported before a job needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gdsfw.gpu.plugin import GpuPlugin

if TYPE_CHECKING:
    from gdsfw.gpu.vendor import Vendor

__version__ = "0.1.0"


def _vendor() -> Vendor:
    from gdsfw.gpu.vendor import Vendor

    from gdsfw_hipfile.errors import explain
    from gdsfw_hipfile.library import HipFileLibrary
    from gdsfw_hipfile.options import HipFileOptions
    from gdsfw_hipfile.pieces import PIECES
    from gdsfw_hipfile.probe import probe
    from gdsfw_hipfile.runtime import HipRuntime

    return Vendor(
        name="hipfile",
        title="AMD GPU memory through hipFile or staging (tested against stand-ins only, not on an AMD GPU)",
        version=__version__,
        options=HipFileOptions,
        pieces=PIECES,
        runtime=HipRuntime,
        library=HipFileLibrary,
        explain=explain,
        dlpack_type=10,  # kDLROCM
        probe=probe,
    )


#: What the entry point names.
plugin = GpuPlugin(_vendor)

__all__ = ["__version__", "plugin"]
