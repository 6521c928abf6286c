"""Limits that a child process puts on itself before it starts a program, for `preexec_fn`."""

from __future__ import annotations

import ctypes
import os
import resource
import struct
from collections.abc import Callable

SYS_IO_URING_SETUP = 425
_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP = 24, 38, 22
_MODE_FILTER = 2
_CAP_IPC_LOCK = 14
_CAP_DAC_OVERRIDE = 1
_RET_ALLOW, _RET_ERRNO = 0x7FFF0000, 0x00050000
_LOAD_WORD, _JUMP_EQUAL, _RETURN = 0x20, 0x15, 0x06


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def refusing(number: int, error: int) -> Callable[[], None]:
    """A seccomp filter that answers the system call `number` with `error`, as container profiles do."""
    steps = (
        (_LOAD_WORD, 0, 0, 0),  # seccomp_data.nr
        (_JUMP_EQUAL, 0, 1, number),
        (_RETURN, 0, 0, _RET_ERRNO | error),
        (_RETURN, 0, 0, _RET_ALLOW),
    )
    code = b"".join(struct.pack("HBBI", *step) for step in steps)

    def install() -> None:
        program = _Program(len(steps), code)
        _prctl(_PR_SET_NO_NEW_PRIVS, 1, 0)
        _prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.addressof(program))

    return install


def locking_at_most(nbytes: int) -> Callable[[], None]:
    """RLIMIT_MEMLOCK, and no capability that lifts it: root becomes like any user in this."""

    def install() -> None:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (nbytes, nbytes))
        if os.geteuid() == 0:
            _prctl(_PR_CAPBSET_DROP, _CAP_IPC_LOCK, 0)

    return install


def bound_by_permissions() -> None:
    """No capability to write where the mode of a folder forbids it: root becomes like any user in this."""
    if os.geteuid() == 0:
        _prctl(_PR_CAPBSET_DROP, _CAP_DAC_OVERRIDE, 0)


def files_of_at_most(nbytes: int) -> Callable[[], None]:
    """RLIMIT_FSIZE: a write beyond it fails, as on a full disk."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (nbytes, nbytes))


def _prctl(option: int, first: int, second: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(option, ctypes.c_ulong(first), ctypes.c_ulong(second), 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")
