"""The file libraries' own count of transfers for each device, which tells direct ones from those that bounced.

Both vendors' third level of statistics ends with the same array of structures, one for each of up to 16 devices.
"""

from __future__ import annotations

import ctypes as c
from dataclasses import dataclass
from typing import ClassVar

from gdsfw.backend import CacheState, FileHandle, Transport, TransportKind

#: Devices that the statistics have room for.
MOST_DEVICES = 16
#: Room for the whole structure: the larger of the two has 5112 bytes; later versions may have longer ones.
LEVEL_3_BYTES = 1 << 16


class _PerDevice(c.Structure):
    """What both libraries count for each device, in the layout of 2026."""

    _fields_: ClassVar = [
        ("uuid", c.c_char * 16),
        ("read_bytes", c.c_uint64),
        ("read_rates", c.c_uint64 * 3),
        ("reads", c.c_uint64 * 4),  # all, peer-to-peer, kernel driver, bounced
        ("read_kinds", c.c_uint64 * 5),
        ("written_bytes", c.c_uint64),
        ("write_rates", c.c_uint64 * 3),
        ("writes", c.c_uint64 * 4),
        ("write_kinds", c.c_uint64 * 3),
        ("registrations", c.c_uint64 * 5),
    ]


@dataclass(frozen=True)
class Routes:
    """Transfers of this process since the library was opened: direct ones, and those bounced through host memory."""

    direct: int
    bounced: int

    def since(self, before: Routes) -> Routes:
        """What came on top of `before`."""
        return Routes(self.direct - before.direct, self.bounced - before.bounced)


def routes(level3: bytes, start: int) -> Routes:
    """The counts in a third-level structure whose array begins at `start`."""
    direct = bounced = 0
    for number in range(MOST_DEVICES):
        device = _PerDevice.from_buffer_copy(level3, start + number * c.sizeof(_PerDevice))
        for _, peer, driver, posix in (device.reads, device.writes):
            direct += peer + driver
            bounced += posix
    return Routes(direct, bounced)


def verdict(moved: Routes) -> tuple[TransportKind, str]:
    """The way bytes took by the library's own count, and that count as a line of evidence."""
    line = f"the library counted {moved.direct} direct transfers and {moved.bounced} bounced ones"
    if moved.direct and moved.bounced:
        return "unknown", f"{line}: both ways"
    if moved.direct or moved.bounced:
        return ("p2p" if moved.direct else "compat"), line
    return "unknown", f"{line}: it may not count here"


def transport(kind: TransportKind, files: tuple[FileHandle, ...], evidence: tuple[str, ...]) -> Transport:
    """A transport with what is known of the page cache: direct transfers and descriptors bypass it."""
    cache: CacheState = "bypassed" if kind == "p2p" or all(file.direct for file in files) else "unknown"
    return Transport(kind, cache, evidence)
