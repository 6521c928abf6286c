"""What file systems raise, as errors that gdsfw can count and explain.

fsspec's file systems raise OSErrors without a number, and errors of the libraries under them. Those are told apart by
their attributes and not by their classes, so that none of the libraries has to be there.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

from gdsfw.backend import ErrorInfo
from gdsfw.errors import BackendError, Domain, GdsfwError

_NUMBERS: dict[type[BaseException], int] = {
    FileNotFoundError: errno.ENOENT,
    PermissionError: errno.EACCES,
    FileExistsError: errno.EEXIST,
    IsADirectoryError: errno.EISDIR,
    NotADirectoryError: errno.ENOTDIR,
    TimeoutError: errno.ETIMEDOUT,
    asyncio.TimeoutError: errno.ETIMEDOUT,  # another class before Python 3.11
    ConnectionRefusedError: errno.ECONNREFUSED,
    ConnectionResetError: errno.ECONNRESET,
}
#: Likely cause and next step by HTTP status.
_ADVICE = {
    401: ("the server wants to know who asks", "give credentials in storage_options or the vendor's configuration"),
    403: ("these credentials do not give the right to this object", "check policy and credentials"),
    404: ("there is no object of this name", "look at `base` and `filename`"),
    405: ("the server does not allow this method", "the server must answer GET with Range"),
    416: ("the object ends before the range that was asked for", "the object was replaced during the run"),
    429: ("the server limits how many requests one client may send", "lower iodepth, numjobs or rate"),
    500: ("the server failed", "look at its log"),
    503: ("the server is overloaded, or slows this client down", "lower iodepth, numjobs or rate"),
}
_BUILT_IN = "builtins"


def told(error: BaseException, operation: str, url: str) -> Exception | None:
    """The error that a data plane may raise for `error`; None when it is a defect of a program.

    Args:
        operation: open, read, write or flush.
        url: what it was about.
    """
    if isinstance(error, GdsfwError):
        return error
    status = _status(error)
    if status == HTTPStatus.NOT_FOUND:
        return _numbered(errno.ENOENT, url)
    if status is not None:
        return BackendError(operation, Domain.FILE, status, url)
    cause = error.__cause__
    if isinstance(cause, Exception) and isinstance(error, OSError) and not error.errno:
        # HTTPFileSystem.info says "not found" of everything that fails; what it was is behind that.
        return told(cause, operation, url) or _behind(error, cause, url)
    if isinstance(error, (OSError, asyncio.TimeoutError)):
        return _numbered(_number(error), url, _words(error))
    if type(error).__module__ == _BUILT_IN:
        return None
    # An error of a library's own: lost connections, broken archives, what a vendor's client says.
    number = errno.ECONNRESET if "Disconnect" in type(error).__name__ else errno.EIO
    return _numbered(number, url, f"{type(error).__name__}: {error}")


def explain(domain: Domain, code: int) -> ErrorInfo | None:
    """What an HTTP status means; None for every other code."""
    if domain is not Domain.FILE or not 400 <= code <= 599:
        return None
    phrase = HTTPStatus(code).phrase if code in list(HTTPStatus) else "a status without a name"
    cause, fix = _ADVICE.get(code, ("", ""))
    return ErrorInfo(f"HTTP_{code}", f"the server answered {code} {phrase}", cause, fix)


def _behind(error: OSError, cause: Exception, url: str) -> OSError:
    """An error that has one of Python's own behind it: it says what came of a look-up, but hides a wrong option."""
    if isinstance(cause, LookupError):
        return _numbered(_number(error), url, str(error))
    return _numbered(errno.EIO, url, f"{type(cause).__name__}: {cause}")


def _numbered(number: int, url: str, words: str = "") -> OSError:
    return OSError(number, words or os.strerror(number), url)


def _number(error: BaseException) -> int:
    """An errno for an error that has none, or one of another numbering (names that cannot be resolved)."""
    if isinstance(getattr(error, "os_error", error), socket.gaierror):
        return errno.EHOSTUNREACH
    number = getattr(error, "errno", None)
    if isinstance(number, int) and number in errno.errorcode:
        return number
    return next((number for kind, number in _NUMBERS.items() if isinstance(error, kind)), errno.EIO)


def _words(error: BaseException) -> str:
    """What the error says, where that is more than its number says: fsspec's often hold the path alone."""
    if isinstance(error, OSError) and error.errno in errno.errorcode and error.strerror:
        return error.strerror
    plain = any(isinstance(error, kind) for kind in _NUMBERS)
    return "" if plain else str(error)


def _status(error: BaseException) -> int | None:
    """The HTTP status in an error of a library, None where there is none."""
    for found in _candidates(error):
        number = int(found) if isinstance(found, (int, str)) and str(found).isdigit() else 0
        if 400 <= number <= 599:
            return number
    return None


def _candidates(error: BaseException) -> Iterator[Any]:
    """Where libraries put it. One after the other: aiohttp warns of whoever looks at its `code`."""
    yield getattr(error, "status", None)  # aiohttp
    response = getattr(error, "response", None)
    if isinstance(response, dict):
        yield response.get("ResponseMetadata", {}).get("HTTPStatusCode")  # botocore
    yield getattr(response, "status_code", None)  # requests, azure
    yield getattr(error, "code", None)  # gcsfs
