"""Names of a workload's files as URLs."""

from __future__ import annotations

import posixpath
import re

from gdsfw.errors import UsageError

#: `s3://...`, and chains of fsspec: `zip://member::s3://...`, `simplecache::s3://...`.
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*(://|::)")


def url_of(base: str, name: str) -> str:
    """The URL of a file: its name if that is one, else the name below `base`.

    Args:
        base: a URL; in a chain the name goes to the first part that has a path.

    Raises:
        UsageError: the name is a URL behind a folder, or leads out of `base`.
    """
    if _URL.match(name):
        return name
    if "://" in name:
        raise UsageError(f"{name!r} is a URL behind a folder", hint="a `filename` that is a URL needs no `directory`")
    below = posixpath.normpath(name).lstrip("/")
    if below == ".." or below.startswith("../"):
        raise UsageError(f"{name!r} leads out of {base}", hint="name files below `base`, or by whole URLs")
    links = base.split("::")
    place = next(index for index, link in enumerate(links) if "://" in link)
    folder = links[place]
    links[place] = folder + below if folder.endswith("/") else f"{folder}/{below}"
    return "::".join(links)


def protocols_of(url: str) -> list[str]:
    """The protocols of a URL, the outermost first: zip and s3 of `zip://member::s3://bucket/archive.zip`."""
    # The last part of a chain may be a plain path.
    return [link.split("://")[0].lower() if "://" in link or "/" not in link else "file" for link in url.split("::")]


def protocol_of(url: str) -> str:
    """The outermost protocol of a URL."""
    return protocols_of(url)[0]
