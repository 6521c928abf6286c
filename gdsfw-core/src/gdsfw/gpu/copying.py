"""Copies outside the loop: one block between host and device, waited for."""

from __future__ import annotations

import ctypes as c
from typing import TYPE_CHECKING

from gdsfw.errors import BackendError, Domain

if TYPE_CHECKING:
    from gdsfw.backend import Buffer
    from gdsfw.gpu.vendor import Runtime

_TO_DEVICE = c.CFUNCTYPE(c.c_int32, c.c_uint64, c.c_uint64, c.c_size_t, c.c_uint64)
_TO_HOST = c.CFUNCTYPE(c.c_int32, c.c_uint64, c.c_uint64, c.c_size_t, c.c_uint64)
_WAIT = c.CFUNCTYPE(c.c_int32, c.c_uint64)


def copy(runtime: Runtime, stream: int, buffer: Buffer, offset: int, host_view: memoryview, direction: str) -> None:
    """Copy `host_view` to (`from_host`) or from (`to_host`) the buffer at `offset` bytes.

    Raises:
        BackendError: the runtime refused.
    """
    if buffer.host_view is not None:
        inside = buffer.host_view[offset : offset + host_view.nbytes]
        if direction == "from_host":
            inside[:] = host_view
        else:
            host_view[:] = inside
        return
    symbols = runtime.symbols()
    pinned = runtime.allocate_host(host_view.nbytes)
    try:
        staging = memoryview((c.c_uint8 * host_view.nbytes).from_address(pinned)).cast("B")
        device = buffer.address + offset
        if direction == "from_host":
            staging[:] = host_view
            _check("copy_to_device", _TO_DEVICE(symbols["copy_to_device"])(device, pinned, host_view.nbytes, stream))
        else:
            _check("copy_to_host", _TO_HOST(symbols["copy_to_host"])(pinned, device, host_view.nbytes, stream))
        _check("stream_wait", _WAIT(symbols["stream_wait"])(stream))
        if direction == "to_host":
            host_view[:] = staging
    finally:
        runtime.free_host(pinned)


def copy_in(runtime: Runtime, stream: int, device: int, content: bytes) -> None:
    """Put a few bytes into device memory, waited for.

    Raises:
        BackendError: the runtime refused.
    """
    symbols = runtime.symbols()
    pinned = runtime.allocate_host(len(content))
    try:
        c.memmove(pinned, content, len(content))
        _check("copy_to_device", _TO_DEVICE(symbols["copy_to_device"])(device, pinned, len(content), stream))
        _check("stream_wait", _WAIT(symbols["stream_wait"])(stream))
    finally:
        runtime.free_host(pinned)


def _check(operation: str, code: int) -> None:
    if code:
        raise BackendError(operation, Domain.GPU, code)
