"""What an errno means for storage I/O: likely cause and the next step."""

from __future__ import annotations

import errno
import os

from gdsfw.backend import ErrorInfo
from gdsfw.errors import Domain

#: (likely cause, what to do) by symbolic name.
_ADVICE = {
    "EACCES": ("the file or a folder above it does not give this user the right", "look at `ls -l` of the path"),
    "EAGAIN": ("a limit on resources was reached for the moment", "lower iodepth or numjobs"),
    "EBADF": ("the file was closed or opened for the other direction", "this is a defect of the backend: report it"),
    "EBUSY": ("the device is mounted or held by someone else", "unmount it, or look at `lsblk` and `fuser`"),
    "EDQUOT": ("the user's disk quota is used up", "free some space or use a smaller size"),
    "EFAULT": ("the kernel cannot reach the buffer's memory", "use another memory kind or io_path"),
    "EFBIG": ("the file would exceed the file system's or the process's limit", "look at `ulimit -f`"),
    "EINTR": ("a signal interrupted the call", "run again"),
    "EINVAL": (
        "for direct I/O: offset, size or memory is not aligned as the file needs",
        "use `direct: auto`, or a block_size and block_align that are multiples of the alignment",
    ),
    "EIO": ("the storage failed to read or write these bytes", "look at `dmesg` for the device's error"),
    "EISDIR": ("the name is a folder", "name a file"),
    "ELOOP": ("the path leads through a symbolic link, which gdsfw does not follow", "name the file itself"),
    "EMFILE": ("this process has too many open files", "raise `ulimit -n`, or use fewer files or shared handles"),
    "ENFILE": ("the system has too many open files", "raise the sysctl fs.file-max"),
    "ENODATA": ("the file ended before the planned range", "the file was cut during the run, or is another one"),
    "ENODEV": ("the device is gone or does not know this operation", "look at `dmesg`"),
    "ENOENT": ("the file or a folder above it is not there", "look at `directory` and `filename`"),
    "ENOMEM": ("memory, or memory that may be locked, is used up", "lower iodepth or block_size, raise `ulimit -l`"),
    "ENOSPC": ("the file system is full", "free some space or use a smaller size"),
    "ENOSYS": ("the kernel does not have this system call", "use another io_path"),
    "ENOTSUP": ("the file system or kernel does not support this", "use another io_path or `direct: false`"),
    "ENXIO": ("no such device or address", "look at `dmesg`"),
    "EOPNOTSUPP": ("the file system or kernel does not support this", "use another io_path or `direct: false`"),
    "EPERM": (
        "the kernel forbids it to this user (container, io_uring off)",
        "use another io_path or run as root",
    ),
    "EROFS": ("the file system is mounted read-only", "use another directory"),
    "ESTALE": ("the network file system lost the file", "run again, or mount it anew"),
    "ETIMEDOUT": ("the storage did not answer in time", "look at `dmesg` and at the network"),
    "ETXTBSY": ("the file is a program that is running", "name another file"),
}


def explain(domain: Domain, code: int) -> ErrorInfo:
    """What `code` means, as far as core knows.

    Args:
        domain: who speaks; core knows ERRNO.
        code: positive.
    """
    if domain is not Domain.ERRNO:
        who = {Domain.GPU: "the GPU runtime", Domain.FILE: "the file library"}.get(domain, "nobody")
        return ErrorInfo(f"{domain.name}_{code}", f"code {code} of {who}; the backend does not explain it")
    if code == 0:
        return ErrorInfo("OK", "no error")
    name = errno.errorcode.get(code, f"ERRNO_{code}")
    text = os.strerror(code)
    cause, fix = _ADVICE.get(name, ("", ""))
    return ErrorInfo(name, text[:1].lower() + text[1:], cause, fix)
