"""Protocols: which Python packages they need, and what can be done with them."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from gdsfw.backend import Check
from gdsfw.errors import UnavailableError, UsageError

from gdsfw_fsspec.names import protocol_of, protocols_of

if TYPE_CHECKING:
    from gdsfw.backend import State
    from gdsfw.host import Host

#: File systems whose files can be changed in the middle (`r+b`). All object stores replace whole objects only, web
#: servers and archives nothing at all.
WRITABLE = ("memory", "file", "local")

#: File systems that answer from a copy of their own on this machine's disk.
COPYING = ("simplecache", "filecache", "blockcache", "cached")

#: What people ask for, by the module that it needs beyond fsspec.
_MODULES = {
    "memory": "",
    "file": "",
    "zip": "",
    "http": "aiohttp",
    "https": "aiohttp",
    "s3": "s3fs",
    "gs": "gcsfs",
    "abfs": "adlfs",
    "sftp": "paramiko",
}
#: Packages whose name at the registry is not that of the module.
_PACKAGES = {
    "smbclient": "smbprotocol",
    "libarchive": "libarchive-c",
    "fsspec_xrootd": "fsspec-xrootd",
}
#: Third parties' own names of one protocol.
_ALIASES = {"s3a": "s3", "gcs": "gs", "az": "abfs", "adl": "abfs", "ssh": "sftp", "local": "file"}


def missing(protocol: str) -> str:
    """The package to install before URLs of a protocol can be opened; empty when none is known to be missing."""
    module = _MODULES.get(_ALIASES.get(protocol, protocol), "")
    return _PACKAGES.get(module, module) if module and find_spec(module) is None else ""


def refuse_missing(url: str, error: ImportError) -> UnavailableError:
    """The refusal of a URL whose file system could not be imported."""
    cause = error.__cause__
    module = (cause.name if isinstance(cause, ImportError) else error.name) or ""
    module = module.split(".")[0]
    package = missing(protocol_of(url)) or _PACKAGES.get(module, module)
    if not package:
        return UnavailableError(f"{url}: a Python package is missing: {error}")
    return UnavailableError(
        f"{url} needs the Python package {package}, which is not installed", hint=f"pip install {package}"
    )


def refuse_unknown(url: str) -> UsageError:
    """The refusal of a URL whose protocol fsspec does not know."""
    from fsspec import available_protocols

    return UsageError(
        f"{url}: fsspec knows no protocol {url.split('://')[0]!r}",
        hint=f"it knows {', '.join(sorted(available_protocols()))}",
    )


def checks(base: str, host: Host) -> list[Check]:
    """What can be opened here and what to install for the rest; imports nothing and asks no network.

    Args:
        base: the URL that the options name; without its package the backend cannot be used.
    """
    if not host.live:
        return [Check("fsspec", "unknown", "a recorded machine does not say which Python packages it has")]
    if find_spec("fsspec") is None:
        meaning = "no URL can be opened"
        return [Check("fsspec", "fail", "not installed", "fsspec", meaning, fix="pip install fsspec")]
    from importlib.metadata import version

    found = [Check("fsspec", "ok", f"version {version('fsspec')}")]
    wanted = protocols_of(base)
    return found + [_check(protocol, base, protocol in wanted) for protocol in dict.fromkeys([*_MODULES, *wanted])]


def _check(protocol: str, base: str, wanted: bool) -> Check:
    name, package = f"{protocol}://", missing(protocol)
    if package:
        state: State = "fail" if wanted else "warn"
        meaning = f"`base` is {base}" if wanted else f"no {name} can be opened"
        seen = f"the Python package {package} is not installed"
        return Check(name, state, seen, package, meaning, fix=f"pip install {package}")
    if _ALIASES.get(protocol, protocol) not in _MODULES:
        return Check(name, "unknown", "what it needs is known when a file is opened")
    able = "reads and writes" if protocol in WRITABLE else "reads"
    return Check(name, "ok", f"{able}; no package is missing")
