"""The plugin object of a GPU backend: every hook, forwarded to one Family that is made when first needed.

    plugin = GpuPlugin(make_vendor)  # entry point: NAME = "the_module:plugin"

No vendor library is imported before a job, a probe or a question about devices needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gdsfw import hookimpl
from gdsfw.backend import BackendInfo, Buffer, Check, Device, ErrorInfo, FileHandle, IOPath, Mapped, Request, Worker

if TYPE_CHECKING:
    from pathlib import Path

    from gdsfw.errors import Domain
    from gdsfw.gpu.family import Family
    from gdsfw.gpu.vendor import Vendor
    from gdsfw.host import Host


class GpuPlugin:
    """The hooks of one vendor's backend.

    Args:
        vendor: makes the Vendor; called once.
    """

    def __init__(self, vendor: Callable[[], Vendor]) -> None:
        self._make_vendor = vendor
        self._made_vendor: Vendor | None = None
        self._made_family: Family | None = None

    def _vendor(self) -> Vendor:
        if self._made_vendor is None:
            self._made_vendor = self._make_vendor()
        return self._made_vendor

    def _family(self) -> Family:
        if self._made_family is None:
            from gdsfw.gpu.family import Family

            self._made_family = Family(self._vendor())
        return self._made_family

    @hookimpl
    def gdsfw_backend(self) -> BackendInfo:
        """Describe the backend."""
        from gdsfw.gpu.family import IO_PATHS

        vendor = self._vendor()
        return BackendInfo(
            name=vendor.name,
            title=vendor.title,
            version=vendor.version,
            io_paths=IO_PATHS,
            memory=("device", "pinned"),
            options=vendor.options,
            capabilities=frozenset({"data", "direct", "flush", "shared_files", "devices"}),
        )

    @hookimpl
    def gdsfw_probe(self, directory: Path, host: Host) -> list[Check]:
        """Say which pieces are there, and what the vendor knows beside them."""
        from gdsfw.gpu.presence import check

        vendor = self._vendor()
        return [*(check(piece, host) for piece in vendor.pieces), *vendor.probe(directory, host)]

    @hookimpl
    def gdsfw_devices(self) -> list[Device]:
        """The GPUs."""
        return self._family().devices()

    @hookimpl
    def gdsfw_open(self, options: Any) -> Any:
        """Open the runtime."""
        return self._family().open(options)

    @hookimpl
    def gdsfw_close(self, session: Any) -> None:
        """Close the file library."""
        self._family().close(session)

    @hookimpl
    def gdsfw_worker_start(self, session: Any, worker: Worker) -> Any:
        """Context and stream."""
        return self._family().worker_start(session, worker)

    @hookimpl
    def gdsfw_worker_stop(self, worker: Worker) -> None:
        """Give them back."""
        self._family().worker_stop(worker)

    @hookimpl
    def gdsfw_alloc(self, worker: Worker, nbytes: int, memory: str, alignment: int) -> Buffer:
        """Device or pinned memory."""
        return self._family().alloc(worker, nbytes, memory, alignment)

    @hookimpl
    def gdsfw_free(self, worker: Worker, buffer: Buffer) -> None:
        """Give it back."""
        self._family().free(worker, buffer)

    @hookimpl
    def gdsfw_register_buffer(self, worker: Worker, buffer: Buffer) -> None:
        """Register it with the file library."""
        self._family().register_buffer(worker, buffer)

    @hookimpl
    def gdsfw_deregister_buffer(self, worker: Worker, buffer: Buffer) -> None:
        """Undo it."""
        self._family().deregister_buffer(worker, buffer)

    @hookimpl
    def gdsfw_register_file(self, worker: Worker, file: FileHandle) -> None:
        """Register it with the file library."""
        self._family().register_file(worker, file)

    @hookimpl
    def gdsfw_deregister_file(self, worker: Worker, file: FileHandle) -> None:
        """Undo it."""
        self._family().deregister_file(worker, file)

    @hookimpl
    def gdsfw_io(self, worker: Worker, files: Sequence[FileHandle], buffer: Buffer, request: Request) -> IOPath:
        """The data plane."""
        return self._family().io(worker, files, buffer, request)

    @hookimpl
    def gdsfw_copy(self, worker: Worker, buffer: Buffer, offset: int, host_view: memoryview, direction: str) -> None:
        """Copy outside the loop."""
        self._family().copy(worker, buffer, offset, host_view, direction)

    @hookimpl
    def gdsfw_transport(self, worker: Worker, path: IOPath, before: Any) -> Any:
        """The way the bytes took."""
        return self._family().transport(worker, path, before)

    @hookimpl
    def gdsfw_map(self, session: Any, file: FileHandle, device: int, writable: bool) -> Mapped:
        """Register the file's pages with the device."""
        return self._family().map(session, file, device, writable)

    @hookimpl
    def gdsfw_unmap(self, session: Any, mapped: Mapped) -> None:
        """Undo it."""
        self._family().unmap(session, mapped)

    @hookimpl
    def gdsfw_error(self, domain: Domain, code: int) -> ErrorInfo | None:
        """Meaning of the vendor's codes."""
        return self._vendor().explain(domain, code)
