"""The CUDA driver: control through cuda-python, addresses of libcuda's functions for the data plane."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gdsfw.backend import Device
from gdsfw.errors import BackendError, Domain, UnavailableError

if TYPE_CHECKING:
    from gdsfw_cufile.compiler import Nvrtc

#: CUDA_ERROR_NOT_READY (cuda.h).
NOT_READY = 600

_SYMBOLS = {
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


class CudaRuntime:
    """gdsfw.gpu.vendor.Runtime over the CUDA driver API.

    A device's primary context is retained once and kept until the process ends: libraries that were used in it may
    still look at it when they are unloaded.
    """

    not_ready = NOT_READY

    def __init__(self) -> None:
        try:
            from cuda.bindings import driver

            library = ctypes.CDLL("libcuda.so.1")
        except (ImportError, OSError) as error:
            raise UnavailableError(
                f"backend cufile: the CUDA driver cannot be used: {error}", hint=_missing()
            ) from error
        self._driver = driver
        self._symbols = {name: _address(library, symbol) for name, symbol in _SYMBOLS.items()}
        self._contexts: dict[int, Any] = {}
        self._modules: list[Any] = []
        self._lock = threading.Lock()
        try:
            self._call(driver.cuInit, 0)
        except (BackendError, RuntimeError) as error:
            raise UnavailableError(f"backend cufile: cuInit failed: {error}", hint="look at `nvidia-smi`") from error

    def symbols(self) -> Mapping[str, int]:
        """Addresses of libcuda's functions."""
        return self._symbols

    def devices(self) -> list[Device]:
        """The devices that CUDA_VISIBLE_DEVICES leaves, numbered as CUDA numbers them."""
        return [self._device(ordinal) for ordinal in range(self._call(self._driver.cuDeviceGetCount))]

    def enter(self, ordinal: int) -> int:
        """Make the device's primary context current in this thread."""
        driver = self._driver
        with self._lock:
            if ordinal not in self._contexts:
                device = self._call(driver.cuDeviceGet, ordinal)
                self._contexts[ordinal] = self._call(driver.cuDevicePrimaryCtxRetain, device)
        self._call(driver.cuCtxSetCurrent, self._contexts[ordinal])
        return ordinal

    def leave(self, entered: int) -> None:
        """Leave this thread without a context."""
        self._call(self._driver.cuCtxSetCurrent, self._driver.CUcontext(0))

    def allocate(self, nbytes: int) -> int:
        """cuMemAlloc."""
        return int(self._call(self._driver.cuMemAlloc, nbytes))

    def free(self, address: int) -> None:
        """cuMemFree."""
        self._call(self._driver.cuMemFree, address)

    def allocate_host(self, nbytes: int) -> int:
        """cuMemHostAlloc, usable from every context."""
        return int(self._call(self._driver.cuMemHostAlloc, nbytes, self._driver.CU_MEMHOSTALLOC_PORTABLE))

    def free_host(self, address: int) -> None:
        """cuMemFreeHost."""
        self._call(self._driver.cuMemFreeHost, address)

    def create_stream(self) -> int:
        """A non-blocking stream."""
        return int(self._call(self._driver.cuStreamCreate, self._driver.CUstream_flags.CU_STREAM_NON_BLOCKING.value))

    def destroy_stream(self, stream: int) -> None:
        """cuStreamDestroy."""
        self._call(self._driver.cuStreamDestroy, self._driver.CUstream(stream))

    def create_event(self, blocking: bool = False) -> int:
        """An event without timing."""
        flags = self._driver.CUevent_flags
        value = flags.CU_EVENT_DISABLE_TIMING.value | (flags.CU_EVENT_BLOCKING_SYNC.value if blocking else 0)
        return int(self._call(self._driver.cuEventCreate, value))

    def destroy_event(self, event: int) -> None:
        """cuEventDestroy."""
        self._call(self._driver.cuEventDestroy, self._driver.CUevent(event))

    def compiler(self) -> Nvrtc:
        """NVRTC."""
        from gdsfw_cufile.compiler import Nvrtc

        return Nvrtc()

    def architecture(self, ordinal: int) -> str:
        """The device's compute capability, as `sm_90`."""
        attribute = self._driver.CUdevice_attribute
        device = self._call(self._driver.cuDeviceGet, ordinal)
        major, minor = (
            self._call(self._driver.cuDeviceGetAttribute, which, device)
            for which in (
                attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
            )
        )
        return f"sm_{major}{minor}"

    def load_functions(self, code: bytes, names: Sequence[str]) -> Mapping[str, int]:
        """cuModuleLoadData; the module stays as long as the context."""
        module = self._call(self._driver.cuModuleLoadData, code)
        self._modules.append(module)
        return {name: int(self._call(self._driver.cuModuleGetFunction, module, name.encode())) for name in names}

    def explain(self, code: int) -> tuple[str, str] | None:
        """Name and text of a CUresult."""
        driver = self._driver
        try:
            result = driver.CUresult(code)
        except ValueError:
            return None
        text = self._call(driver.cuGetErrorString, result)
        return result.name, text.decode() if isinstance(text, bytes) else str(text)

    def _device(self, ordinal: int) -> Device:
        driver = self._driver
        device = self._call(driver.cuDeviceGet, ordinal)
        attribute = driver.CUdevice_attribute
        numbers = [
            self._call(driver.cuDeviceGetAttribute, which, device)
            for which in (
                attribute.CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID,
                attribute.CU_DEVICE_ATTRIBUTE_PCI_BUS_ID,
                attribute.CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID,
            )
        ]
        address = "{:04x}:{:02x}:{:02x}.0".format(*numbers)
        name = self._call(driver.cuDeviceGetName, 128, device)
        uuid = bytes(self._call(driver.cuDeviceGetUuid, device).bytes).hex()
        return Device(
            ordinal=ordinal,
            name=name.split(b"\0")[0].decode() if isinstance(name, bytes) else str(name),
            nbytes=int(self._call(driver.cuDeviceTotalMem, device)),
            pci_address=address,
            numa_node=_numa_node(address),
            uuid=f"GPU-{uuid[:8]}-{uuid[8:12]}-{uuid[12:16]}-{uuid[16:20]}-{uuid[20:]}",
        )

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        result, *values = function(*arguments)
        if int(result):
            raise BackendError(function.__name__, Domain.GPU, int(result))
        return values[0] if len(values) == 1 else tuple(values)


def _address(library: ctypes.CDLL, symbol: str) -> int:
    return ctypes.cast(getattr(library, symbol), ctypes.c_void_p).value or 0


def _numa_node(address: str) -> int | None:
    try:
        with open(f"/sys/bus/pci/devices/{address}/numa_node", encoding="ascii") as file:  # noqa: PTH123
            node = int(file.read())
    except (OSError, ValueError):
        return None
    return node if node >= 0 else None


def _missing() -> str:
    from gdsfw.gpu.presence import missing
    from gdsfw.host import Host

    from gdsfw_cufile.pieces import BINDINGS, DEVICE, DRIVER

    lacking = missing((DRIVER, DEVICE, BINDINGS), Host())
    return "; ".join(f"{found.name}: {found.fix}" for found in lacking) or "look at `nvidia-smi`"
