"""The kernel's part in peer-to-peer transfers: P2PDMA, IOMMU, ACS."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gdsfw.backend import Check

if TYPE_CHECKING:
    from gdsfw.host import Host

_DEVICES = "/sys/bus/pci/devices"
#: Extended capability Access Control Services, its bits for request and completion redirect (PCIe base spec 7.7.11).
_ACS_ID, _ACS_CONTROL, _ACS_REDIRECT = 0x0D, 6, 0x0C


def p2pdma(host: Host) -> bool | None:
    """Whether the kernel has PCI P2PDMA; None when nothing tells."""
    release = host.read("/proc/sys/kernel/osrelease") or ""
    text = host.read(f"/boot/config-{release}")
    if text is not None:
        return "CONFIG_PCI_P2PDMA=y" in text
    return host.has_word("/proc/kallsyms", "pci_p2pdma_")


def p2pdma_check(host: Host, backend: str, *, needed: bool) -> Check:
    """The finding.

    Args:
        needed: without it nothing is direct on this backend.
    """
    have = p2pdma(host)
    name, verify = f"{backend}.p2pdma", "grep PCI_P2PDMA /boot/config-$(uname -r)"
    if have is None:
        return Check("PCI P2PDMA", "unknown", "no kernel configuration or symbols to read", verify=verify, id=name)
    if have:
        return Check("PCI P2PDMA", "ok", "in the kernel", verify=verify, id=name)
    return Check(
        "PCI P2PDMA", "fail" if needed else "warn", "not in the kernel", "CONFIG_PCI_P2PDMA=y",
        "the kernel cannot send a device's data to another device's memory", verify,
        "boot a kernel that has it (the distribution's newest)", needed, name, 45,
    )  # fmt: skip


def iommu_check(host: Host, backend: str) -> Check:
    """Whether an IOMMU translates peer-to-peer traffic."""
    name, verify = f"{backend}.iommu", "ls /sys/class/iommu; cat /sys/kernel/iommu_groups/*/type | sort | uniq -c"
    if not host.listdir("/sys/class/iommu"):
        return Check("IOMMU", "ok", "off, or not seen from here", verify=verify, id=name)
    groups = host.listdir("/sys/kernel/iommu_groups")
    types = {host.read(f"/sys/kernel/iommu_groups/{group}/type") or "?" for group in groups}
    if types <= {"identity"}:
        return Check("IOMMU", "ok", "on, in pass-through", verify=verify, id=name)
    return Check(
        "IOMMU", "warn", f"on, translating ({', '.join(sorted(types))})", "off or in pass-through",
        "peer-to-peer traffic goes up to the root complex, or is refused", verify,
        "boot with iommu=pt (or switch the IOMMU off in the firmware)", id=name,
    )  # fmt: skip


def acs_check(host: Host, backend: str, addresses: tuple[str, ...]) -> Check:
    """Whether bridges above these functions redirect peer-to-peer traffic upwards."""
    name, verify = f"{backend}.acs", "sudo lspci -vvv | grep ACSCtl"
    bridges = {
        part
        for address in addresses
        for part in (host.resolve(f"{_DEVICES}/{address}") or "").split("/")[:-1]
        if host.exists(f"{_DEVICES}/{part}")
    }
    states = {bridge: redirects(host.read_bytes(f"{_DEVICES}/{bridge}/config")) for bridge in sorted(bridges)}
    redirecting = [bridge for bridge, state in states.items() if state]
    if redirecting:
        return Check(
            "ACS", "warn", f"redirect is on at {', '.join(redirecting)}", "SrcValid only",
            "the switch sends peer-to-peer traffic up to the CPU", verify,
            "switch ACS off in the firmware, or boot with pci=disable_acs_redir=...", id=name,
        )  # fmt: skip
    if any(state is None for state in states.values()):
        return Check(
            "ACS", "unknown", "not shown: root may read it, unless the platform hides it", verify=verify, id=name
        )
    return Check("ACS", "ok", "no redirect" if states else "no bridge above the devices", verify=verify, id=name)


def redirects(config: bytes) -> bool | None:
    """Whether a function's configuration space has ACS redirect on; None when the extended part is not shown."""
    if len(config) < 4096:
        return None
    at, left = 0x100, 48
    while at and left:
        header = int.from_bytes(config[at : at + 4], "little")
        if header & 0xFFFF == _ACS_ID:
            return bool(config[at + _ACS_CONTROL] & _ACS_REDIRECT)
        at, left = header >> 20, left - 1
    return False
