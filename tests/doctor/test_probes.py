"""A probe that hangs, dies or is told nothing; personal details; PCI's ACS."""

from __future__ import annotations

import json

import pytest
from gdsfw.doctor.recording import clean
from gdsfw.gpu.checks.kernel import redirects
from helpers.site import Site

BACKEND = """
import os, time
from gdsfw import hookimpl
from gdsfw.backend import BackendInfo, Buffer, IOPath, IOPathInfo
@hookimpl
def gdsfw_backend():
    return BackendInfo("stuck", "stuck", "1", (IOPathInfo("one", native=False),), capabilities=frozenset({"devices"}))
@hookimpl
def gdsfw_alloc(worker): return Buffer(0, 0)
@hookimpl
def gdsfw_free(worker): pass
@hookimpl
def gdsfw_io(worker): return IOPath("one", ())
@hookimpl
def gdsfw_probe(host):
    %s
    return []
"""


@pytest.mark.parametrize(
    ("does", "says"),
    [("time.sleep(3600)", "probe of stuck did not answer"), ("os._exit(9)", "died")],
    ids=["hangs", "dies"],
)
def test_a_probe_that_does_not_answer_is_named_and_the_others_go_on(site: Site, does: str, says: str) -> None:
    site.distribution("gdsfw-stuck", BACKEND % does, entry_points={"stuck": "gdsfw_stuck"})
    report = json.loads(site.run("doctor", "--json", "--no-io", code=3, GDSFW_PLUGINS="posix,stuck").stdout)
    stuck = next(one for one in report["backends"] if one["name"] == "stuck")
    posix = next(one for one in report["backends"] if one["name"] == "posix")
    assert says in stuck["reason"]
    assert not stuck["direct"]
    assert posix["checks"]
    assert report["hung"] == (["probe of stuck"] if "sleep" in does else [])


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("uuid:12a86a5e-3002-108f-ee49-4b51266cdc07", "uuid:00000000-0000-0000-0000-000000000000"),
        ("link 00:1b:21:aa:bb:cc", "link 00:00:00:00:00:00"),
        ("addr=10.1.2.3,proto=rdma", "addr=0.0.0.0,proto=rdma"),
        ("LVM-abcDEF0123456789", "LVM-0"),
        ("/home/alice/data", "/home/user/data"),
        ("Linux version 6.8.0 (alice@desk) (gcc)", "Linux version 6.8.0 (user@host) (gcc)"),
        ("0000:07:00.0 259:1 6.8.0-60-generic", "0000:07:00.0 259:1 6.8.0-60-generic"),
    ],
)
def test_personal_details_are_taken_out_and_addresses_on_the_bus_stay(text: str, instead: str) -> None:
    assert clean(text) == instead


def config(identity: int, control: int) -> bytes:
    space = bytearray(4096)
    space[0x100:0x104] = identity.to_bytes(4, "little")
    space[0x106] = control
    return bytes(space)


def test_acs_is_read_from_the_configuration_space() -> None:
    assert redirects(config(0x0000000D, 0x1D)) is True
    assert redirects(config(0x0000000D, 0x01)) is False
    assert redirects(config(0x00000001, 0xFF)) is False
    assert redirects(bytes(256)) is None
