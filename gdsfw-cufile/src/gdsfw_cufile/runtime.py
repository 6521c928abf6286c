"""The CUDA driver: control through cuda-python, addresses of libcuda's functions for the data plane."""

from __future__ import annotations

import ctypes
import threading
from typing import TYPE_CHECKING, Any, ClassVar

from gdsfw.errors import BackendError, UnavailableError
from gdsfw.gpu.bound import BoundRuntime, what_to_install

from gdsfw_cufile.pieces import BINDINGS, DEVICE, DRIVER

if TYPE_CHECKING:
    from gdsfw_cufile.compiler import Nvrtc


class CudaRuntime(BoundRuntime):
    """gdsfw.gpu.vendor.Runtime over the CUDA driver API; devices are those that CUDA_VISIBLE_DEVICES leaves.

    A device's primary context is retained once and kept until the process ends: libraries that were used in it may
    still look at it when they are unloaded.
    """

    calls: ClassVar = {
        "count": "cuDeviceGetCount",
        "name": "cuDeviceGetName",
        "uuid": "cuDeviceGetUuid",
        "total": "cuDeviceTotalMem",
        "pci": "cuDeviceGetPCIBusId",
        "primary_state": "cuDevicePrimaryCtxGetState",
        "allocate": "cuMemAlloc",
        "free": "cuMemFree",
        "allocate_host": "cuMemHostAlloc",
        "free_host": "cuMemFreeHost",
        "create_stream": "cuStreamCreate",
        "destroy_stream": "cuStreamDestroy",
        "create_event": "cuEventCreate",
        "destroy_event": "cuEventDestroy",
        "load_module": "cuModuleLoadData",
        "module_function": "cuModuleGetFunction",
        "init": "cuInit",
        "handle": "cuDeviceGet",
        "retain": "cuDevicePrimaryCtxRetain",
        "current": "cuCtxGetCurrent",
        "make_current": "cuCtxSetCurrent",
        "attribute": "cuDeviceGetAttribute",
    }
    symbol_names: ClassVar = {
        "copy_to_device": "cuMemcpyHtoDAsync_v2",
        "copy_to_host": "cuMemcpyDtoHAsync_v2",
        "event_record": "cuEventRecord",
        "event_query": "cuEventQuery",
        "event_wait": "cuEventSynchronize",
        "stream_wait": "cuStreamSynchronize",
        "launch": "cuLaunchKernel",
        "host_register": "cuMemHostRegister_v2",
        "host_unregister": "cuMemHostUnregister",
        "host_pointer": "cuMemHostGetDevicePointer_v2",
    }

    def __init__(self) -> None:
        try:
            from cuda.bindings import driver

            super().__init__(driver, ctypes.CDLL("libcuda.so.1"))
        except (ImportError, OSError) as error:
            raise UnavailableError(
                f"backend cufile: the CUDA driver cannot be used: {error}",
                hint=what_to_install((DRIVER, DEVICE, BINDINGS), "look at `nvidia-smi`"),
            ) from error
        self.portable = driver.CU_MEMHOSTALLOC_PORTABLE
        self.non_blocking = driver.CUstream_flags.CU_STREAM_NON_BLOCKING.value
        self.untimed = driver.CUevent_flags.CU_EVENT_DISABLE_TIMING.value
        self.sleeping = driver.CUevent_flags.CU_EVENT_BLOCKING_SYNC.value
        self._contexts: dict[int, Any] = {}
        self._lock = threading.Lock()
        try:
            self._do("init", 0)
        except (BackendError, UnavailableError) as error:
            raise UnavailableError(
                f"backend cufile: the CUDA driver does not start: {error.message}", hint="look at `nvidia-smi`"
            ) from error

    def compiler(self) -> Nvrtc:
        """NVRTC."""
        from gdsfw_cufile.compiler import Nvrtc

        return Nvrtc()

    def architecture(self, ordinal: int) -> str:
        """The device's compute capability, as `sm_90`."""
        attribute = self._bindings.CUdevice_attribute
        numbers = (
            self._do("attribute", which, self._handle(ordinal))
            for which in (
                attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
            )
        )
        return "sm_" + "".join(map(str, numbers))

    def _context(self, ordinal: int) -> Any:
        with self._lock:
            if ordinal not in self._contexts:
                self._contexts[ordinal] = self._do("retain", self._handle(ordinal))
            return self._contexts[ordinal]

    def _handle(self, ordinal: int) -> Any:
        return self._do("handle", ordinal)

    def _wrap(self, kind: str, handle: int) -> Any:
        return getattr(self._bindings, f"CU{kind}")(handle)
