"""The HIP runtime: control through hip-python, addresses of libamdhip64's functions for the data plane."""

from __future__ import annotations

import ctypes
import os
from typing import TYPE_CHECKING, ClassVar

from gdsfw.errors import BackendError, UnavailableError
from gdsfw.gpu.bound import BoundRuntime, what_to_install

from gdsfw_hipfile.pieces import BINDINGS, DEVICE, DRIVER, RUNTIME

if TYPE_CHECKING:
    from gdsfw_hipfile.compiler import HipRtc


class HipRuntime(BoundRuntime):
    """gdsfw.gpu.vendor.Runtime over HIP; devices are those that HIP_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES leave."""

    calls: ClassVar = {
        "count": "hipGetDeviceCount",
        "name": "hipDeviceGetName",
        "uuid": "hipDeviceGetUuid",
        "total": "hipDeviceTotalMem",
        "pci": "hipDeviceGetPCIBusId",
        "primary_state": "hipDevicePrimaryCtxGetState",
        "allocate": "hipMalloc",
        "free": "hipFree",
        "allocate_host": "hipHostMalloc",
        "free_host": "hipHostFree",
        "create_stream": "hipStreamCreateWithFlags",
        "destroy_stream": "hipStreamDestroy",
        "create_event": "hipEventCreateWithFlags",
        "destroy_event": "hipEventDestroy",
        "load_module": "hipModuleLoadData",
        "module_function": "hipModuleGetFunction",
        "init": "hipInit",
        "current": "hipGetDevice",
        "make_current": "hipSetDevice",
        "properties": "hipGetDeviceProperties",
    }
    symbol_names: ClassVar = {
        "copy_to_device": "hipMemcpyHtoDAsync",
        "copy_to_host": "hipMemcpyDtoHAsync",
        "event_record": "hipEventRecord",
        "event_query": "hipEventQuery",
        "event_wait": "hipEventSynchronize",
        "stream_wait": "hipStreamSynchronize",
        "launch": "hipModuleLaunchKernel",
        "host_register": "hipHostRegister",
        "host_unregister": "hipHostUnregister",
        "host_pointer": "hipHostGetDevicePointer",
    }

    def __init__(self) -> None:
        hint = what_to_install((DRIVER, DEVICE, RUNTIME, BINDINGS), "look at `rocminfo`")
        try:
            from rocm.bindings import hip
            from rocm.bindings.util.paths import get_library_path

            # Without the library its calls print an error and return garbage: ask before the first one.
            if not hip.has_symbol("hipInit"):
                raise UnavailableError("backend hipfile: libamdhip64 is not found", hint=hint)
            super().__init__(hip, ctypes.CDLL(os.fsdecode(get_library_path("amdhip64"))))
        except (ImportError, OSError) as error:
            raise UnavailableError(f"backend hipfile: HIP cannot be used: {error}", hint=hint) from error
        self.portable = hip.hipHostMallocPortable
        self.non_blocking = hip.hipStreamNonBlocking
        self.untimed = hip.hipEventDisableTiming
        self.sleeping = hip.hipEventBlockingSync
        try:
            self._do("init", 0)
            self._do("count")  # hipInit succeeds without a device
        except (BackendError, UnavailableError) as error:
            raise UnavailableError(
                f"backend hipfile: HIP does not start: {error.message}", hint="look at `rocminfo`"
            ) from error

    def compiler(self) -> HipRtc:
        """HIP RTC."""
        from gdsfw_hipfile.compiler import HipRtc

        return HipRtc()

    def architecture(self, ordinal: int) -> str:
        """The device's instruction set, as `gfx942:sramecc+:xnack-`."""
        name = self._do("properties", ordinal).gcnArchName
        return name.split(b"\0")[0].decode() if isinstance(name, bytes) else str(name)

    def _uuid(self, content: bytes) -> str:
        """AMD's identifiers are text."""
        text = content.split(b"\0")[0]
        return f"GPU-{text.decode()}" if text.isalnum() else super()._uuid(content)
