"""A volume held against what a vendor's file library can reach directly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gdsfw.backend import Check

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gdsfw.doctor.volume import Layer, Volume


@dataclass(frozen=True)
class StorageRules:
    """What a vendor documents.

    Args:
        backend: name that the ids of the checks begin with.
        local: file systems on local devices that can be direct.
        remote: file systems without a block device that can be direct, and what each needs of its mount options.
        layers: kinds of Layer that may lie above the physical device.
        devices: kinds of physical device.
        raid_levels: levels of a software RAID that may.
    """

    backend: str
    local: frozenset[str]
    remote: Mapping[str, str]
    layers: frozenset[str]
    devices: frozenset[str]
    raid_levels: frozenset[str] = frozenset()

    def accepts(self, layer: Layer) -> bool:
        """Whether a layer keeps the path direct."""
        if layer.kind == "md":
            return layer.detail in self.raid_levels
        return layer.kind in self.layers or layer.kind in self.devices


def storage_checks(rules: StorageRules, volume: Volume) -> list[Check]:
    """File system, journal and block devices by these rules."""
    if volume.mount is None:
        return [Check("storage", "unknown", "the mount is not known", id=f"{rules.backend}.filesystem")]
    found = [_file_system(rules, volume)]
    if volume.mount.filesystem not in rules.remote:
        found.append(_devices(rules, volume))
    return found


def _file_system(rules: StorageRules, volume: Volume) -> Check:
    mount = volume.mount
    assert mount is not None
    name = f"{rules.backend}.filesystem"
    needed = ", ".join([*sorted(rules.local), *(f"{kind} {option}".strip() for kind, option in rules.remote.items())])
    verify = f"findmnt -T {mount.point}"
    option = rules.remote.get(mount.filesystem)
    if mount.filesystem in rules.local or option == "" or (option and option in mount.options):
        data = next((one for one in mount.options if one.startswith("data=")), "data=ordered")
        if mount.filesystem == "ext4" and data != "data=ordered":
            return Check(
                "journal", "fail", data, "data=ordered", "the file library takes ext4 in ordered mode only", verify,
                f"unmount {mount.point} and mount it with data=ordered", True, f"{rules.backend}.filesystem", 60,
            )  # fmt: skip
        return Check("file system for direct I/O", "ok", mount.filesystem, needed, verify=verify, id=name)
    seen = f"{mount.filesystem} without {option}" if option else mount.filesystem
    return Check(
        "file system for direct I/O", "fail", seen, needed, "the file library bounces on other file systems", verify,
        "use a directory on one of these file systems", True, name, 60,
    )  # fmt: skip


def _devices(rules: StorageRules, volume: Volume) -> Check:
    name, verify = f"{rules.backend}.block_stack", "lsblk --inverse"
    if not volume.layers:
        return Check("devices for direct I/O", "unknown", "no block device is seen below the mount", id=name)
    wrong = next((layer for layer in volume.layers if not rules.accepts(layer)), None)
    if wrong is None:
        return Check("devices for direct I/O", "ok", volume.describe(), verify=verify, id=name)
    what = f"{wrong.name} ({wrong.kind}{' ' + wrong.detail if wrong.detail else ''})"
    seen = f"{what} in {volume.describe()}" if len(volume.layers) > 1 else what
    needed = ", ".join(sorted(rules.devices | rules.layers) + [f"md {level}" for level in sorted(rules.raid_levels)])
    return Check(
        "devices for direct I/O", "fail", seen, needed,
        "this layer hides the physical device from the GPU's driver", verify,
        "put the file system on a partition of a device that can be reached directly", True, name, 65,
    )  # fmt: skip
