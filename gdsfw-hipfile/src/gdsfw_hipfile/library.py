"""libhipfile: control through hip-python, addresses of its functions for the data plane."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gdsfw.errors import UnavailableError
from gdsfw.gpu.bound import BoundFileLibrary, name_of, set_in_environment
from gdsfw.gpu.statistics import LEVEL_3_BYTES, Routes, routes, transport, verdict

from gdsfw_hipfile import options as settings
from gdsfw_hipfile.pieces import LIBRARY

if TYPE_CHECKING:
    from gdsfw.backend import FileHandle, Transport

    from gdsfw_hipfile.options import HipFileOptions

#: Most bytes of one call; hipFile cuts what is larger, as read(2) does.
MOST_BYTES = 0x7FFFF000
#: Where the devices' counters begin in hipFileStatsLevel3_t (hipfile.h of 0.5.0).
PER_DEVICE_START = 1032


class _Status(ctypes.Structure):
    _fields_ = (("code", ctypes.c_int), ("gpu_code", ctypes.c_int))


class HipFileLibrary(BoundFileLibrary):
    """gdsfw.gpu.vendor.FileLibrary over libhipfile."""

    prefix = "hipFile"
    max_transfer = MOST_BYTES

    def __init__(self) -> None:
        hint = f"{LIBRARY.fix}; io_path staged needs HIP only"
        try:
            from rocm.bindings import hipfile
            from rocm.bindings.util.paths import get_library_path
        except ImportError as error:
            raise UnavailableError(f"hipFile cannot be used: {error}", hint=hint) from error
        # Without the library its calls print an error and return garbage: ask before the first one.
        if not hipfile.has_symbol("hipFileDriverOpen"):
            raise UnavailableError("libhipfile is not found", hint=hint)
        self._library = ctypes.CDLL(os.fsdecode(get_library_path("hipfile")))
        super().__init__(self._library)
        self._hipfile = hipfile

    def open(self, options: HipFileOptions | None) -> None:
        """Set the variables that the library reads at its first use, open the driver."""
        if options is not None:
            set_in_environment(options.variables())
        self._call("DriverOpen")

    def register_file(self, fd: int) -> int:
        """hipFileHandleRegister; the handle as an unsigned number."""
        hipfile = self._hipfile
        descriptor = hipfile.hipFileDescr()
        descriptor.type = hipfile.hipFileFileHandleType.hipFileHandleTypeOpaqueFD
        descriptor.handle.fd = fd
        return int(self._call("HandleRegister", descriptor, detail=name_of(fd)))

    def deregister_file(self, handle: int) -> None:
        """hipFileHandleDeregister."""
        self._call("HandleDeregister", handle)

    def limits(self, ordinal: int) -> Sequence[tuple[str, int]]:
        """None: registering only records the range."""
        return []

    def notes(self) -> Sequence[str]:
        """The settings in force, and a warning for the one that can corrupt data."""
        return settings.in_force()

    def direct_possible(self) -> tuple[bool, str]:
        """Whatever is not forced to bounce may be direct; only the library's own count tells."""
        if settings.forced():
            return False, "HIPFILE_FORCE_COMPAT_MODE forces the bounce through host memory"
        if self._level3() is None:
            return False, f"hipFile {self._version()} does not count its transfers: direct ones cannot be told apart"
        return True, "the fast path is not switched off"

    def snapshot(self) -> Any:
        """The library's own counters; empty without them."""
        level3 = self._level3()
        return routes(level3, PER_DEVICE_START) if level3 is not None else ()

    def judge(self, before: Any, files: tuple[FileHandle, ...]) -> Transport:
        """By the library's own counters, else by what is forced."""
        lines = [f"libhipfile {self._version()}", *settings.in_force()]
        if settings.forced():
            return transport("compat", files, (*lines, self.direct_possible()[1]))
        after = self.snapshot()
        if not isinstance(before, Routes) or not isinstance(after, Routes):
            return transport("unknown", files, (*lines, self.direct_possible()[1]))
        kind, line = verdict(after.since(before))
        fell_back = ["fell back: no transfer took the fast path"] if kind == "compat" else []
        return transport(kind, files, (*fell_back, *lines, line))

    def _level3(self) -> bytes | None:
        """Statistics of the third level; hip-python has no function for them, and older libraries neither."""
        function = getattr(self._library, "hipFileGetStatsL3", None)
        if function is None:
            return None
        function.restype = _Status
        room = ctypes.create_string_buffer(LEVEL_3_BYTES)
        return None if function(room).code else room.raw

    def _version(self) -> str:
        try:
            return ".".join(map(str, self._call("GetVersion")))
        except Exception:
            return "unknown"

    def _call(self, stem: str, *arguments: Any, detail: str = "") -> Any:
        name = f"{self.prefix}{stem}"
        try:
            answer = getattr(self._hipfile, name)(*arguments)
        except (AttributeError, RuntimeError) as error:  # neither these bindings nor this library have it
            raise UnavailableError(f"libhipfile has no {name}", hint=LIBRARY.fix) from error
        if answer is None:
            return None
        status, *values = answer
        if int(status.err) or int(status.hip_drv_err):
            raise self._failed(stem, int(status.err), int(status.hip_drv_err), detail)
        return values[0] if len(values) == 1 else tuple(values)
