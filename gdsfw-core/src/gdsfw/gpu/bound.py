"""A runtime and a file library over a vendor's Python bindings: what both vendors' need, with their names as arguments.

Control goes through the bindings; data goes through the addresses of the same libraries' functions.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from gdsfw.backend import Device
from gdsfw.errors import BackendError, Domain, UnavailableError

if TYPE_CHECKING:
    from gdsfw.gpu.presence import Piece

#: Functions of the file library that the C engine calls, by member of gdsfw.gpu.abi.FileLibrary; the vendor's prefix
#: makes the name.
FILE_FUNCTIONS = {
    "read": "Read",
    "write": "Write",
    "batch_setup": "BatchIOSetUp",
    "batch_submit": "BatchIOSubmit",
    "batch_status": "BatchIOGetStatus",
    "batch_cancel": "BatchIOCancel",
    "batch_destroy": "BatchIODestroy",
    "read_async": "ReadAsync",
    "write_async": "WriteAsync",
    "buffer_register": "BufRegister",
    "buffer_deregister": "BufDeregister",
}
#: Flags of a registered stream: size and both offsets are fixed when a call is made; all are multiples of 4 KiB.
STREAM_FIXED, STREAM_ALIGNED = 0x7, 0x8


class BoundRuntime:
    """gdsfw.gpu.vendor.Runtime, as far as the vendors agree. The bindings' functions return (error, value ...).

    Args:
        bindings: the module with the functions.
        library: the runtime's library, for addresses.
    """

    #: Name of the function behind each call, and of each symbol of gdsfw.gpu.abi.Runtime.
    calls: ClassVar[Mapping[str, str]]
    symbol_names: ClassVar[Mapping[str, str]]
    #: Flags: host memory for every context; a stream of its own; events that measure nothing, and that let one sleep.
    portable: int
    non_blocking: int
    untimed: int
    sleeping: int
    not_ready = 600

    def __init__(self, bindings: Any, library: ctypes.CDLL) -> None:
        self._bindings = bindings
        self._symbols = addresses(library, self.symbol_names)
        self._modules: list[Any] = []
        self._thread = threading.local()

    def symbols(self) -> Mapping[str, int]:
        """Addresses of the library's functions."""
        return self._symbols

    def devices(self) -> list[Device]:
        """The devices that the vendor's environment variables leave, numbered as the runtime numbers them."""
        return [self._device(ordinal) for ordinal in range(self._do("count"))]

    def active(self) -> set[int]:
        """Devices on which this process has a primary context."""
        handles = {ordinal: self._handle(ordinal) for ordinal in range(self._do("count"))}
        return {ordinal for ordinal, handle in handles.items() if self._do("primary_state", handle)[1]}

    def enter(self, ordinal: int) -> int:
        """Make a device current in this thread."""
        context = self._context(ordinal)
        entered = self._entered()
        if not entered:
            entered.append((None, self._do("current")))
        entered.append((ordinal, context))
        self._do("make_current", context)
        return ordinal

    def leave(self, entered: int) -> None:
        """Back to what another user in this thread entered, or what was before the first; in whatever order."""
        contexts = self._entered()
        contexts.remove((entered, self._context(entered)))
        self._do("make_current", contexts[-1][1])
        if len(contexts) == 1:
            contexts.clear()

    def allocate(self, nbytes: int) -> int:
        """Device memory."""
        return int(self._do("allocate", nbytes))

    def free(self, address: int) -> None:
        """Undo allocate."""
        self._do("free", address)

    def allocate_host(self, nbytes: int) -> int:
        """Pinned host memory, usable from every context."""
        return int(self._do("allocate_host", nbytes, self.portable))

    def free_host(self, address: int) -> None:
        """Undo allocate_host."""
        self._do("free_host", address)

    def create_stream(self) -> int:
        """A non-blocking stream."""
        return int(self._do("create_stream", self.non_blocking))

    def destroy_stream(self, stream: int) -> None:
        """Undo create_stream."""
        self._do("destroy_stream", self._wrap("stream", stream))

    def create_event(self, blocking: bool = False) -> int:
        """An event without timing."""
        return int(self._do("create_event", self.untimed | (self.sleeping if blocking else 0)))

    def destroy_event(self, event: int) -> None:
        """Undo create_event."""
        self._do("destroy_event", self._wrap("event", event))

    def load_functions(self, code: bytes, names: Sequence[str]) -> Mapping[str, int]:
        """Load device code into the current context; it stays as long as the context."""
        module = self._do("load_module", code)
        self._modules.append(module)
        return {name: int(self._do("module_function", module, name.encode())) for name in names}

    def _entered(self) -> list[tuple[int | None, Any]]:
        """Devices that this thread has entered and not left, behind what was current before."""
        found: list[tuple[int | None, Any]] = self._thread.__dict__.setdefault("entered", [])
        return found

    def _context(self, ordinal: int) -> Any:
        """What makes a device current."""
        return ordinal

    def _handle(self, ordinal: int) -> Any:
        """A device as the bindings' functions take it."""
        return ordinal

    def _wrap(self, kind: str, handle: int) -> Any:
        """A stream or event as the bindings' functions take it."""
        return handle

    def _uuid(self, content: bytes) -> str:
        """A device's UUID as the vendor's tools write it."""
        text = content.hex()
        return f"GPU-{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    def _device(self, ordinal: int) -> Device:
        handle = self._handle(ordinal)
        address = _text(self._do("pci", 32, handle)).lower()
        return Device(
            ordinal=ordinal,
            name=_text(self._do("name", 128, handle)),
            nbytes=int(self._do("total", handle)),
            pci_address=address,
            numa_node=_numa_node(address),
            uuid=self._uuid(bytes(self._do("uuid", handle).bytes)),
        )

    def _do(self, what: str, *arguments: Any) -> Any:
        name = self.calls[what]
        try:
            result, *values = getattr(self._bindings, name)(*arguments)
        except RuntimeError as error:  # the bindings' word for a function that the library lacks
            raise UnavailableError(f"{name} cannot be called: {error}") from error
        except ValueError as error:  # and for a code that they do not know
            raise UnavailableError(f"{name}: {error}", hint="the vendor's driver and Python bindings differ") from error
        if int(result):
            raise BackendError(name, Domain.GPU, int(result))
        return values[0] if len(values) == 1 else tuple(values)


class BoundFileLibrary:
    """gdsfw.gpu.vendor.FileLibrary, as far as the vendors agree.

    Args:
        library: for addresses.
    """

    #: What the names of the library's functions begin with.
    prefix: ClassVar[str]
    code_base = 5000
    max_batch = 128
    max_transfer = 0

    def __init__(self, library: ctypes.CDLL) -> None:
        names = {member: f"{self.prefix}{stem}" for member, stem in FILE_FUNCTIONS.items()}
        self._symbols = addresses(library, names)
        lacking = [names[member] for member in ("read", "write") if member not in self._symbols]
        if lacking:
            raise UnavailableError(
                f"the file library {library._name} has no {', '.join(lacking)}", hint="install a newer one"
            )

    def symbols(self) -> Mapping[str, int]:
        """Addresses of the library's functions, those that this version has."""
        return self._symbols

    def close(self) -> None:
        """Close the driver."""
        self._call("DriverClose")

    def register_buffer(self, address: int, nbytes: int) -> None:
        """Register device memory."""
        self._call("BufRegister", self._number(address), nbytes, 0, detail=f"{nbytes} bytes")

    def deregister_buffer(self, address: int) -> None:
        """Undo register_buffer."""
        self._call("BufDeregister", self._number(address))

    def register_stream(self, stream: int, aligned: bool) -> None:
        """Announce that parameters are fixed at the call, and whether all are multiples of 4 KiB."""
        self._call("StreamRegister", stream, STREAM_FIXED | (STREAM_ALIGNED if aligned else 0))

    def deregister_stream(self, stream: int) -> None:
        """Undo register_stream."""
        self._call("StreamDeregister", stream)

    def _number(self, value: int) -> int:
        """An address or handle as the bindings take it."""
        return value

    def _call(self, stem: str, *arguments: Any, detail: str = "") -> Any:
        """Call the bindings' function, and raise BackendError for what it reports."""
        raise NotImplementedError

    def _failed(self, stem: str, code: int, gpu_code: int, detail: str) -> BackendError:
        """The error for a status of the file library: its own code, and the runtime's."""
        if gpu_code:
            return BackendError(f"{self.prefix}{stem}", Domain.GPU, gpu_code, detail)
        domain = Domain.FILE if code >= self.code_base else Domain.GPU
        return BackendError(f"{self.prefix}{stem}", domain, code, detail)


def addresses(library: ctypes.CDLL, names: Mapping[str, str]) -> dict[str, int]:
    """Where the functions of a library are; those that it lacks are left out."""
    return {
        member: ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
        for member, name in names.items()
        if hasattr(library, name)
    }


def what_to_install(pieces: Sequence[Piece], otherwise: str) -> str:
    """The fixes for the pieces that this machine lacks."""
    from gdsfw.gpu.presence import missing
    from gdsfw.host import Host

    return "; ".join(f"{found.name}: {found.fix}" for found in missing(pieces, Host())) or otherwise


def name_of(fd: int) -> str:
    """Path of an open descriptor, for messages."""
    return os.readlink(f"/proc/self/fd/{fd}")  # noqa: PTH115


def set_in_environment(values: Mapping[str, str | None]) -> None:
    """Set variables that a library reads when it is first used; None leaves one as it is."""
    os.environ.update({name: value for name, value in values.items() if value is not None})


def _text(value: object) -> str:
    """Text, whatever the bindings return it as."""
    return value.split(b"\0")[0].decode(errors="replace") if isinstance(value, bytes) else str(value)


def _numa_node(address: str) -> int | None:
    try:
        node = int(Path(f"/sys/bus/pci/devices/{address}/numa_node").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    return node if node >= 0 else None


__all__ = [
    "BoundFileLibrary",
    "BoundRuntime",
    "addresses",
    "name_of",
    "set_in_environment",
    "what_to_install",
]
