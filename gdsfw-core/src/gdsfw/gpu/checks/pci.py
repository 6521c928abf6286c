"""GPUs as PCI devices: which there are, BAR, virtual functions, links, and the path to storage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gdsfw.backend import Check
from gdsfw.doctor.volume import PCI_ADDRESS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from gdsfw.backend import State
    from gdsfw.host import Host

_DEVICES = "/sys/bus/pci/devices"
#: Base classes of linux/pci_ids.h: display controllers and processing accelerators.
_CLASSES = ("0x03", "0x12")
#: Lines of `resource` that are BARs; the rest are the ROM and bridge windows.
_BARS = 6


@dataclass(frozen=True)
class PciFunction:
    """One function.

    Args:
        path: its folder in /sys/devices, which shows the bridges above it.
        numa_node: -1 when the firmware does not say.
    """

    address: str
    path: str
    device_id: str
    numa_node: int


def gpus(host: Host, vendor_id: str) -> list[PciFunction]:
    """GPUs of one vendor (`0x....` as /sys writes it), by PCI address."""
    found = []
    for address in host.listdir(_DEVICES):
        place = f"{_DEVICES}/{address}"
        if host.read(f"{place}/vendor") == vendor_id and (host.read(f"{place}/class") or "").startswith(_CLASSES):
            found.append(_function(host, address))
    return found


def _function(host: Host, address: str) -> PciFunction:
    place = f"{_DEVICES}/{address}"
    path = host.resolve(place) or place
    text = host.read(f"{place}/numa_node") or "-1"
    node = int(text) if text.lstrip("-").isdigit() else -1
    return PciFunction(address, path, host.read(f"{place}/device") or "", node)


def path_checks(host: Host, backend: str, found: list[PciFunction], storage: tuple[str, ...]) -> list[Check]:
    """For each GPU and each PCI function of the storage: common ancestor, root complex, NUMA node."""
    checks = []
    for gpu in found:
        for address in storage:
            checks.append(_path(backend, gpu, _function(host, address)))
    return checks


def _path(backend: str, gpu: PciFunction, disk: PciFunction) -> Check:
    ours, theirs = (_ancestors(one.path) for one in (gpu, disk))
    common = [one for one, other in zip(ours, theirs, strict=False) if one == other]
    numa = f"NUMA nodes {gpu.numa_node} and {disk.numa_node}"
    name, title = f"{backend}.pcie_path", f"path {gpu.address} to {disk.address}"
    if len(common) > 1:
        return Check(title, "ok", f"common bridge {common[-1]}; {numa}", verify="lspci -tv", id=name)
    near = "the same root complex" if common else "different root complexes"
    across = bool(not common and gpu.numa_node != disk.numa_node)
    return Check(
        title, "warn" if across else "ok", f"{near}, no common bridge; {numa}", "a common PCIe switch",
        "peer-to-peer transfers cross the CPU, which is slower or, on some platforms, refused", "lspci -tv",
        "use a device under the same switch as the GPU, or the GPU that is near the device", id=name,
    )  # fmt: skip


def _ancestors(path: str) -> list[str]:
    """Root complex (`pci0000:00`) and bridges above a function, outermost first."""
    return [part for part in path.split("/")[:-1] if part.startswith("pci") or PCI_ADDRESS.fullmatch(part)]


def link_checks(host: Host, backend: str, addresses: Collection[str]) -> list[Check]:
    """Width and speed of each link against what both ends can do."""
    checks = []
    for address in addresses:
        values = [
            (host.read(f"{_DEVICES}/{address}/{when}_link_{what}") or "")
            for what in ("speed", "width")
            for when in ("current", "max")
        ]
        if not all(values) or values[3] in ("0", "255"):
            continue
        speed, most_speed, width, most_width = values
        seen, needed = f"{speed} x{width}", f"{most_speed} x{most_width}"
        narrow = width.isdigit() and most_width.isdigit() and int(width) < int(most_width)
        state = narrow or speed.split()[:1] != most_speed.split()[:1]
        checks.append(
            Check(
                f"link of {address}", "warn" if state else "ok", seen, needed,
                "a narrow or slow link bounds throughput (an idle GPU may lower its speed)" if state else "",
                f"lspci -s {address} -vv | grep Lnk", "reseat the card, or look at the slot's setting in the firmware",
                id=f"{backend}.pcie_link",
            )
        )  # fmt: skip
    return checks


def bar_bytes(host: Host, gpu: PciFunction) -> int | None:
    """Size of the BAR that other devices reach GPU memory through, the largest of a GPU; None when it is not shown.

    Its number differs: a BAR of 64 bits takes two, so that what a vendor calls the second may be the third line.
    """
    sizes = []
    for line in (host.read(f"{_DEVICES}/{gpu.address}/resource") or "").splitlines()[:_BARS]:
        try:
            first, last = (int(number, 16) for number in line.split()[:2])
        except ValueError:
            continue
        sizes.append(last - first + 1 if last else 0)
    return max(sizes, default=None)


def bar_checks(
    host: Host,
    backend: str,
    called: str,
    found: Sequence[PciFunction],
    least: int,
    verify: str,
    free: Mapping[str, int] | None = None,
) -> list[Check]:
    """Size and free part of each GPU's BAR.

    Args:
        called: what the vendor calls it.
        least: bytes below which no transfer worth the name fits.
        verify: the vendor's command, which tells the free part too.
        free: free bytes by PCI address, of the GPUs whose driver was asked.
    """
    checks = []
    for gpu in found:
        nbytes = bar_bytes(host, gpu)
        title, name = f"{called} of {gpu.address}", f"{backend}.bar"
        if nbytes is None:
            checks.append(Check(title, "unknown", "not shown", verify=verify, id=name))
            continue
        left = (free or {}).get(gpu.address)
        small = nbytes < least or (left is not None and left < least)
        seen = f"{nbytes >> 20} MiB, " + (f"{left >> 20} MiB free" if left is not None else "free part: see verify")
        checks.append(
            Check(
                title, "warn" if small else "ok", seen,
                f"at least {least >> 20} MiB free, and room for all registered buffers",
                "registered buffers and the library's cache share it" if small else "", verify,
                "switch on resizable BAR and above-4G decoding in the firmware; register less at once" if small else "",
                id=name,
            )
        )  # fmt: skip
    return checks


def virtual_functions(host: Host, backend: str, found: list[PciFunction], ids: Collection[str]) -> list[Check]:
    """GPUs that are virtual functions, by their link to the physical one or, inside a guest, by their device id."""
    virtual = [gpu for gpu in found if gpu.device_id in ids or host.exists(f"{_DEVICES}/{gpu.address}/physfn")]
    if not virtual:
        return []
    named = ", ".join(f"{gpu.address} ({gpu.device_id})" for gpu in virtual)
    state: State = "fail" if len(virtual) == len(found) else "warn"
    return [
        Check(
            "virtual function", state, named, "a whole GPU",
            "the driver gives virtual functions no peer-to-peer storage path", "lspci -nn",
            "pass the whole GPU through to the guest", state == "fail", f"{backend}.virtual_function", 40,
        )
    ]  # fmt: skip
