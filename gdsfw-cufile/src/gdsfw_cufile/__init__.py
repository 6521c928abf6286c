"""gdsfw backend for NVIDIA GPUs: cuFile (GPUDirect Storage), and staging that needs the CUDA driver only.

The logic is gdsfw.gpu's; here are CUDA and cuFile. No vendor library is imported before a job needs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gdsfw import hookimpl
from gdsfw.backend import BackendInfo, Buffer, Check, Device, ErrorInfo, FileHandle, IOPath, Request, Worker
from gdsfw.gpu.presence import check

if TYPE_CHECKING:
    from gdsfw.errors import Domain
    from gdsfw.gpu.family import Family
    from gdsfw.host import Host

__version__ = "0.1.0"

_family_once: list[Family] = []


def _family() -> Family:
    """The hooks' implementation, made when first needed."""
    if not _family_once:
        from gdsfw.gpu.family import Family
        from gdsfw.gpu.vendor import Vendor

        from gdsfw_cufile.errors import explain
        from gdsfw_cufile.library import CuFileLibrary
        from gdsfw_cufile.runtime import CudaRuntime

        _family_once.append(Family(Vendor("cufile", CudaRuntime, CuFileLibrary, explain)))
    return _family_once[0]


@hookimpl
def gdsfw_backend() -> BackendInfo:
    """Describe the backend."""
    from gdsfw.gpu.family import IO_PATHS

    from gdsfw_cufile.options import CuFileOptions

    return BackendInfo(
        name="cufile",
        title="NVIDIA GPU memory through cuFile or staging",
        version=__version__,
        io_paths=IO_PATHS,
        memory=("device", "pinned"),
        options=CuFileOptions,
        capabilities=frozenset({"data", "direct", "flush", "shared_files", "devices"}),
    )


@hookimpl
def gdsfw_probe(host: Host) -> list[Check]:
    """Say which pieces are there."""
    from gdsfw_cufile.pieces import PIECES

    return [check(piece, host) for piece in PIECES]


@hookimpl
def gdsfw_devices() -> list[Device]:
    """The GPUs."""
    return _family().devices()


@hookimpl
def gdsfw_open(options: Any) -> Any:
    """Open the CUDA driver."""
    return _family().open(options)


@hookimpl
def gdsfw_close(session: Any) -> None:
    """Close cuFile."""
    _family().close(session)


@hookimpl
def gdsfw_worker_start(session: Any, worker: Worker) -> Any:
    """Context and stream."""
    return _family().worker_start(session, worker)


@hookimpl
def gdsfw_worker_stop(worker: Worker) -> None:
    """Give them back."""
    _family().worker_stop(worker)


@hookimpl
def gdsfw_alloc(worker: Worker, nbytes: int, memory: str, alignment: int) -> Buffer:
    """Device or pinned memory."""
    return _family().alloc(worker, nbytes, memory, alignment)


@hookimpl
def gdsfw_free(worker: Worker, buffer: Buffer) -> None:
    """Give it back."""
    _family().free(worker, buffer)


@hookimpl
def gdsfw_register_buffer(worker: Worker, buffer: Buffer) -> None:
    """cuFileBufRegister."""
    _family().register_buffer(worker, buffer)


@hookimpl
def gdsfw_deregister_buffer(worker: Worker, buffer: Buffer) -> None:
    """cuFileBufDeregister."""
    _family().deregister_buffer(worker, buffer)


@hookimpl
def gdsfw_register_file(worker: Worker, file: FileHandle) -> None:
    """cuFileHandleRegister."""
    _family().register_file(worker, file)


@hookimpl
def gdsfw_deregister_file(worker: Worker, file: FileHandle) -> None:
    """cuFileHandleDeregister."""
    _family().deregister_file(worker, file)


@hookimpl
def gdsfw_io(worker: Worker, files: Sequence[FileHandle], buffer: Buffer, request: Request) -> IOPath:
    """The data plane."""
    return _family().io(worker, files, buffer, request)


@hookimpl
def gdsfw_copy(worker: Worker, buffer: Buffer, offset: int, host_view: memoryview, direction: str) -> None:
    """Copy outside the loop."""
    _family().copy(worker, buffer, offset, host_view, direction)


@hookimpl
def gdsfw_transport(worker: Worker, path: IOPath, before: Any) -> Any:
    """The way the bytes took."""
    return _family().transport(worker, path, before)


@hookimpl
def gdsfw_error(domain: Domain, code: int) -> ErrorInfo | None:
    """Meaning of CUDA's and cuFile's codes."""
    from gdsfw_cufile.errors import explain

    return explain(domain, code)


__all__ = ["__version__"]
