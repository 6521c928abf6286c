"""Checks of a machine for hipFile: AIS in the kernel and the runtime, settings, storage, PCI Express."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from gdsfw.backend import Check
from gdsfw.doctor.volume import volume_of
from gdsfw.gpu.checks import kernel, pci
from gdsfw.gpu.checks.storage import StorageRules, storage_checks

from gdsfw_hipfile.pieces import RUNTIME

if TYPE_CHECKING:
    from gdsfw.host import Host

VENDOR_ID = "0x1002"
#: hipFile's limitations page: a local NVMe device, a partition of it, or LVM on it; NFS over RDMA has a guide.
RULES = StorageRules(
    "hipfile",
    local=frozenset({"ext4", "xfs"}),
    remote={"nfs": "proto=rdma", "nfs4": "proto=rdma"},
    layers=frozenset({"partition", "lvm"}),
    devices=frozenset({"nvme"}),
)
#: Virtual functions of MI210, MI300X, MI308X, MI325X as a guest sees them (amdgpu's list of devices).
VIRTUAL = frozenset({"0x7410", "0x74b5", "0x74b6", "0x74b9", "0x74bd"})
SYMBOL = "kfd_ais_rw_file"
#: What hipFile looks for in the runtime (its source, and ais-check).
RUNTIME_SYMBOLS = ("hipAmdFileRead", "hipAmdFileWrite")
NODES = "/sys/class/kfd/kfd/topology/nodes"
#: Bit of a topology node's `capability` that newer amdgpu sets once AIS is ready on it.
CAPABILITY = 1 << 6
_BOOLEANS = ("HIPFILE_ALLOW_COMPAT_MODE", "HIPFILE_FORCE_COMPAT_MODE", "HIPFILE_UNSUPPORTED_FILE_SYSTEMS")
_SMALL_BAR = 1 << 32


def probe(directory: Path, host: Host) -> list[Check]:
    """Everything beside the pieces."""
    volume = volume_of(host, str(directory.absolute()) if host.live else str(directory))
    found = pci.gpus(host, VENDOR_ID)
    ends = tuple(gpu.address for gpu in found) + volume.pci
    return [
        *_settings(host),
        *_runtime(host),
        _ais(host),
        *_nodes(host),
        kernel.p2pdma_check(host, RULES.backend, needed=True),
        *pci.virtual_functions(host, RULES.backend, found, VIRTUAL),
        *storage_checks(RULES, volume),
        *pci.bar_checks(host, RULES.backend, "BAR", found, _SMALL_BAR, "rocm-smi --showmeminfo vis_vram vram"),
        *pci.path_checks(host, RULES.backend, found, volume.pci),
        *pci.link_checks(host, RULES.backend, ends),
        kernel.iommu_check(host, RULES.backend),
        kernel.acs_check(host, RULES.backend, ends),
    ]


def _settings(host: Host) -> list[Check]:
    """Variables with words that the library ignores, that force the bounce, or that endanger data."""
    checks = []
    for name in _BOOLEANS:
        value = host.variable(name)
        if value is not None and value not in ("true", "false"):
            checks.append(
                Check(
                    name, "warn", value, "true or false", "the library takes any other word as not set",
                    f"echo ${name}", f"export {name}=true", id="hipfile.settings",
                )
            )  # fmt: skip
    if host.variable(_BOOLEANS[1]) == "true":
        checks.append(
            Check(
                _BOOLEANS[1], "fail", "true", "not set", "everything bounces through host memory",
                f"echo ${_BOOLEANS[1]}", f"unset {_BOOLEANS[1]}", True, "hipfile.settings", 30,
            )
        )  # fmt: skip
    if host.variable(_BOOLEANS[2]) == "true":
        checks.append(
            Check(
                _BOOLEANS[2], "warn", "true", "not set",
                "skips the library's check of the file system and can corrupt data", f"echo ${_BOOLEANS[2]}",
                f"unset {_BOOLEANS[2]}", id="hipfile.settings",
            )
        )  # fmt: skip
    return checks or [Check("settings", "ok", "nothing unusual in the environment", id="hipfile.settings")]


def _runtime(host: Host) -> list[Check]:
    """The runtime's own part of AIS: hipFile asks libamdhip64 for these, and bounces where they lack."""
    found = {path: [host.has_word(path, symbol) for symbol in RUNTIME_SYMBOLS] for path in RUNTIME.files}
    shown = {path: have for path, have in found.items() if None not in have}
    if not shown:
        return []
    (path, have), *_ = shown.items()
    verify, both = f"nm -D {path} | grep hipAmdFile", " and ".join(RUNTIME_SYMBOLS)
    if all(have):
        return [
            Check("AIS in the runtime", "ok", ", ".join(RUNTIME_SYMBOLS), verify=verify, id="hipfile.runtime_symbols")
        ]
    return [
        Check(
            "AIS in the runtime", "fail", f"{path} lacks {both}", both,
            "the runtime cannot ask the driver for a transfer between storage and GPU memory", verify,
            "install ROCm 7.2 or newer", True, "hipfile.runtime_symbols", 22,
        )
    ]  # fmt: skip


def _ais(host: Host) -> Check:
    have = host.has_word("/proc/kallsyms", SYMBOL)
    verify = f"grep {SYMBOL} /proc/kallsyms"
    if have is None:
        return Check("AIS in amdgpu", "unknown", "/proc/kallsyms cannot be read", verify=verify, id="hipfile.ais")
    if have:
        return Check("AIS in amdgpu", "ok", f"{SYMBOL} is in the kernel", verify=verify, id="hipfile.ais")
    return Check(
        "AIS in amdgpu", "fail", f"no {SYMBOL} in the kernel", SYMBOL,
        "the driver has no path between storage and GPU memory", verify,
        "apt install amdgpu-dkms from AMD's repository (ROCm 7.2 or newer), then reboot", True, "hipfile.ais", 20,
    )  # fmt: skip


def _nodes(host: Host) -> list[Check]:
    """What newer drivers say of each GPU; older ones leave the bit clear, so a clear bit is no verdict."""
    ready, gpus = 0, 0
    for node in host.listdir(NODES):
        values = dict(re.findall(r"^(\w+) (\d+)$", host.read(f"{NODES}/{node}/properties") or "", re.MULTILINE))
        if int(values.get("simd_count", "0")):
            gpus += 1
            ready += bool(int(values.get("capability", "0")) & CAPABILITY)
    if not gpus:
        return []
    verify = f"grep capability {NODES}/*/properties"
    state = "ok" if ready == gpus else "unknown"
    seen = f"{ready} of {gpus} GPUs have the AIS bit"
    meaning = "" if ready == gpus else "older drivers do not set it; newer ones clear it where AIS could not start"
    return [Check("AIS on the GPUs", state, seen, "the bit on each", meaning, verify, id="hipfile.ais_nodes")]  # type: ignore[arg-type]
