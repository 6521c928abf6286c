"""The list of commands, and the commands that say what is installed."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import pytest
from gdsfw import __version__
from gdsfw.cli.group import COMMANDS


class Site(Protocol):
    folder: Path

    def distribution(self, name: str, source: str, *, entry_points: dict[str, str], version: str = "1.0") -> None: ...
    def run(self, *arguments: str, code: int = 0, **environ: Any) -> Any: ...


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_table_exists_and_has_help(site: Site, name: str) -> None:
    function = import_module(COMMANDS[name].module).command
    assert function.__doc__
    text = site.run(name, "--help").stdout
    assert text.startswith(f"Usage: gdsfw {name} ")


def test_help_lists_every_command_with_its_summary(site: Site) -> None:
    lines = site.run("--help").stdout.splitlines()
    width = max(map(len, COMMANDS))
    for name, entry in COMMANDS.items():
        assert f"  {name:<{width}}  {entry.summary}" in lines


def test_the_version_option_prints_the_version(site: Site) -> None:
    assert site.run("--version").stdout == f"gdsfw {__version__}\n"


def test_version_names_what_a_bug_report_needs(site: Site) -> None:
    text = site.run("version").stdout
    data = json.loads(site.run("version", "--json").stdout)
    for key in ("gdsfw", "python", "kernel"):
        assert data[key] in text
    assert data["engine"].keys() == {"available", "reason", "abi", "table_abi"}
    assert "noop" in [plugin["name"] for plugin in data["plugins"]]


def test_backends_says_of_each_what_it_is_and_whether_it_works(site: Site) -> None:
    text = site.run("backends").stdout
    assert "noop (gdsfw-core 0.1.0): usable" in text
    data = json.loads(site.run("backends", "--json").stdout)
    noop = next(entry for entry in data["backends"] if entry["name"] == "noop")
    assert noop["usable"] is True
    assert noop["memory"] == ["host"]
    assert noop["io_paths"][0]["name"] == "noop"


PROBED = """
from gdsfw import hookimpl
from gdsfw.backend import BackendInfo, Check, Device, IOPathInfo

@hookimpl
def gdsfw_backend():
    return BackendInfo("tape", "a tape", "1.0", (IOPathInfo("wind", native=False, max_iodepth=0),))

@hookimpl
def gdsfw_probe(directory, host):
    PROBE

@hookimpl
def gdsfw_devices():
    DEVICES

@hookimpl
def gdsfw_alloc(): pass
@hookimpl
def gdsfw_free(): pass
@hookimpl
def gdsfw_io(): pass
"""


def tape(site: Site, *, probe: str = "return []", devices: str = "return []") -> None:
    source = PROBED.replace("PROBE", probe).replace("DEVICES", devices)
    site.distribution("gdsfw-tape", source, entry_points={"tape": "gdsfw_tape"})


def backend_entry(site: Site, name: str) -> Any:
    data = json.loads(site.run("backends", "--json").stdout)
    return next(entry for entry in data["backends"] if entry["name"] == name)


def test_a_failed_check_is_the_reason_why_a_backend_is_not_usable(site: Site) -> None:
    tape(site, probe="return [Check('drive', 'fail', 'no drive', fix='buy one'), Check('tape', 'ok', 'there')]")
    entry = backend_entry(site, "tape")
    assert (entry["usable"], entry["reason"]) == (False, "drive: no drive; buy one")
    assert "tape (gdsfw-tape 1.0): NOT USABLE\n  why not   drive: no drive; buy one" in site.run("backends").stdout


def test_a_check_that_only_blocks_the_direct_way_leaves_a_backend_usable(site: Site) -> None:
    tape(site, probe="return [Check('driver', 'fail', 'absent', blocks_direct=True), Check('x', 'warn', 'old')]")
    assert backend_entry(site, "tape")["usable"] is True


def test_a_probe_that_raises_is_a_reason_and_not_the_end(site: Site) -> None:
    tape(site, probe="raise RuntimeError('jammed')")
    assert backend_entry(site, "tape")["reason"] == "its probe failed: RuntimeError: jammed"


def test_devices_are_listed_by_backend(site: Site) -> None:
    tape(site, devices="return [Device(0, 'Drive', 3 << 30, pci_address='0000:01:00.0', numa_node=1)]")
    assert "tape 0: Drive, 3.0 GiB, PCI 0000:01:00.0, NUMA node 1\n" in site.run("devices").stdout
    (device,) = json.loads(site.run("devices", "tape", "--json").stdout)["devices"]
    assert (device["backend"], device["ordinal"], device["nbytes"]) == ("tape", 0, 3 << 30)


def test_a_backend_that_cannot_list_devices_is_told_apart_from_one_without(site: Site) -> None:
    tape(site, devices="from gdsfw.errors import UnavailableError; raise UnavailableError('no driver')")
    done = site.run("devices")
    assert "tape could not be asked: no driver" in done.stderr
    assert json.loads(site.run("devices", "--json").stdout)["failures"] == [{"backend": "tape", "reason": "no driver"}]
    assert site.run("devices", "tape", code=3).stderr == "error: no driver\n"


def test_without_devices_the_list_says_so(site: Site) -> None:
    assert site.run("devices", "noop").stdout == "no devices: the backends here use host memory only\n"


def test_the_gpu_backends_say_what_is_missing_on_a_machine_without_it(site: Site) -> None:
    installed = {entry["name"]: entry for entry in json.loads(site.run("backends", "--json").stdout)["backends"]}
    for name in {"cufile", "hipfile"} & installed.keys():
        if not Path("/proc/driver/nvidia/version").exists():
            assert installed[name]["usable"] is False
            assert installed[name]["reason"]
