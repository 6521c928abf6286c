"""io_uring for backends: the ready table with its options, and what to say where the kernel refuses."""

from __future__ import annotations

import ctypes as c
import errno
import os
import resource
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gdsfw.engine.native_library import engine
from gdsfw.engine.native_table import NativeTable, QueueOptions, UringOptions, UringReport

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gdsfw.backend import Buffer

WORKS, SETUP, MAP, BUFFERS, FILES = range(5)
SETTING: Final = Path("/proc/sys/kernel/io_uring_disabled")


def uring_table(options: UringOptions) -> NativeTable:
    """io_uring on host memory; file values are addresses of FdFile. Keep `options` alive as long as the table."""
    table = engine().table("gdsfw_uring")
    table.ctx = c.addressof(options)
    return table


@dataclass(frozen=True)
class Refusal:
    """Why an io_uring queue cannot be opened.

    Args:
        step: SETUP, MAP, BUFFERS or FILES.
        error: errno of that step.
        message: one sentence for the user. hint: what to do about it.
    """

    step: int
    error: int
    message: str
    hint: str


def try_uring(
    options: UringOptions, buffer: Buffer, file_values: Sequence[int], iodepth: int, *, root: Path = Path("/")
) -> Refusal | None:
    """Open a queue as a job would, close it again, and say why when that fails; None when it works.

    Args:
        root: where /proc is looked for.
    """
    values = (c.c_uint64 * len(file_values))(*file_values)
    queue = QueueOptions(
        iodepth=iodepth,
        iodepth_batch=1,
        buffer_base=buffer.address,
        buffer_size=buffer.nbytes,
        files=values,
        nfiles=len(values),
    )
    report = UringReport()
    if engine().library.gdsfw_uring_try(c.byref(options), c.byref(queue), c.byref(report)) == 0:
        return None
    return explain(report.step, report.error, options, buffer.nbytes, root=root)


def explain(step: int, error: int, options: UringOptions, nbytes: int, *, root: Path = Path("/")) -> Refusal:
    """What a failed step means.

    Args:
        nbytes: size of the buffer that was to be registered.
    """
    if step == SETUP:
        return Refusal(step, error, *_setup(error, options, root))
    if step == BUFFERS and error in (errno.ENOMEM, errno.EPERM):
        soft = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
        limit = "unlimited" if soft == resource.RLIM_INFINITY else f"{soft} bytes"
        return Refusal(
            step,
            error,
            f"io_uring cannot register the buffer of {nbytes} bytes: the limit on locked memory is {limit}",
            "raise it (ulimit -l, LimitMEMLOCK=), or set register_buffers: none",
        )
    what = {MAP: "its rings", BUFFERS: f"a buffer of {nbytes} bytes", FILES: "the files"}[step]
    verb = "map" if step == MAP else "register"
    return Refusal(step, error, f"io_uring cannot {verb} {what}: {os.strerror(error)}", "use io_path: psync")


def _setup(error: int, options: UringOptions, root: Path) -> tuple[str, str]:
    setting = root / SETTING.relative_to("/")
    disabled = setting.read_text().strip() if setting.exists() else "0"
    if error == errno.EPERM and disabled != "0":
        who = "everybody" if disabled == "2" else "users outside kernel.io_uring_group"
        return (
            f"io_uring is switched off for {who}: {SETTING} is {disabled}",
            "set sysctl kernel.io_uring_disabled=0, or use io_path: psync",
        )
    if error == errno.EPERM and options.sqpoll:
        return ("io_uring's sqpoll is not permitted", "older kernels want CAP_SYS_NICE for it; leave sqpoll off")
    if error in (errno.EPERM, errno.EACCES):
        return (
            "io_uring is not permitted here, as in containers whose seccomp profile blocks it",
            "allow io_uring_setup, io_uring_enter and io_uring_register there, or use io_path: psync",
        )
    if error == errno.ENOSYS:
        return (
            "this kernel has no io_uring, or a sandbox hides it (it came with Linux 5.1; gdsfw needs 5.6)",
            "use io_path: psync",
        )
    if error == errno.EOPNOTSUPP:
        return ("this kernel's io_uring is too old: gdsfw needs that of Linux 5.6", "use io_path: psync")
    if error == errno.ENOMEM:
        return (
            "io_uring cannot allocate its rings: locked memory or the control group's memory is used up",
            "raise it (ulimit -l), use a smaller iodepth, or io_path: psync",
        )
    return (f"io_uring cannot be set up: {os.strerror(error)}", "use io_path: psync")


__all__ = ["Refusal", "UringOptions", "explain", "try_uring", "uring_table"]
