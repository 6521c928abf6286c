"""Checks of a machine for cuFile: nvidia-fs and what it is hooked into, settings, storage, PCI Express."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from gdsfw.backend import Check
from gdsfw.doctor.volume import Volume, volume_of
from gdsfw.gpu.checks import kernel, pci
from gdsfw.gpu.checks.storage import StorageRules, storage_checks

from gdsfw_cufile import configuration, peer

if TYPE_CHECKING:
    from gdsfw.host import Host

VENDOR_ID = "0x10de"
FOLDER = "/proc/driver/nvidia-fs"
#: Guide to GPUDirect Storage: ext4 in ordered mode and xfs on NVMe, software RAID 0 of it; RDMA file systems.
RULES = StorageRules(
    "cufile",
    local=frozenset({"ext4", "xfs"}),
    remote={"nfs": "proto=rdma", "nfs4": "proto=rdma", "lustre": "", "wekafs": "", "gpfs": "", "beegfs": ""},
    layers=frozenset({"partition"}),
    devices=frozenset({"nvme", "nvme-multipath"}),
    raid_levels=frozenset({"raid0"}),
)
#: What nvidia-fs calls the drivers that it hooks into, by file system; block devices are NVMe's.
HOOKS = {"nfs": "rpcrdma", "nfs4": "rpcrdma", "lustre": "lnet", "wekafs": "wekafsio", "gpfs": "ibm_scale"}


def probe(directory: Path, host: Host) -> list[Check]:
    """Everything beside the pieces."""
    volume = volume_of(host, str(directory.absolute()) if host.live else str(directory))
    settings = _settings(host)
    found = pci.gpus(host, VENDOR_ID)
    ends = tuple(gpu.address for gpu in found) + volume.pci
    return [
        *configuration.probe(host),
        *_compat(settings),
        *_disabled(settings),
        *_nvidia_fs(host, volume, settings),
        *storage_checks(RULES, volume),
        *_udev(host, volume),
        *peer.module_check(host),
        *peer.pairing_check(host),
        kernel.p2pdma_check(host, RULES.backend, needed=False),
        peer.setup_check(host, volume, wanted=_only_by_kernel(host, settings)),
        *peer.attribute_check(host),
        *pci.virtual_functions(host, RULES.backend, found, ()),
        *peer.bar_checks(host, found, settings),
        *pci.path_checks(host, RULES.backend, found, volume.pci),
        *pci.link_checks(host, RULES.backend, ends),
        kernel.iommu_check(host, RULES.backend),
        kernel.acs_check(host, RULES.backend, ends),
    ]


def _settings(host: Host) -> dict[str, object]:
    """The configuration in force, flat; variables of this process come before the file."""
    named = host.variable(configuration.VARIABLE)
    text = host.read(named or configuration.DEFAULT) or "{}"
    bare = re.sub(r'("(?:\\.|[^"\\\n])*")|//[^\n]*', lambda match: match[1] or "", text)
    try:
        document = json.loads(bare)
    except ValueError:
        document = {}
    sections = document if isinstance(document, dict) else {}
    flat: dict[str, object] = {}
    for section in ("properties", "execution"):
        values = sections.get(section)
        flat.update(values if isinstance(values, dict) else {})
    names = {
        "CUFILE_ALLOW_COMPAT_MODE": "allow_compat_mode",
        "CUFILE_FORCE_COMPAT_MODE": "force_compat_mode",
        "CUFILE_USE_PCIP2PDMA": "use_pci_p2pdma",
    }
    for variable, key in names.items():
        if (value := host.variable(variable)) is not None:
            flat[key] = value.lower() in ("1", "true")
    return flat


def _only_by_kernel(host: Host, settings: dict[str, object]) -> bool:
    """Whether PCI P2PDMA is switched on and nvidia-fs is not there."""
    return settings.get("use_pci_p2pdma") is True and not host.exists(FOLDER)


def _compat(settings: dict[str, object]) -> list[Check]:
    if settings.get("force_compat_mode") is True:
        return [
            Check(
                "compatibility mode", "fail", "forced", "not forced", "cuFile bounces everything through host memory",
                "grep -n compat /etc/cufile.json; env | grep CUFILE_", "unset CUFILE_FORCE_COMPAT_MODE",
                True, "cufile.compat", 30,
            )
        ]  # fmt: skip
    return [Check("compatibility mode", "ok", "not forced", id="cufile.compat")]


def _disabled(settings: dict[str, object]) -> list[Check]:
    """Settings that switch calls off: the stream calls' thread pool is off unless the file says otherwise."""
    threads = settings.get("max_io_threads")
    if isinstance(threads, int) and threads > 0:
        return []
    return [
        Check(
            "thread pool", "warn", f"max_io_threads is {threads if threads is not None else 'not set'}",
            "execution.max_io_threads above 0", "older libraries refuse or serialise stream calls without it",
            "grep -n max_io_threads /etc/cufile.json", "set max_io_threads (and parallel_io) in cufile.json",
            id="cufile.threads",
        )
    ]  # fmt: skip


def _nvidia_fs(host: Host, volume: Volume, settings: dict[str, object]) -> list[Check]:
    version = host.read(f"{FOLDER}/version")
    stats = host.read(f"{FOLDER}/stats")
    by_kernel = settings.get("use_pci_p2pdma") is True
    if version is None and stats is None and not host.exists(FOLDER):
        if by_kernel and kernel.p2pdma(host):
            return [Check("nvidia-fs", "ok", "absent; PCI P2PDMA is switched on instead", id="cufile.nvidia_fs")]
        return [
            Check(
                "nvidia-fs", "fail", f"not loaded ({FOLDER} is absent)", "the module, or CUFILE_USE_PCIP2PDMA=true",
                "cuFile bounces through host memory, and says so in its log only", "lsmod | grep nvidia_fs",
                "apt install nvidia-fs-dkms && modprobe nvidia-fs; or, from CUDA 12.8 on, CUFILE_USE_PCIP2PDMA=true",
                True, "cufile.nvidia_fs", 20,
            )
        ]  # fmt: skip
    seen = re.search(r"NVFS Driver\(version: ([\d.]+)\)", stats or "")
    text = seen[1] if seen else (version or "loaded").replace("\n", " ")
    return [
        Check("nvidia-fs", "ok", f"loaded, {text}", verify="lsmod | grep nvidia_fs", id="cufile.nvidia_fs"),
        _hook(host, volume, by_kernel),
        _counters(stats),
    ]


def _hook(host: Host, volume: Volume, by_kernel: bool) -> Check:
    """The module must be registered with the driver of the storage: loaded alone it moves nothing."""
    text = host.read(f"{FOLDER}/modules")
    wanted = HOOKS.get(volume.mount.filesystem, "nvme") if volume.mount is not None else "nvme"
    verify = f"cat {FOLDER}/modules"
    if text is None:
        return Check("nvidia-fs hook", "unknown", f"{FOLDER}/modules cannot be read", verify=verify, id="cufile.hook")
    hooked = re.findall(r"^\s*(\S+?)\s*:", text, re.MULTILINE)
    if wanted in hooked:
        return Check("nvidia-fs hook", "ok", f"hooked into {', '.join(hooked)}", verify=verify, id="cufile.hook")
    seen = f"hooked into {', '.join(hooked)}" if hooked else "hooked into nothing"
    return Check(
        "nvidia-fs hook", "warn" if by_kernel else "fail", seen, wanted,
        f"the running {wanted} driver has no entry for nvidia-fs, so its transfers bounce",
        f"{verify}; grep register_nvfs_dma_ops /proc/kallsyms",
        "install the driver that exports it (MLNX_OFED or DOCA with --with-nvmf, or linux-nvidia's), then reload "
        "the driver and nvidia-fs; or set CUFILE_USE_PCIP2PDMA=true", not by_kernel, "cufile.hook", 70,
    )  # fmt: skip


def _counters(stats: str | None) -> Check:
    verify = f"cat {FOLDER}/stats"
    if stats is None:
        return Check("nvidia-fs counters", "unknown", "not readable", verify=verify, id="cufile.counters")
    lines = [line for line in stats.splitlines() if re.match(r"(IO stats|Reads|Writes|GPU )", line)]
    pinned = re.findall(r"max_pinned_Mi?B=(\d+)", stats)
    seen = "; ".join(" ".join(line.split()) for line in lines if not line.startswith("GPU "))
    if pinned:
        seen += f"; most pinned on a GPU {max(map(int, pinned))} MiB"
    if "IO stats: Disabled" in stats:
        return Check(
            "nvidia-fs counters", "warn", seen, "IO stats: Enabled",
            "zero counters prove nothing while they are off", verify,
            "echo 1 > /sys/module/nvidia_fs/parameters/rw_stats_enabled", id="cufile.counters",
        )  # fmt: skip
    return Check("nvidia-fs counters", "ok", seen or "read", verify=verify, id="cufile.counters")


def _udev(host: Host, volume: Volume) -> list[Check]:
    """cuFile asks udev for the volume, and refuses its files (5027, 5030) where there is no record."""
    if volume.mount is None or not volume.layers:
        return []
    place = f"/run/udev/data/b{volume.mount.device}"
    if "E:ID_FS_USAGE=" in (host.read(place) or ""):
        return [Check("udev record for cuFile", "ok", place, id="cufile.udev")]
    return [
        Check(
            "udev record for cuFile", "fail", f"{place} is absent or has no ID_FS_USAGE", "ID_FS_USAGE, ID_FS_TYPE",
            "cuFileHandleRegister fails with 5027 or 5030, even in compatibility mode",
            f"udevadm info --query=property --name=/dev/block/{volume.mount.device}",
            "in a container: bind-mount the host's /run/udev read-only; on a host: start udevd, then udevadm trigger",
            True, "cufile.udev", 35,
        )
    ]  # fmt: skip
