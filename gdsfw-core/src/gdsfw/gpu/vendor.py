"""What a vendor's distribution supplies: its runtime and its file library, each behind a small protocol.

Control goes through these calls. Data goes through the addresses in `symbols()`, which the C engine calls itself; the
two vendors' libraries are twins, so one set of C queues serves both (native/include/gdsfw_gpu.h).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    from gdsfw.backend import Check, Device, ErrorInfo, FileHandle, Transport
    from gdsfw.errors import Domain
    from gdsfw.gpu.family import StagingOptions
    from gdsfw.gpu.kernels import Compiler
    from gdsfw.gpu.presence import Piece
    from gdsfw.host import Host


class Runtime(Protocol):
    """The GPU runtime. Every call raises BackendError with Domain.GPU; addresses and handles are unsigned numbers."""

    #: What the event query answers while work is pending.
    not_ready: int

    def symbols(self) -> Mapping[str, int]:
        """Addresses of the functions in gdsfw.gpu.abi.Runtime, by member name."""

    def devices(self) -> list[Device]:
        """The devices there are."""

    def active(self) -> set[int]:
        """Devices on which this process has a context, whoever opened it."""

    def enter(self, ordinal: int) -> Any:
        """Make a device current in this thread, creating its context if needed; returns what `leave` takes."""

    def leave(self, entered: Any) -> None:
        """Undo `enter`, in the same thread."""

    def allocate(self, nbytes: int) -> int:
        """Device memory."""

    def free(self, address: int) -> None:
        """Give back device memory."""

    def allocate_host(self, nbytes: int) -> int:
        """Pinned host memory."""

    def free_host(self, address: int) -> None:
        """Give back pinned host memory."""

    def create_stream(self) -> int:
        """A stream that does not wait for the default stream."""

    def destroy_stream(self, stream: int) -> None:
        """Undo create_stream."""

    def create_event(self, blocking: bool = False) -> int:
        """An event without timing; with `blocking`, who waits for it sleeps instead of looking all the time."""

    def destroy_event(self, event: int) -> None:
        """Undo create_event."""

    def compiler(self) -> Compiler:
        """The run-time compiler; UnavailableError with what to install where there is none."""

    def architecture(self, ordinal: int) -> str:
        """What the compiler calls a device's instruction set."""

    def load_functions(self, code: bytes, names: Sequence[str]) -> Mapping[str, int]:
        """Load device code into the current context until the process ends; handles of its functions by name."""


class FileLibrary(Protocol):
    """The file library. Every call raises BackendError with Domain.FILE, GPU or ERRNO."""

    #: First error code (5000 for the twins), most entries of a batch, most bytes of one call (0: no limit).
    code_base: int
    max_batch: int
    max_transfer: int

    def symbols(self) -> Mapping[str, int]:
        """Addresses of `read`, `write` and the functions in gdsfw.gpu.abi.FileLibrary that the library has."""

    def open(self, options: Any) -> None:
        """Open the driver with the job's options; reference counted."""

    def close(self) -> None:
        """Undo open."""

    def register_file(self, fd: int) -> int:
        """The library's handle of an open descriptor."""

    def deregister_file(self, handle: int) -> None:
        """Undo register_file."""

    def register_buffer(self, address: int, nbytes: int) -> None:
        """Register device memory."""

    def deregister_buffer(self, address: int) -> None:
        """Undo register_buffer."""

    def register_stream(self, stream: int, aligned: bool) -> None:
        """Announce that a stream's parameters are fixed at the call, and whether all are multiples of 4 KiB."""

    def deregister_stream(self, stream: int) -> None:
        """Undo register_stream."""

    def limits(self, ordinal: int) -> Sequence[tuple[str, int]]:
        """What bounds the bytes registered on a device: a name for messages and the bytes; empty: nothing known."""

    def notes(self) -> Sequence[str]:
        """What a result should say of the library: the settings in force, and where they come from."""

    def direct_possible(self) -> tuple[bool, str]:
        """Whether peer-to-peer transfers could happen at all on this machine, and why (not)."""

    def snapshot(self) -> Any:
        """State of whatever counters tell transfers apart; never None."""

    def judge(self, before: Any, files: tuple[FileHandle, ...]) -> Transport:
        """The way bytes took since `before`; `unknown` when the evidence does not decide."""


def _nothing(directory: Path, host: Host) -> list[Check]:
    return []


@dataclass(frozen=True)
class Vendor:
    """One vendor.

    Args:
        name: the backend's name.
        title, version: for BackendInfo.
        options: model of the backend's options.
        pieces: what the backend needs on a machine, in the order in which one would install it.
        runtime, library: called once, when first needed; raise UnavailableError with what to install.
        dlpack_type: DLPack's number of the devices' type (DLDeviceType).
        explain: meaning of GPU and file library codes, or None for one it does not know.
        probe: what to say, beside its pieces, of a machine and of files in a directory of it.
    """

    name: str
    title: str
    version: str
    options: type[StagingOptions]
    pieces: Sequence[Piece]
    runtime: Callable[[], Runtime]
    library: Callable[[], FileLibrary]
    explain: Callable[[Domain, int], ErrorInfo | None]
    dlpack_type: int
    probe: Callable[[Path, Host], list[Check]] = _nothing
