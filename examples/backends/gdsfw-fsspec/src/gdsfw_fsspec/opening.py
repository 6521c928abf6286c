"""Opening a URL: what may be read, made and overwritten there, and the way to its bytes."""

from __future__ import annotations

import errno
import os
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gdsfw.backend import FileHandle
from gdsfw.errors import GdsfwError, RefusedError, UnavailableError, UsageError

from gdsfw_fsspec import protocols
from gdsfw_fsspec.failures import told
from gdsfw_fsspec.names import protocol_of, protocols_of, url_of
from gdsfw_fsspec.ways import Descriptor, Ranges, Seeking, Way

if TYPE_CHECKING:
    from gdsfw.backend import Target

    from gdsfw_fsspec.options import FsspecOptions

#: What tells one state of a file from another, as far as its file system says it.
_IDENTITY = ("ino", "created", "mtime", "size")
_HTTP = ("http", "https")
_LOCAL = ("file", "local")


@dataclass
class _Made:
    """A file that this process made: how many handles write it now, and what it was when the last one was closed."""

    writers: int = 0
    left: tuple[Any, ...] = ()


#: By URL. A file that is not as we left it is somebody else's.
_made: dict[str, _Made] = {}
_lock = threading.Lock()


@dataclass
class Opened:
    """An open URL; FileHandle.state.

    Args:
        writes: the file may be written, and is among those that this process made or was given.
    """

    url: str
    fs: Any
    path: str
    way: Way
    writes: bool

    def close(self) -> None:
        """Close it; what was written is remembered as ours."""
        try:
            self.way.close()
        finally:
            if self.writes:
                self._leave()

    def _leave(self) -> None:
        with _lock:
            made = _made.get(self.url)
            if made is None:
                return
            made.writers -= 1
            if made.writers:
                return
            try:
                made.left = _identity(self.fs.info(self.path))
            except Exception:  # gone, or out of reach: then it is not known to be ours
                del _made[self.url]


@dataclass(frozen=True)
class _Place:
    """A URL with its file system, and what that says of it; `info` is None where nothing is."""

    url: str
    protocol: str
    fs: Any
    path: str
    info: dict[str, Any] | None


def open_target(target: Target, mode: str, options: FsspecOptions) -> FileHandle:
    """Open a file of a workload.

    Args:
        mode: r or rw.

    Raises:
        UsageError: the name or its protocol is none.
        UnavailableError: it is not there, a package is missing, or the file system cannot do what the job asks for.
        RefusedError: it is the user's.
        OSError, BackendError: what the storage says.
    """
    writes = mode == "rw"
    url = url_of(options.base, target.name)
    _check_job(target, url, writes)
    try:
        place = _look(url, options)
        made = writes and _claim(target, place)
        try:
            return _opened(target, _look(url, options) if made else place, writes, options)
        except BaseException:
            if writes:
                _forget_writer(place)
            raise
    except (GdsfwError, ImportError, OSError):
        raise
    except Exception as error:
        raise _explained(error, url) from error


def _check_job(target: Target, url: str, writes: bool) -> None:
    """What a file system cannot do is refused before anything is looked at."""
    if target.direct == "true":
        raise UnavailableError(f"{url}: direct: true, but fsspec knows no O_DIRECT", hint="use direct: auto or false")
    if not writes:
        _check_copies(url)
        return
    protocol = protocol_of(url)
    if protocol not in protocols.WRITABLE:
        raise UnavailableError(
            f"{url}: {protocol}:// cannot change a part of a file, so no job can write there",
            hint="put the data there with another tool and let the job read; memory:// and file:// can be written",
        )
    if target.sync != "none":
        raise UnavailableError(
            f"{url}: sync: {target.sync}, but fsspec opens no file with O_SYNC or O_DSYNC",
            hint="use fsync or fdatasync after so many writes",
        )


def _check_copies(url: str) -> None:
    """Reads that a copy on this machine's disk answers would be figures of that disk."""
    copying = [protocol for protocol in protocols_of(url) if protocol in protocols.COPYING]
    if copying:
        raise UnavailableError(
            f"{url}: {copying[0]} keeps a copy on this machine's disk and reads that",
            hint="leave it out; the option `cache` has caches in memory, which results name",
        )


def _look(url: str, options: FsspecOptions) -> _Place:
    """Make the file system and ask it for the file."""
    from fsspec.core import url_to_fs

    protocol = protocol_of(url)
    storage = dict(options.storage_options)
    if protocol in _HTTP:
        # A compressed answer would hold other bytes than the range that was asked for.
        storage["headers"] = {"Accept-Encoding": "identity", **storage.get("headers", {})}
    try:
        fs, path = url_to_fs(url, **storage)
    except ImportError as error:
        raise protocols.refuse_missing(url, error) from error
    except ValueError as error:
        if "Protocol not known" in str(error):
            raise protocols.refuse_unknown(url) from error
        raise
    except (OSError, TimeoutError) as error:
        raise told(error, "open", url) or error from error
    try:
        if fs.async_impl:
            fs.invalidate_cache()  # a listing that it remembers may be older than the file
        return _Place(url, protocol, fs, path, fs.info(path))
    except FileNotFoundError as error:
        real = told(error, "open", url)
        if isinstance(real, OSError) and real.errno == errno.ENOENT:
            return _Place(url, protocol, fs, path, None)
        raise real or error from error
    except OSError as error:
        raise told(error, "open", url) or error from error


def _claim(target: Target, place: _Place) -> bool:
    """Make a file, or see to it that the one that is there may be overwritten; True when it was made."""
    url, info = place.url, place.info
    with _lock:
        if info is None:
            if not target.create:
                raise UnavailableError(f"there is no {url}")
            _make(place)
            _made[url] = _Made(writers=1)
            return True
        _check_kind(url, info)
        if info.get("islink"):
            raise RefusedError(f"{url} is a symbolic link", hint="name the file itself")
        if info.get("nlink", 1) != 1:
            raise RefusedError(f"{url} has {info['nlink']} hard links", hint="name a file that has one name only")
        made = _made.get(url)
        ours = made is not None and (made.writers > 0 or made.left == _identity(info))
        if not ours and not target.allow_overwrite:
            raise RefusedError(
                f"{url} exists, and this run did not make it",
                hint="choose another name, or say `allow_overwrite: true` if its contents may be lost",
            )
        if made is None or not ours:
            made = _made[url] = _Made()
        made.writers += 1
        return False


def _make(place: _Place) -> None:
    """A new, empty file; never in place of one that appeared meanwhile."""
    try:
        if place.protocol in _LOCAL:
            place.fs.makedirs(os.path.dirname(place.path), exist_ok=True)  # noqa: PTH120 - fsspec's paths are strings
        place.fs.open(place.path, "xb").close()
    except FileExistsError as error:
        raise RefusedError(f"{place.url}: somebody else made it, or a file of the name of its folder") from error
    except OSError as error:
        raise told(error, "open", place.url) or error from error


def _forget_writer(place: _Place) -> None:
    with _lock:
        made = _made.get(place.url)
        if made is not None:
            made.writers -= 1
            if made.writers <= 0:
                del _made[place.url]


def _opened(target: Target, place: _Place, writes: bool, options: FsspecOptions) -> FileHandle:
    url, info = place.url, place.info
    if info is None:
        raise UnavailableError(f"there is no {url}", hint="write it in an earlier job, or put it there first")
    _check_kind(url, info)
    nbytes = info.get("size")
    if nbytes is None:
        raise UnavailableError(
            f"{url}: the server does not say how long it is", hint="it must send Content-Length, without compression"
        )
    try:
        way = _way(place, writes, int(nbytes), options)
    except OSError as error:
        raise told(error, "open", url) or error from error
    return FileHandle(
        replace(target, nbytes=int(nbytes)),
        direct_reason="fsspec knows no O_DIRECT",
        writable=writes,
        state=Opened(url, place.fs, place.path, way, writes),
    )


def _way(place: _Place, writes: bool, nbytes: int, options: FsspecOptions) -> Way:
    """The way to the bytes that the file system allows."""
    fs, path = place.fs, place.path
    name = f"{place.protocol}:// by {type(fs).__name__}"
    mode = "r+b" if writes else "rb"
    if place.protocol in _LOCAL:
        way = Descriptor(fs.open(path, mode), f"{name}: preadv and pwrite on the file that it opened")
        assert place.info is not None
        if os.fstat(way.fd).st_ino != place.info["ino"]:
            way.close()
            raise RefusedError(f"{place.url} was replaced while it was being opened")
        return way
    if place.protocol == "memory":
        return Seeking(fs.open(path, mode), f"{name}: in this process's memory", shared=True)
    if options.cache == "none" and _is_asynchronous(fs):
        if place.protocol in _HTTP:
            _check_ranges(place, nbytes)
        return Ranges(fs, path, nbytes, f"{name}: every read is a request for its range, nothing is cached here")
    file = fs.open(path, mode, cache_type=options.cache)
    return Seeking(file, f"{name}: {_kept(fs, file)}, one read at a time", nbytes=nbytes)


def _is_asynchronous(fs: Any) -> bool:
    """Whether its calls from several threads run beside each other; `dir` says so of itself whatever it stands for."""
    while type(fs).__name__ == "DirFileSystem":
        fs = fs.fs
    return bool(type(fs).async_impl)


def _kept(fs: Any, file: Any) -> str:
    """What the file object is, and the cache that really is in front of the storage: archives ignore `cache`."""
    archive, cache = _cache_of(getattr(fs, "fo", None)), _cache_of(file)  # codespell:ignore fo
    if archive:
        return f"a member of an archive that fsspec reads with cache {archive}"
    return f"a file object with cache {cache}" if cache else f"a {type(file).__name__}"


def _cache_of(file: Any) -> str:
    return str(getattr(getattr(file, "cache", None), "name", ""))


def _check_ranges(place: _Place, nbytes: int) -> None:
    """A server that ignores ranges would send the whole object for every block."""
    if nbytes < 2:
        return
    refusal = UnavailableError(
        f"{place.url}: the server does not answer requests for a range of a file",
        hint="cache: all reads the file once and serves blocks from memory, which measures no storage",
    )
    assert place.info is not None
    if place.info.get("partial") is False:
        raise refusal
    # HTTPFile looks at the answer's head before it takes the body, which cat_file does not.
    with place.fs.open(place.path, "rb", size=nbytes, cache_type="none") as file:
        file.seek(nbytes - 1)
        try:
            if len(file.read(1)) != 1:
                raise refusal
        except ValueError as error:
            raise refusal from error


def _check_kind(url: str, info: dict[str, Any]) -> None:
    if info.get("type") == "directory":
        raise UsageError(f"{url} is a folder, did you mean directory:", hint=f"directory: {url}")
    if info.get("type") == "other":
        raise RefusedError(f"{url} is no regular file", hint="backend posix works on block devices")


def _identity(info: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(info.get(key) for key in _IDENTITY)


def _explained(error: Exception, url: str) -> Exception:
    """An error of a library's own while a file is opened, with its words: here they still reach the user."""
    if isinstance(real := told(error, "open", url), GdsfwError):
        return real
    return UnavailableError(
        f"{url}: cannot be opened: {type(error).__name__}: {error}",
        hint="look at `storage_options`, and at the configuration of the package for this protocol",
    )
