"""How files are opened: nothing of the user's is created, truncated, written or deleted unless the job says so.

Files are first opened as a mere reference (O_PATH|O_NOFOLLOW), judged on that descriptor, and then reopened through
/proc/self/fd, so that what was judged is what is used, whatever happens to the name meanwhile. The reopening also
gets rid of O_NOFOLLOW, which some file libraries refuse.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import NoReturn

from gdsfw.backend import Alignment, FileHandle, Target
from gdsfw.errors import GdsfwError, RefusedError, UnavailableError, UsageError
from gdsfw.storage.block_devices import claim, device_use, loop_behind, release, signatures
from gdsfw.storage.direct import DirectDecision, decide
from gdsfw.storage.filesystems import SPECIAL, kind, mount_of
from gdsfw.storage.identity import Identity, identify
from gdsfw.storage.manifest import Entry, Manifest

_KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a character device",
}
_SYNC_FLAGS = {"none": 0, "dsync": os.O_DSYNC, "sync": os.O_SYNC}


def open_target(target: Target, mode: str) -> FileHandle:
    """Open a file for a job.

    Args:
        target: the file, and what the job allows.
        mode: `r`, or `rw` for a job that writes.

    Raises:
        RefusedError: it may be the user's data, or it is no place for data (exit 4).
        UnavailableError: it is absent, not permitted, or cannot be direct although the job insists (exit 3).
        UsageError: it is a directory (exit 2).
    """
    if mode not in ("r", "rw"):
        raise ValueError(f"mode is r or rw, not {mode!r}")
    writes = mode == "rw"
    reference = _reference(target, writes)
    try:
        _judge(target, reference, writes)
        return _reopen(target, reference, writes)
    finally:
        os.close(reference)


def close_file(handle: FileHandle) -> None:
    """Close what open_target opened; a second call does nothing."""
    for name in ("fd", "tail_fd"):
        fd = getattr(handle, name)
        setattr(handle, name, -1)
        if fd >= 0:
            os.close(fd)
    if handle.claimed is not None:
        release(handle.claimed)
        handle.claimed = None


def refuse_special_place(path: Path) -> None:
    """Refuse a directory on proc, sysfs, devtmpfs and the like, and the root directory itself, for new files."""
    existing = next(place for place in (path, *path.absolute().parents) if place.exists())
    mount = mount_of(existing)
    fd = os.open(existing, os.O_PATH | os.O_CLOEXEC)
    try:
        filesystem = kind(fd)
    finally:
        os.close(fd)
    if filesystem in SPECIAL or (mount and (mount.filesystem == "devtmpfs" or mount.point == "/dev")):
        raise RefusedError(
            f"{path}: {mount.filesystem if mount else filesystem} is no place for data",
            hint="give `directory:` or `filename:` on a file system for files",
        )
    if path.absolute() == Path("/"):
        raise RefusedError("/ is the root directory", hint="give `directory:` a folder of its own")


def _reference(target: Target, writes: bool) -> int:
    path = target.path
    try:
        fd = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        if writes and target.create:
            return _create(target)
        raise UnavailableError(
            f"{path}: there is no such file",
            hint="a job that reads needs it: create it, let an earlier job write it (files_from), or leave out "
            "`filename` so that gdsfw lays out files of its own",
        ) from None
    except OSError as error:
        _explain(path, error)
    if not stat.S_ISLNK(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    if writes and not path.is_block_device():  # /dev/disk/by-id and its like are how devices are named
        raise RefusedError(
            f"{path} is a symbolic link to {os.path.realpath(path)}",
            hint="a job that writes follows no links in the last part of a name; name the file itself",
        )
    try:
        return os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError as error:
        _explain(path, error)


def _create(target: Target) -> int:
    """Create the file, record it as ours, reserve its space."""
    path = target.path
    refuse_special_place(path.parent)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    except OSError as error:
        _explain(path, error)
    try:
        Manifest.load(path.parent).record(_entry(target, identify(fd), created=True))
        _reserve(fd, target)
        return os.open(f"/proc/self/fd/{fd}", os.O_PATH | os.O_CLOEXEC)
    finally:
        os.close(fd)


def _reserve(fd: int, target: Target) -> None:
    """Give the file its size and blocks, as fio's fallocate=native does; a file system that cannot is no error."""
    if not target.nbytes:
        return
    try:
        os.posix_fallocate(fd, 0, target.nbytes)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            os.ftruncate(fd, 0)
            raise UnavailableError(
                f"{target.path}: no room for {target.nbytes} bytes ({os.strerror(error.errno)})",
                hint="lower `size`, raise the limit, or choose another `directory`",
            ) from None


def _judge(target: Target, fd: int, writes: bool) -> None:
    """Refuse what is no file for data, and for a writer what may be the user's."""
    path, status = target.path, os.fstat(fd)
    file_type = stat.S_IFMT(status.st_mode)
    if file_type == stat.S_IFDIR:
        raise UsageError(f"{path} is a directory, did you mean directory:", hint=f"directory: {path}")
    if file_type in _KINDS:
        raise RefusedError(f"{path} is {_KINDS[file_type]}", hint="gdsfw works on regular files and block devices")
    if file_type == stat.S_IFBLK:
        if writes:
            _judge_device(target, status.st_rdev)
        return
    if kind(fd) in SPECIAL:
        raise RefusedError(f"{path} lies on {kind(fd)}, which is no place for data")
    if writes:
        _judge_writing(target, identify(fd))


def _judge_device(target: Target, rdev: int) -> None:
    """A device is written only when the workload and the command line say so and nobody uses any of it."""
    path, use = target.path, device_use(rdev)
    if use.in_use:
        raise RefusedError(
            f"{path} is a block device in use. {use.describe()}", hint="unmount and detach what uses it first"
        )
    named = any(_is_device(name, rdev) for name in target.allow_destroy)
    if target.allow_overwrite and named:
        return
    found = signatures(os.path.realpath(path))
    content = "unknown (blkid cannot be run)" if found is None else ", ".join(found) or "nothing that blkid knows"
    lacking = ["`allow_overwrite: true` in the job"] * (not target.allow_overwrite)
    lacking += [f"`--allow-destroy {path}` on the command line"] * (not named)
    raise RefusedError(
        f"{path} is a block device. {use.describe()}; content: {content}",
        hint=f"if all of it may be lost, say {' and '.join(lacking)}; or use a file on a file system",
    )


def _is_device(name: str, rdev: int) -> bool:
    try:
        status = os.stat(name)  # noqa: PTH116
    except OSError:
        return False
    return stat.S_ISBLK(status.st_mode) and status.st_rdev == rdev


def _judge_writing(target: Target, found: Identity) -> None:
    path, status = target.path, found.status
    if status.st_nlink != 1:
        raise RefusedError(f"{path} has {status.st_nlink} hard links", hint="name a file that has one name only")
    loop = loop_behind(status.st_dev, status.st_ino)
    if loop:
        raise RefusedError(f"{path} is the file behind {loop}", hint=f"detach it first: losetup -d {loop}")
    manifest = Manifest.load(path.parent)
    entry = manifest.entry(path.name)
    if entry is not None and manifest.owns(path.name, found):
        if entry.size < target.nbytes:
            manifest.update(path.name, size=target.nbytes, complete=False)
        return
    if status.st_uid != os.geteuid():
        raise RefusedError(f"{path} belongs to another user (uid {status.st_uid})")
    if not target.allow_overwrite:
        doubt = f" ({manifest.distrust})" if manifest.distrust else ""
        raise RefusedError(
            f"{path} exists and gdsfw did not create it{doubt}",
            hint="choose another name, or say `allow_overwrite: true` if its contents may be lost",
        )
    if entry is None or not entry.is_file(found):
        manifest.record(_entry(target, found, created=False))


def _entry(target: Target, found: Identity, *, created: bool) -> Entry:
    """What the manifest keeps of a file that gdsfw writes."""
    status = found.status
    return Entry(
        name=target.path.name,
        device=status.st_dev,
        inode=status.st_ino,
        size=max(target.nbytes, status.st_size),
        job=target.job,
        file_id=target.file_id,
        created=created,
        born=found.born,
    )


def _reopen(target: Target, reference: int, writes: bool) -> FileHandle:
    """Open what was judged, direct if wanted and possible."""
    place = f"/proc/self/fd/{reference}"
    flags = (os.O_RDWR | _SYNC_FLAGS[target.sync] if writes else os.O_RDONLY) | os.O_CLOEXEC
    claimed = _claim(target, reference) if writes else None
    buffered = _open(target.path, place, flags)
    fd, decision = buffered, DirectDecision(False, "not asked for")
    if target.direct != "false":
        fd, decision = _try_direct(place, flags)
        if not decision.direct and target.direct == "true":
            os.close(buffered)
            if claimed is not None:
                release(claimed)
            raise UnavailableError(
                f"{target.path}: direct: true, but {decision.reason}",
                hint="use `direct: auto` or false, or a file system that bypasses the page cache",
            )
    actual = Target(**{**vars(target), "nbytes": os.lseek(buffered, 0, os.SEEK_END)})
    return FileHandle(
        actual,
        fd=fd if decision.direct else buffered,
        tail_fd=buffered if decision.direct else -1,
        direct=decision.direct,
        direct_reason=decision.reason,
        writable=writes,
        alignment=decision.alignment if decision.direct else Alignment(),
        claimed=claimed,
    )


def _claim(target: Target, reference: int) -> int | None:
    """Keep others away from a block device, and it from them; None for files."""
    status = os.fstat(reference)
    if not stat.S_ISBLK(status.st_mode):
        return None
    try:
        claim(status.st_rdev, f"/proc/self/fd/{reference}")
    except OSError as error:
        if error.errno == errno.EBUSY:
            use = device_use(status.st_rdev).describe()
            raise RefusedError(
                f"{target.path} is a block device that somebody holds (EBUSY). {use}",
                hint="look at `lsblk` and `fuser`",
            ) from None
        _explain(target.path, error)
    return status.st_rdev


def _try_direct(place: str, flags: int) -> tuple[int, DirectDecision]:
    try:
        fd = os.open(place, flags | os.O_DIRECT)
    except OSError as error:
        return -1, DirectDecision(False, f"an open with O_DIRECT failed: {error.strerror}")
    decision = decide(fd)
    if not decision.direct:
        os.close(fd)
        return -1, decision
    return fd, decision


def _open(path: Path, place: str, flags: int) -> int:
    try:
        return os.open(place, flags)
    except OSError as error:
        _explain(path, error)


def _explain(path: Path, error: OSError) -> NoReturn:
    """Turn an errno of open into the exit code and hint it deserves."""
    name = errno.errorcode.get(error.errno or 0, str(error.errno))
    hint = {
        errno.EACCES: f"check the permissions with `ls -ld {path} {path.parent}`",
        errno.EPERM: f"check the permissions with `ls -ld {path}` and the attributes with `lsattr {path}`",
        errno.EROFS: "its file system is mounted read-only",
        errno.EMFILE: "raise the limit on open files (`ulimit -n`) or use fewer files",
        errno.ENOTDIR: f"{path.parent} is not a directory",
        errno.ELOOP: "a symbolic link leads in a circle",
        errno.ENOSPC: "the file system is full",
        errno.EEXIST: "somebody else created it meanwhile",
    }.get(error.errno or 0)
    kind_of: type[GdsfwError] = RefusedError if error.errno == errno.EEXIST else UnavailableError
    raise kind_of(f"{path}: cannot be opened: {name} ({error.strerror})", hint=hint) from error
