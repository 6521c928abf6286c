"""The volume below a directory: its mount, and the block devices under it down to the physical ones."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gdsfw.storage.filesystems import Mount, mounts

if TYPE_CHECKING:
    from gdsfw.host import Host

PCI_ADDRESS = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
#: Deeper stacks than this are loops of a damaged recording.
_DEEPEST = 16
_MAPPER_KINDS = {"LVM": "lvm", "CRYPT": "crypt", "mpath": "multipath", "DMRAID": "dmraid"}


@dataclass(frozen=True)
class Layer:
    """One block device of a stack.

    Args:
        kind: partition, lvm, crypt, multipath, dm, md, loop, nvme, nvme-multipath, or the driver's way of naming disks.
        detail: level of a RAID, transport of an NVMe device, file behind a loop device.
        path: its folder in /sys.
    """

    name: str
    kind: str
    detail: str
    path: str


@dataclass(frozen=True)
class Volume:
    """What lies below a directory.

    Args:
        layers: from the mounted device down; several physical devices follow each other.
        pci: addresses of the PCI functions that the physical devices hang on.
    """

    mount: Mount | None
    layers: tuple[Layer, ...] = ()
    pci: tuple[str, ...] = ()

    def describe(self) -> str:
        """One line, outermost first."""
        return " > ".join(
            f"{layer.name} ({layer.kind}{' ' + layer.detail if layer.detail else ''})" for layer in self.layers
        )


def volume_of(host: Host, directory: str) -> Volume:
    """The volume of `directory`, an absolute path on the machine of `host`."""
    mount = _mount(host, directory)
    if mount is None:
        return Volume(None)
    start = _device_folder(host, mount)
    layers: list[Layer] = []
    if start is not None:
        _walk(host, start, layers)
    found = [address for layer in layers for address in _addresses(host, layer)]
    return Volume(mount, tuple(layers), tuple(dict.fromkeys(found)))


def _mount(host: Host, directory: str) -> Mount | None:
    try:
        listed = mounts(host.read("/proc/self/mountinfo") or "")
    except (ValueError, IndexError):
        return None
    real = os.path.realpath(directory) if host.live else os.path.normpath(directory)
    fitting = [one for one in listed if one.point == "/" or real == one.point or real.startswith(one.point + "/")]
    longest = max((len(one.point) for one in fitting), default=0)
    return next((one for one in reversed(fitting) if len(one.point) == longest), None)


def _device_folder(host: Host, mount: Mount) -> str | None:
    """The mounted device in /sys; by its source where the file system has a number of its own (btrfs)."""
    found = host.resolve(f"/sys/dev/block/{mount.device}")
    if found is None and mount.source.startswith("/dev/"):
        found = host.resolve(f"/sys/class/block/{mount.source.rpartition('/')[2]}")
    return found


def _walk(host: Host, path: str, layers: list[Layer]) -> None:
    if len(layers) >= _DEEPEST or any(layer.path == path for layer in layers):
        return
    layer = _layer(host, path)
    layers.append(layer)
    if layer.kind == "partition":
        _walk(host, path.rpartition("/")[0], layers)
        return
    for name in host.listdir(f"{path}/slaves"):
        below = host.resolve(f"/sys/class/block/{name}")
        if below is not None:
            _walk(host, below, layers)


def _layer(host: Host, path: str) -> Layer:
    name = path.rpartition("/")[2]
    if host.exists(f"{path}/partition"):
        return Layer(name, "partition", "", path)
    if host.exists(f"{path}/dm"):
        prefix = (host.read(f"{path}/dm/uuid") or "").partition("-")[0]
        return Layer(name, _MAPPER_KINDS.get(prefix, "dm"), "", path)
    if host.exists(f"{path}/md"):
        return Layer(name, "md", host.read(f"{path}/md/level") or "", path)
    if host.exists(f"{path}/loop"):
        return Layer(name, "loop", "", path)
    if name.startswith("nvme"):
        kind = "nvme-multipath" if len(_controllers(host, path)) > 1 else "nvme"
        return Layer(name, kind, _transport(host, path), path)
    return Layer(name, re.sub(r"[0-9].*", "", "virtio" if "/virtio" in path else name) or name, "", path)


def _controllers(host: Host, path: str) -> list[str]:
    """Folders of the NVMe controllers that lead to a namespace; those of its subsystem with native multipath."""
    parent = path.rpartition("/")[0]
    names = [name for name in host.listdir(parent) if re.fullmatch(r"nvme[0-9]+", name)]
    if names and "nvme-subsys" in parent:
        return [place for name in names if (place := host.resolve(f"{parent}/{name}")) is not None]
    return [parent]


def _transport(host: Host, path: str) -> str:
    for place in _controllers(host, path):
        text = host.read(f"{place}/transport")
        if text:
            return text
    return ""


def _addresses(host: Host, layer: Layer) -> list[str]:
    if layer.kind in ("partition", "lvm", "crypt", "multipath", "dm", "md", "loop"):
        return []
    places = _controllers(host, layer.path) if layer.name.startswith("nvme") else [layer.path]
    return [found[-1] for place in places if (found := PCI_ADDRESS.findall(place))]
