"""libcufile: control through cuda-python, addresses of its functions for the data plane."""

from __future__ import annotations

import ctypes
import os
import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gdsfw.errors import UnavailableError
from gdsfw.gpu.bound import BoundFileLibrary, name_of, what_to_install
from gdsfw.gpu.statistics import LEVEL_3_BYTES

from gdsfw_cufile import configuration, evidence
from gdsfw_cufile.pieces import BINDINGS, LIBRARY

if TYPE_CHECKING:
    from gdsfw.backend import FileHandle, Transport

    from gdsfw_cufile.options import CuFileOptions

#: Entries that batches can hold in compatibility mode: each takes one of the library's POSIX slabs, 64 by default, and
#: more never complete (seen with libcufile 1.15: 64 complete, 128 hang).
COMPAT_BATCH = 64


class CuFileLibrary(BoundFileLibrary):
    """gdsfw.gpu.vendor.FileLibrary over libcufile."""

    prefix = "cuFile"

    def __init__(self) -> None:
        self._send_log_elsewhere()
        self._configuration = configuration.in_force()
        if self._configuration.problem:
            raise UnavailableError(
                f"cuFile's settings cannot be used: {self._configuration.problem}",
                hint=f"correct the file, or unset {configuration.VARIABLE}; io_path staged needs none",
            )
        try:
            from cuda.bindings import cufile
            from cuda.pathfinder import load_nvidia_dynamic_lib

            super().__init__(ctypes.CDLL(load_nvidia_dynamic_lib("cufile").abs_path))
        except UnavailableError:
            raise
        except Exception as error:  # cuda-python raises classes of its own for what is absent
            fixes = what_to_install((LIBRARY, BINDINGS), f"{LIBRARY.fix}; {BINDINGS.fix}")
            raise UnavailableError(
                f"libcufile cannot be used: {error}", hint=f"{fixes}; io_path staged needs neither"
            ) from error
        self._cufile = cufile
        self._statistics = False

    def open(self, options: CuFileOptions | None) -> None:
        """Set the parameters, open the driver."""
        if options is not None:
            self._configure(options)
        self._call("DriverOpen")
        self.max_batch = self._size("PROPERTIES_IO_BATCHSIZE") or 128
        if not self.direct_possible()[0]:
            self.max_batch = min(self.max_batch, COMPAT_BATCH)
        if options is not None and options.statistics:
            self._count()

    def register_file(self, fd: int) -> int:
        """cuFileHandleRegister; the handle as an unsigned number."""
        cufile = self._cufile
        descriptor = cufile.Descr()
        descriptor.type = int(cufile.FileHandleType.OPAQUE_FD)
        descriptor.handle.fd = fd
        descriptor.fs_ops = 0  # left uninitialised by the bindings
        return int(self._call("HandleRegister", descriptor.ptr, detail=name_of(fd))) & (2**64 - 1)

    def deregister_file(self, handle: int) -> None:
        """cuFileHandleDeregister."""
        self._call("HandleDeregister", self._number(handle))

    def limits(self, ordinal: int) -> Sequence[tuple[str, int]]:
        """The limit on pinned memory; where transfers can be direct, less the library's cache, and the BAR."""
        pinned = self._size("PROPERTIES_MAX_DEVICE_PINNED_MEM_SIZE_KB")
        if not self.direct_possible()[0]:
            return [("max_device_pinned_mem_size_kb", pinned * 1024)] if pinned else []
        left = max(0, pinned - self._size("PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB"))
        found = [("max_device_pinned_mem_size_kb less max_device_cache_size_kb", left * 1024)] if pinned else []
        bar = self._bar(ordinal)
        return [*found, ("the BAR1 aperture", bar * 1024)] if bar else found

    def notes(self) -> Sequence[str]:
        """Where the settings come from."""
        return [self._configuration.line()]

    def direct_possible(self) -> tuple[bool, str]:
        """nvidia-fs or PCI P2PDMA must be there, and the bounce not forced."""
        return evidence.direct_possible(self._facts())

    def snapshot(self) -> Any:
        """Counters of nvidia-fs and of the library."""
        return evidence.snapshot(self._level3() if self._statistics else None)

    def judge(self, before: Any, files: tuple[FileHandle, ...]) -> Transport:
        """By the library's or nvidia-fs's counters, and settings."""
        return evidence.judge(self._facts(), before, self.snapshot(), files)

    def _facts(self) -> evidence.Facts:
        return evidence.Facts(
            version=self._version(),
            compat_forced=self._flag("FORCE_COMPAT_MODE"),
            compat_allowed=self._flag("PROPERTIES_ALLOW_COMPAT_MODE"),
            p2pdma=self._flag("USE_PCIP2PDMA"),
        )

    def _count(self) -> None:
        """Switch the library's statistics on."""
        self._call("SetStatsLevel", 3)
        self._call("StatsStart")
        self._statistics = True

    def _level3(self) -> tuple[bytes, int]:
        """Statistics of the third level, and where those of the devices begin."""
        room = ctypes.create_string_buffer(LEVEL_3_BYTES)
        self._call("GetStatsL3", ctypes.addressof(room))
        return room.raw, int(self._cufile.stats_level3_dtype.fields["per_gpu_stats"][1])

    def _bar(self, ordinal: int) -> int:
        try:
            return int(self._cufile.get_bar_size_in_kb(ordinal))
        except Exception:  # not on every GPU, and not in every version
            return 0

    def _configure(self, options: CuFileOptions) -> None:
        cufile = self._cufile
        compat = {"allow": (True, False), "force": (True, True), "forbid": (False, False)}
        flags: dict[str, bool | None] = {
            "USE_PCIP2PDMA": options.p2pdma,
            "PROPERTIES_USE_POLL_MODE": options.poll_mode,
            "EXECUTION_PARALLEL_IO": options.parallel_io,
        }
        if options.compat:
            flags["PROPERTIES_ALLOW_COMPAT_MODE"], flags["FORCE_COMPAT_MODE"] = compat[options.compat]
        numbers = {
            "POLLTHRESHOLD_SIZE_KB": options.poll_threshold_kib,
            "EXECUTION_MAX_IO_THREADS": options.io_threads,
            "PROPERTIES_MAX_DIRECT_IO_SIZE_KB": options.max_direct_io_kib,
            "PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB": options.max_cache_kib,
            "PROPERTIES_MAX_DEVICE_PINNED_MEM_SIZE_KB": options.max_pinned_kib,
            "PROPERTIES_IO_BATCHSIZE": options.batch_size,
        }
        for name, flag in flags.items():
            if flag is not None:
                self._call("SetParameterBool", int(getattr(cufile.BoolConfigParameter, name)), flag, detail=name)
        for name, number in numbers.items():
            if number is not None:
                self._call("SetParameterSizeT", int(getattr(cufile.SizeTConfigParameter, name)), number, detail=name)
        if options.log_level:
            os.environ.setdefault("CUFILE_LOGGING_LEVEL", options.log_level)

    def _flag(self, name: str) -> bool | None:
        try:
            return bool(self._cufile.get_parameter_bool(int(getattr(self._cufile.BoolConfigParameter, name))))
        except Exception:  # an older library, or one that does not know the parameter
            return None

    def _size(self, name: str) -> int:
        try:
            return int(self._cufile.get_parameter_size_t(int(getattr(self._cufile.SizeTConfigParameter, name))))
        except Exception:
            return 0

    def _version(self) -> str:
        try:
            number = int(self._cufile.get_version())
        except Exception:
            return "unknown"
        return f"{number // 1000}.{number % 1000 // 10}"

    def _number(self, value: int) -> int:
        """As intptr_t."""
        return value - 2**64 if value >= 2**63 else value

    def _call(self, stem: str, *arguments: Any, detail: str = "") -> Any:
        name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", stem).lower()
        try:
            function: Callable[..., Any] = getattr(self._cufile, name)
            return function(*arguments)
        except self._cufile.cuFileError as error:
            raise self._failed(stem, int(error.status), int(error.cuda_error or 0), detail) from error
        except (AttributeError, RuntimeError) as error:  # neither these bindings nor this library have it
            raise UnavailableError(f"libcufile {self._version()} has no cuFile{stem}", hint=LIBRARY.fix) from error

    @staticmethod
    def _send_log_elsewhere() -> None:
        """cufile.log belongs into no user's folder; a place that the user chose stays."""
        place = Path(tempfile.gettempdir()) / f"gdsfw-cufile-{os.getpid()}.log"
        os.environ.setdefault("CUFILE_LOGFILE_PATH", str(place))
