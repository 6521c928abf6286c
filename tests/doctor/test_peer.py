"""What lies between a GPU and peer-to-peer transfers, on trees that differ in one thing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from doctor.trees import expand, load
from gdsfw.backend import Check
from gdsfw.doctor.recording import RecordingHost
from gdsfw.doctor.volume import volume_of
from gdsfw.gpu.checks import pci
from gdsfw.host import Host
from gdsfw_cufile import peer
from gdsfw_cufile import probe as cufile
from gdsfw_hipfile import probe as hipfile
from gdsfw_hipfile.pieces import RUNTIME

ADDRESS = "0000:07:00.0"
GPU = f"/sys/devices/pci0000:00/0000:00:01.0/0000:05:00.0/0000:06:00.0/{ADDRESS}"
PROPRIETARY = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  {}  Release Build"


def tree(root: Path, name: str, **files: str) -> Host:
    """A machine of the fixtures with some files changed."""
    machine = load(name)
    machine["files"] = {**machine.get("files", {}), **{place: files[place] for place in files}}
    expand(machine, root)
    return Host(root, live=False)


def finding(checks: list[Check], name: str) -> Check:
    (found,) = [check for check in checks if check.id == name]
    return found


@pytest.mark.parametrize(
    ("lines", "nbytes"),
    [
        # A 32-bit BAR0 and a 64-bit BAR1 after it; a 64-bit BAR0 takes two lines; an H200 in a virtual machine.
        (["0xd0000000 0xd0ffffff 0x40200", "0x38000000000 0x39fffffffff 0x14220c"], 128 << 30),
        (["0x1000 0x1fff 0x14220c", "0x0 0x0 0x0", "0x100000000000 0x103fffffffff 0x14220c"], 256 << 30),
        (["0x0 0x0 0x0", "nothing", ""], 0),
    ],
)
def test_the_largest_bar_counts_whatever_its_number(tmp_path: Path, lines: list[str], nbytes: int) -> None:
    host = tree(tmp_path, "dgx", **{f"{GPU}/resource": "\n".join(lines)})
    (gpu,) = pci.gpus(host, cufile.VENDOR_ID)
    assert pci.bar_bytes(host, gpu) == nbytes


def test_what_is_free_of_a_bar_decides_where_it_is_known(tmp_path: Path) -> None:
    host = tree(tmp_path, "dgx")
    found = pci.gpus(host, cufile.VENDOR_ID)
    (roomy,) = pci.bar_checks(host, "cufile", "BAR1", found, 1 << 30, "", {ADDRESS: 2 << 30})
    (full,) = pci.bar_checks(host, "cufile", "BAR1", found, 1 << 30, "", {ADDRESS: 280 << 20})
    assert (roomy.state, full.state) == ("ok", "warn")
    assert "280 MiB free" in full.seen


@pytest.mark.parametrize(("limit_kb", "state"), [(33554432, "ok"), (1 << 38, "warn")])
def test_a_pinned_limit_beyond_the_bar_is_said(tmp_path: Path, limit_kb: int, state: str) -> None:
    settings = f'{{"properties": {{"max_device_pinned_mem_size_kb": {limit_kb}}}}}'
    host = tree(tmp_path, "dgx", **{"/etc/cufile.json": settings})
    assert finding(cufile.probe(Path("/raid/data"), host), "cufile.pinned").state == state


def test_the_proprietary_module_is_told_from_the_open_one(tmp_path: Path) -> None:
    host = tree(tmp_path, "dgx", **{"/proc/driver/nvidia/version": PROPRIETARY.format("580.82.07")})
    assert finding(peer.module_check(host), "cufile.kernel_module").state == "warn"


def test_the_open_module_is_what_is_needed(tmp_path: Path) -> None:
    host = tree(tmp_path, "dgx")
    assert finding(peer.module_check(host), "cufile.kernel_module").state == "ok"
    assert peer.driver_of(host) == ("580.82.07", True)


@pytest.mark.parametrize(
    ("place", "text", "lacks"),
    [
        ("/proc/kallsyms", "0 T nothing", "PCI P2PDMA in the kernel"),
        ("/proc/driver/nvidia/version", PROPRIETARY.format("580.82.07"), "the open kernel module"),
        ("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54", "565"),
        ("/proc/driver/nvidia/params", 'RegistryDwords: "RMForceStaticBar1=1;"', "RmForceDisableIomapWC=1"),
        ("/sys/module/nvme_core/parameters/multipath", "Y", "multipath=N"),
    ],
)
def test_each_thing_that_p2pdma_lacks_is_named(tmp_path: Path, place: str, text: str, lacks: str) -> None:
    cpu = "processor\t: 0\nvendor_id\t: AuthenticAMD"
    host = tree(tmp_path, "p2pdma", **{"/proc/cpuinfo": cpu, place: text})
    check = peer.setup_check(host, volume_of(host, "/data"), wanted=True)
    assert (check.state, check.blocks_direct) == ("fail", True)
    assert lacks in check.seen
    assert not peer.setup_check(host, volume_of(host, "/data"), wanted=False).blocks_direct


@pytest.mark.parametrize(
    ("driver", "bindings", "state"),
    [("580.82.07", "13.5.0", "ok"), ("575.51.03", "13.0.1", "fail"), ("575.51.03", "12.9.4", "ok")],
)
def test_bindings_newer_than_the_driver_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, driver: str, bindings: str, state: str
) -> None:
    tree(tmp_path, "dgx", **{"/proc/driver/nvidia/version": PROPRIETARY.format(driver)})
    monkeypatch.setattr(peer, "_bindings", lambda: bindings)
    (check,) = peer.pairing_check(Host(tmp_path, live=True))
    assert check.state == state
    if state == "fail":
        assert "580" in check.needed
        assert "cuda12" in check.fix


@pytest.mark.parametrize(("text", "state"), [("x hipAmdFileRead hipAmdFileWrite", "ok"), ("hipAmdFileRead", "fail")])
def test_the_runtime_must_have_its_part_of_ais(tmp_path: Path, text: str, state: str) -> None:
    (place, *_) = RUNTIME.files
    host = tree(tmp_path, "mi300x", **{place: text})
    check = finding(hipfile.probe(Path("/data"), host), "hipfile.runtime_symbols")
    assert (check.state, check.blocks_direct) == (state, state == "fail")


def test_variables_are_recorded_and_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIPFILE_FORCE_COMPAT_MODE", "true")
    monkeypatch.setenv("CUFILE_ENV_PATH_JSON", "/home/alice/cufile.json")
    recording = RecordingHost(str(tmp_path))
    hipfile.probe(tmp_path, recording)
    cufile.probe(tmp_path, recording)
    kept: Any = recording.recording.variables
    assert kept["CUFILE_ENV_PATH_JSON"] == "/home/user/cufile.json"
    (tmp_path / "gdsfw-environment").write_text("".join(f"{name}={value}\n" for name, value in kept.items()))
    again = hipfile.probe(Path("/"), Host(tmp_path, live=False))
    assert finding(again, "hipfile.settings").blocks_direct


def test_nothing_is_asked_of_drivers_unless_probes_may() -> None:
    """A result's checks and `gdsfw backends` read files only; the doctor's processes may ask."""
    assert peer.attribute_check(Host()) == []
    assert Host(asks=True, live=False).asks is False
