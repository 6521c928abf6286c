"""libcufile: control through cuda-python, addresses of its functions for the data plane."""

from __future__ import annotations

import ctypes
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gdsfw.errors import BackendError, Domain, UnavailableError

from gdsfw_cufile import evidence

if TYPE_CHECKING:
    from gdsfw.backend import FileHandle, Transport

    from gdsfw_cufile.options import CuFileOptions

#: CUFILEOP_BASE_ERR of cufile.h.
CODE_BASE = 5000

#: Entries that batches can hold in compatibility mode: each takes one of the library's POSIX slabs, 64 by default, and
#: more never complete (seen with libcufile 1.15: 64 complete, 128 hang).
COMPAT_BATCH = 64

_SYMBOLS = {
    "read": "cuFileRead",
    "write": "cuFileWrite",
    "batch_setup": "cuFileBatchIOSetUp",
    "batch_submit": "cuFileBatchIOSubmit",
    "batch_status": "cuFileBatchIOGetStatus",
    "batch_cancel": "cuFileBatchIOCancel",
    "batch_destroy": "cuFileBatchIODestroy",
    "read_async": "cuFileReadAsync",
    "write_async": "cuFileWriteAsync",
    "buffer_register": "cuFileBufRegister",
    "buffer_deregister": "cuFileBufDeregister",
}
#: All parameters of a stream are fixed and 4 KiB aligned (cufile.h, CU_FILE_STREAM_FIXED_AND_ALIGNED).
_STREAM_FIXED_AND_ALIGNED = 0xF


class CuFileLibrary:
    """gdsfw.gpu.vendor.FileLibrary over libcufile."""

    code_base = CODE_BASE
    max_transfer = 0

    def __init__(self) -> None:
        self._send_log_elsewhere()
        try:
            from cuda.bindings import cufile
            from cuda.pathfinder import load_nvidia_dynamic_lib

            library = ctypes.CDLL(load_nvidia_dynamic_lib("cufile").abs_path)
        except Exception as error:  # cuda-python raises classes of its own for what is absent
            from gdsfw_cufile.pieces import BINDINGS, LIBRARY

            raise UnavailableError(
                f"libcufile cannot be used: {error}",
                hint=f"{LIBRARY.fix}; {BINDINGS.fix}; io_path staged needs neither",
            ) from error
        self._cufile = cufile
        self._symbols = {
            name: ctypes.cast(getattr(library, symbol), ctypes.c_void_p).value or 0
            for name, symbol in _SYMBOLS.items()
            if hasattr(library, symbol)
        }
        self.max_batch = 128

    def symbols(self) -> Mapping[str, int]:
        """Addresses of libcufile's functions, those that this version has."""
        return self._symbols

    def open(self, options: CuFileOptions | None) -> None:
        """Set the parameters, open the driver."""
        if options is not None:
            self._configure(options)
        self._call("driver_open")
        self.max_batch = self._number("PROPERTIES_IO_BATCHSIZE", 128)
        if not self.direct_possible()[0]:
            self.max_batch = min(self.max_batch, COMPAT_BATCH)

    def close(self) -> None:
        """Close the driver."""
        self._call("driver_close")

    def register_file(self, fd: int) -> int:
        """cuFileHandleRegister; the handle as an unsigned number."""
        cufile = self._cufile
        descriptor = cufile.Descr()
        descriptor.type = int(cufile.FileHandleType.OPAQUE_FD)
        descriptor.handle.fd = fd
        descriptor.fs_ops = 0  # left uninitialised by the bindings
        detail = os.readlink(f"/proc/self/fd/{fd}")  # noqa: PTH115
        return int(self._call("handle_register", descriptor.ptr, detail=detail)) & (2**64 - 1)

    def deregister_file(self, handle: int) -> None:
        """cuFileHandleDeregister."""
        self._call("handle_deregister", _signed(handle))

    def register_buffer(self, address: int, nbytes: int) -> None:
        """cuFileBufRegister."""
        self._call("buf_register", _signed(address), nbytes, 0, detail=f"{nbytes} bytes")

    def deregister_buffer(self, address: int) -> None:
        """cuFileBufDeregister."""
        self._call("buf_deregister", _signed(address))

    def register_stream(self, stream: int) -> None:
        """cuFileStreamRegister."""
        self._call("stream_register", stream, _STREAM_FIXED_AND_ALIGNED)

    def deregister_stream(self, stream: int) -> None:
        """cuFileStreamDeregister."""
        self._call("stream_deregister", stream)

    def direct_possible(self) -> tuple[bool, str]:
        """nvidia-fs or PCI P2PDMA must be there, and the bounce not forced."""
        return evidence.direct_possible(self._facts())

    def snapshot(self) -> Any:
        """Counters of nvidia-fs, and the library's settings."""
        return evidence.snapshot()

    def judge(self, before: Any, files: tuple[FileHandle, ...]) -> Transport:
        """By nvidia-fs counters and settings."""
        return evidence.judge(self._facts(), before, files)

    def _facts(self) -> evidence.Facts:
        return evidence.Facts(
            version=self._version(),
            compat_forced=self._flag("FORCE_COMPAT_MODE"),
            compat_allowed=self._flag("PROPERTIES_ALLOW_COMPAT_MODE"),
            p2pdma=self._flag("USE_PCIP2PDMA"),
        )

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
                self._call("set_parameter_bool", int(cufile.BoolConfigParameter[name]), flag, detail=name)
        for name, number in numbers.items():
            if number is not None:
                self._call("set_parameter_size_t", int(cufile.SizeTConfigParameter[name]), number, detail=name)
        if options.log_level:
            os.environ.setdefault("CUFILE_LOGGING_LEVEL", options.log_level)

    def _flag(self, name: str) -> bool | None:
        try:
            return bool(self._cufile.get_parameter_bool(int(self._cufile.BoolConfigParameter[name])))
        except Exception:  # an older library, or one that does not know the parameter
            return None

    def _number(self, name: str, default: int) -> int:
        try:
            return int(self._cufile.get_parameter_size_t(int(self._cufile.SizeTConfigParameter[name])))
        except Exception:
            return default

    def _version(self) -> str:
        try:
            number = int(self._cufile.get_version())
        except Exception:
            return "unknown"
        return f"{number // 1000}.{number % 1000 // 10}"

    def _call(self, name: str, *arguments: Any, detail: str = "") -> Any:
        function: Callable[..., Any] = getattr(self._cufile, name)
        try:
            return function(*arguments)
        except self._cufile.cuFileError as error:
            code = int(error.status)
            if error.cuda_error:
                raise BackendError(name, Domain.GPU, int(error.cuda_error), detail) from error
            raise BackendError(name, Domain.FILE if code >= CODE_BASE else Domain.GPU, code, detail) from error

    @staticmethod
    def _send_log_elsewhere() -> None:
        """cufile.log belongs into no user's folder; a place that the user chose stays."""
        place = Path(tempfile.gettempdir()) / f"gdsfw-cufile-{os.getpid()}.log"
        os.environ.setdefault("CUFILE_LOGFILE_PATH", str(place))


def _signed(value: int) -> int:
    """A 64-bit number as the bindings take it (intptr_t)."""
    return value - 2**64 if value >= 2**63 else value
