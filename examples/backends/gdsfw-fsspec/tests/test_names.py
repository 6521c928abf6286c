"""Names of files become URLs."""

from __future__ import annotations

from pathlib import Path

import pytest
from gdsfw.errors import UsageError
from gdsfw.host import Host

from gdsfw_fsspec import gdsfw_probe
from gdsfw_fsspec.names import protocols_of, url_of
from gdsfw_fsspec.options import FsspecOptions


@pytest.mark.parametrize(
    ("base", "name", "url"),
    [
        ("memory://gdsfw", "job.0.0", "memory://gdsfw/job.0.0"),
        ("memory://", "job.0.0", "memory://job.0.0"),
        ("s3://bucket/prefix/", "./gdsfw-data/job.0.0", "s3://bucket/prefix/gdsfw-data/job.0.0"),
        ("file:///mnt/data", "/tmp/x", "file:///mnt/data/tmp/x"),
        ("zip://::s3://bucket/a.zip", "job.0.0", "zip://job.0.0::s3://bucket/a.zip"),
        ("simplecache::s3://bucket", "job.0.0", "simplecache::s3://bucket/job.0.0"),
        ("memory://gdsfw", "s3://bucket/key", "s3://bucket/key"),
        ("memory://gdsfw", "zip://m::file:///a.zip", "zip://m::file:///a.zip"),
    ],
)
def test_a_name_goes_below_the_base_unless_it_is_a_url(base: str, name: str, url: str) -> None:
    assert url_of(base, name) == url


@pytest.mark.parametrize("name", ["../secret", "a/../../secret", "..", "data/s3://bucket/key"])
def test_a_name_does_not_leave_the_base(name: str) -> None:
    with pytest.raises(UsageError):
        url_of("file:///mnt/data", name)


def test_a_chain_has_several_protocols() -> None:
    assert protocols_of("zip://member::s3://bucket/a.zip") == ["zip", "s3"]
    assert protocols_of("zip://member::/tmp/a.zip") == ["zip", "file"]
    assert protocols_of("simplecache::HTTPS://host/a") == ["simplecache", "https"]


def test_the_probe_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from gdsfw_fsspec import protocols

    monkeypatch.setattr(protocols, "find_spec", lambda name: None if name in ("s3fs", "aiohttp") else object())
    checks = {check.name: check for check in gdsfw_probe(options=FsspecOptions(), host=Host())}
    assert (checks["memory://"].state, checks["s3://"].state) == ("ok", "warn")
    assert checks["s3://"].fix == "pip install s3fs"
    assert checks["http://"].fix == "pip install aiohttp"
    checks = {check.name: check for check in gdsfw_probe(options=FsspecOptions(base="zip://::s3://b/a"), host=Host())}
    assert checks["s3://"].state == "fail"


def test_a_recorded_machine_says_nothing_of_packages(tmp_path: Path) -> None:
    (check,) = gdsfw_probe(options=FsspecOptions(), host=Host(tmp_path, live=False))
    assert check.state == "unknown"
