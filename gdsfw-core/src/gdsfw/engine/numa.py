"""Memory of one NUMA node for the calling thread, by the kernel's own call: nothing has to be installed."""

from __future__ import annotations

import ctypes
import errno
import os
import platform

from gdsfw.errors import UnavailableError

#: set_mempolicy(2): numbers of the kernel's system call tables, and MPOL_BIND of linux/mempolicy.h.
_SET_MEMPOLICY = {"x86_64": 238, "aarch64": 237}
_MPOL_BIND = 2
_WORD = 64


def bind_memory(node: int) -> None:
    """Let all memory that this thread touches first from now on come from NUMA node `node` and no other.

    Raises:
        UnavailableError: the kernel refuses, or has no such call.
    """
    number = _SET_MEMPOLICY.get(platform.machine())
    if number is None:
        raise _refused(node, errno.ENOSYS)
    words = node // _WORD + 1
    mask = (ctypes.c_uint64 * words)()
    mask[node // _WORD] = 1 << node % _WORD
    libc = ctypes.CDLL(None, use_errno=True)
    # The kernel looks at one bit less than it is told.
    bits = ctypes.c_ulong(words * _WORD + 1)
    if libc.syscall(ctypes.c_long(number), ctypes.c_long(_MPOL_BIND), mask, bits) < 0:
        raise _refused(node, ctypes.get_errno())


def _refused(node: int, error: int) -> UnavailableError:
    why = {
        errno.EINVAL: f"node {node} has no memory, or this process may not use it (cpuset.mems)",
        errno.EPERM: "a container's system call filter refuses set_mempolicy(2); it wants CAP_SYS_NICE",
        errno.ENOSYS: "the kernel has no set_mempolicy(2)",
    }.get(error, os.strerror(error))
    return UnavailableError(
        f"numa: memory cannot be bound to node {node}: {why}",
        hint=f"`cpus` with the CPUs of node {node} places the workers without binding their memory",
    )
