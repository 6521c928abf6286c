"""Checks of what lies between a GPU and peer-to-peer transfers: kernel module, versions, BAR1, attributes, settings."""

from __future__ import annotations

import re
from importlib import metadata
from typing import TYPE_CHECKING

from gdsfw.backend import Check
from gdsfw.gpu.checks import kernel, pci

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gdsfw.backend import State
    from gdsfw.doctor.volume import Volume
    from gdsfw.host import Host

_VERSION = "/proc/driver/nvidia/version"
_PARAMETERS = "/proc/driver/nvidia/params"
_MULTIPATH = "/sys/module/nvme_core/parameters/multipath"
#: GPUDirect Storage's troubleshooting guide, "NVMe P2PDMA": static BAR1 and no write combining, on x86 only.
_REGISTRY = ("RMForceStaticBar1=1", "RmForceDisableIomapWC=1")
#: The same guide: open kernel module of branch 565 or newer.
_LEAST_BRANCH = 565
#: Oldest driver branch on Linux by major version of CUDA (CUDA release notes, "minor version compatibility").
_BRANCHES = {12: 525, 13: 580}
_SMALL_BAR = 1 << 30


def driver_of(host: Host) -> tuple[str, bool] | None:
    """Version of the kernel module, and whether it is the open one; None when nothing tells."""
    text = (host.read(_VERSION) or "").partition("\n")[0]
    found = re.search(r"\b(\d{3,}(?:\.\d+)+)\b", text)
    return (found[1], "Open Kernel Module" in text) if found else None


def module_check(host: Host) -> list[Check]:
    """The kernel module: nvidia-fs from 2.17.5 on and P2PDMA need the open one."""
    found = driver_of(host)
    if found is None:
        return []
    version, is_open = found
    seen = f"{version}, {'open' if is_open else 'proprietary'} kernel module"
    return [
        Check(
            "kernel module", "ok" if is_open else "warn", seen, "the open kernel module",
            "" if is_open else "nvidia-fs from 2.17.5 on and PCI P2PDMA work with the open module only",
            f"cat {_VERSION}", "" if is_open else "apt install nvidia-open (the driver's open kernel modules)",
            id="cufile.kernel_module",
        )
    ]  # fmt: skip


def setup_check(host: Host, volume: Volume, *, wanted: bool) -> Check:
    """What cuFile's PCI P2PDMA mode needs beside the kernel.

    Args:
        wanted: it is switched on and is the only way that could be direct, so what lacks keeps it from that.
    """
    lacks = _lacking(host, volume)
    name, verify = "cufile.p2pdma_setup", f"cat {_PARAMETERS} {_MULTIPATH} {_VERSION}"
    if not lacks:
        return Check("set-up for P2PDMA", "ok", "nothing that shows is lacking", verify=verify, id=name)
    state: State = "fail" if wanted else "warn"
    return Check(
        "set-up for P2PDMA", state, f"lacking: {'; '.join(lacks)}",
        "open module 565 or newer; on x86 static BAR1 without write combining; no NVMe multipath",
        "CUFILE_USE_PCIP2PDMA has no effect without all of it", verify,
        f'options nvidia NVreg_RegistryDwords="{";".join(_REGISTRY)};" and options nvme_core multipath=N '
        "in /etc/modprobe.d, update-initramfs -u, reboot", wanted, name, 50,
    )  # fmt: skip


def _lacking(host: Host, volume: Volume) -> list[str]:
    lacks = []
    if not kernel.p2pdma(host):
        lacks.append("PCI P2PDMA in the kernel")
    found = driver_of(host)
    if found is not None and (not found[1] or int(found[0].split(".")[0]) < _LEAST_BRANCH):
        lacks.append(f"the open kernel module, {_LEAST_BRANCH} or newer")
    parameters = host.read(_PARAMETERS)
    if parameters is not None and "vendor_id" in (host.read("/proc/cpuinfo") or "vendor_id"):  # x86 only
        lacks += [one for one in _REGISTRY if one.lower() not in parameters.lower()]
    if any(layer.kind.startswith("nvme") for layer in volume.layers) and host.read(_MULTIPATH) == "Y":
        lacks.append("nvme_core multipath=N")
    return lacks


def pairing_check(host: Host) -> list[Check]:
    """Driver against cuda-bindings and libcufile; what libraries say of themselves decides nothing else here."""
    driver = driver_of(host)
    bindings = _bindings() if host.live else None
    if driver is None or bindings is None:
        return []
    branch, major = int(driver[0].split(".")[0]), int(bindings.split(".")[0])
    least = _BRANCHES.get(major, 0)
    library = _library(host)
    seen = f"driver {driver[0]}, cuda-bindings {bindings}" + (f", libcufile {library}" if library else "")
    name, verify = "cufile.versions", "nvidia-smi; pip list | grep cuda"
    if branch >= least:
        return [Check("versions", "ok", seen, verify=verify, id=name)]
    return [
        Check(
            "versions", "fail", seen, f"driver {least} or newer for CUDA {major}",
            "the driver does not know the functions that these bindings and their library ask for", verify,
            f"install driver {least} or newer, or pip install 'gdsfw-cufile[cuda{major - 1}]'", True, name, 25,
        )
    ]  # fmt: skip


def _bindings() -> str | None:
    try:
        return metadata.version("cuda-bindings")
    except metadata.PackageNotFoundError:
        return None


def _library(host: Host) -> str | None:
    """Version in the name of the library that the toolkit's link leads to."""
    found = re.search(r"\.so\.(\d+\.\d+(?:\.\d+)*)$", host.resolve("/usr/local/cuda/lib64/libcufile.so.0") or "")
    return found[1] if found else None


def bar_checks(host: Host, found: Sequence[pci.PciFunction], settings: Mapping[str, object]) -> list[Check]:
    """Size and free part of BAR1, and whether the limit on pinned memory fits it."""
    verify = "nvidia-smi -q -d MEMORY | grep -A3 BAR1"
    checks = pci.bar_checks(host, "cufile", "BAR1", found, _SMALL_BAR, verify, _free(host, found))
    limit = settings.get("max_device_pinned_mem_size_kb")
    sizes = [size for gpu in found if (size := pci.bar_bytes(host, gpu))]
    if isinstance(limit, int) and sizes:
        # The library pins through BAR1; a larger limit is never reached, registration fails before.
        fits = limit * 1024 <= min(sizes)
        problem = "" if fits else "registration fails when BAR1 is full, before the limit is reached"
        checks.append(
            Check(
                "pinned memory", "ok" if fits else "warn",
                f"limit of {limit >> 10} MiB, BAR1 of {min(sizes) >> 20} MiB", "a limit within BAR1", problem,
                "grep -n max_device_pinned_mem_size_kb /etc/cufile.json",
                "" if fits else "lower properties.max_device_pinned_mem_size_kb in cufile.json",
                id="cufile.pinned",
            )
        )  # fmt: skip
    return checks


def _free(host: Host, found: Sequence[pci.PciFunction]) -> dict[str, int]:
    """Free bytes of BAR1 by PCI address, from NVML; empty where it may not or cannot be asked."""
    if not host.asks or not found:
        return {}
    try:
        from cuda.bindings import nvml

        nvml.init_v2()
    except Exception:  # absent in older bindings; the library may be absent too, or the driver not loaded
        return {}
    free = {}
    try:
        for gpu in found:
            handle = nvml.device_get_handle_by_pci_bus_id_v2(gpu.address)
            free[gpu.address] = int(nvml.device_get_bar1_memory_info(handle).bar1_free)
    except Exception:  # a device in another container, or one that has no BAR1
        return free
    finally:
        nvml.shutdown()
    return free


def attribute_check(host: Host) -> list[Check]:
    """What the driver says that each visible GPU can do."""
    if not host.asks:
        return []
    try:
        seen = _attributes()
    except Exception as error:  # no driver, no device, no bindings: checks of their own say so
        return [Check("GPU attributes", "unknown", f"the driver does not tell: {error}", id="cufile.attributes")]
    cannot = [f"GPU {ordinal}" for ordinal, (rdma, _) in enumerate(seen) if not rdma]
    listed = "; ".join(
        f"GPU {ordinal}: GPUDirect RDMA {'yes' if rdma else 'no'}, DMA-BUF {'yes' if dma_buf else 'no'}"
        for ordinal, (rdma, dma_buf) in enumerate(seen)
    )
    verify = "python -c 'from cuda.bindings import driver' and cuDeviceGetAttribute; nvidia-smi -q"
    if not cannot:
        return [Check("GPU attributes", "ok", listed or "no GPU is visible", verify=verify, id="cufile.attributes")]
    state: State = "fail" if len(cannot) == len(seen) else "warn"
    return [
        Check(
            "GPU attributes", state, listed, "GPUDirect RDMA",
            "other devices cannot reach this GPU's memory: nothing is direct", verify,
            "use a data centre or workstation GPU on which the driver supports GPUDirect", state == "fail",
            "cufile.attributes", 42,
        )
    ]  # fmt: skip


def _attributes() -> list[tuple[bool, bool]]:
    """GPUDirect RDMA and DMA-BUF for each visible device; no context is made."""
    from cuda.bindings import driver

    def ask(result: tuple[object, ...]) -> object:
        if result[0] != driver.CUresult.CUDA_SUCCESS:
            raise RuntimeError(str(result[0]))
        return result[1] if len(result) > 1 else None

    which = driver.CUdevice_attribute
    ask(driver.cuInit(0))
    count = ask(driver.cuDeviceGetCount())
    assert isinstance(count, int)
    found = []
    for ordinal in range(count):
        device = ask(driver.cuDeviceGet(ordinal))
        rdma = ask(driver.cuDeviceGetAttribute(which.CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, device))
        dma_buf = ask(driver.cuDeviceGetAttribute(which.CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, device))
        found.append((bool(rdma), bool(dma_buf)))
    return found
