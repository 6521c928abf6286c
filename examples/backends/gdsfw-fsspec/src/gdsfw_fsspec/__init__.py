"""A gdsfw backend over fsspec: files in memory, archives, web servers and object stores by URL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gdsfw import hookimpl, host_memory
from gdsfw.backend import BackendInfo, Buffer, FileHandle, IOPath, IOPathInfo, Request, Target, Transport, Worker
from gdsfw.errors import Domain, UnavailableError

if TYPE_CHECKING:
    from gdsfw.backend import Check, ErrorInfo
    from gdsfw.host import Host

    from gdsfw_fsspec.options import FsspecOptions
    from gdsfw_fsspec.paths import Calls

__version__ = "0.1.0"
#: Threads of one worker; each is a request on its way.
MOST_IN_FLIGHT = 64


@hookimpl
def gdsfw_backend() -> BackendInfo:
    """Two paths on host memory. Names are URLs, or names below the option `base`.

    `sparse` is not declared: bytes that were never written read as zeros, but memory:// spends memory on them.
    """
    from gdsfw_fsspec.options import FsspecOptions

    return BackendInfo(
        name="fsspec",
        title="Object stores, web servers and archives through fsspec",
        version=__version__,
        io_paths=(
            IOPathInfo("fsspec", native=False, summary="one request at a time"),
            IOPathInfo(
                "threads",
                native=False,
                max_iodepth=MOST_IN_FLIGHT,
                summary="a thread for each request in flight; where a file has one position they wait for each other",
            ),
        ),
        options=FsspecOptions,
        capabilities=frozenset({"data", "flush", "shared_files"}),
        namespace="own",
    )


@hookimpl
def gdsfw_probe(options: FsspecOptions, host: Host) -> list[Check]:
    """Which protocols can be opened here, and what to install for the others."""
    from gdsfw_fsspec.protocols import checks

    return checks(options.base, host)


@hookimpl
def gdsfw_open(options: FsspecOptions) -> FsspecOptions:
    """See that fsspec is there; its file systems are made when a file is opened."""
    try:
        import fsspec  # noqa: F401
    except ImportError as error:
        raise UnavailableError("the Python package fsspec is not installed", hint="pip install fsspec") from error
    return options


@hookimpl
def gdsfw_open_file(session: FsspecOptions, target: Target, mode: str) -> FileHandle:
    """Open a URL; a file that this run did not make is written only where the job may overwrite."""
    from gdsfw_fsspec.opening import open_target

    return open_target(target, mode, session)


@hookimpl
def gdsfw_close_file(file: FileHandle) -> None:
    """Close it."""
    file.state.close()


@hookimpl
def gdsfw_alloc(nbytes: int, memory: str, alignment: int) -> Buffer:
    """Memory of the host."""
    return host_memory.allocate(nbytes, memory, alignment)


@hookimpl
def gdsfw_free(buffer: Buffer) -> None:
    """Give it back."""
    host_memory.free(buffer)


class _Path(IOPath):
    """An IOPath whose threads end with it."""

    def __init__(self, name: str, files: Sequence[FileHandle], calls: Calls, iodepth: int, notes: list[str]) -> None:
        super().__init__(name, files, python=calls, iodepth=iodepth, registers=False, notes=notes)
        self.calls = calls

    def close(self) -> None:
        """End the threads."""
        self.calls.close()


@hookimpl
def gdsfw_io(files: Sequence[FileHandle], buffer: Buffer, request: Request) -> IOPath:
    """One worker's way to its files."""
    from gdsfw_fsspec.paths import Calls, Threads

    assert buffer.host_view is not None
    if request.io_path != "threads":
        return _Path("fsspec", files, Calls(buffer.host_view), 1, [])
    depth = min(request.iodepth, MOST_IN_FLIGHT)
    waits = sorted({file.state.way.words for file in files if not file.state.way.parallel})
    notes = [f"requests to one file wait for each other: {words}" for words in waits] if depth > 1 else []
    return _Path("threads", files, Threads(buffer.host_view, depth), depth, notes)


@hookimpl
def gdsfw_sync(file: FileHandle, mode: str) -> None:
    """Wait for the storage; there is no device."""
    if mode != "device":
        file.state.way.flush(mode == "fdatasync")


@hookimpl
def gdsfw_transport(worker: Worker, path: IOPath, before: Any) -> Transport:
    """To the host's memory; whether a server or the kernel had the bytes in a cache of its own is not known."""
    ways = sorted({file.state.way.words for file in path.files})
    all_memory = all(words.startswith("memory://") for words in ways)
    failure = getattr(path.python, "first_failure", "")
    evidence = (*ways, *((f"first failure: {failure}",) if failure else ()))
    return Transport("host", "warm" if all_memory else "unknown", evidence=evidence)


@hookimpl
def gdsfw_error(domain: Domain, code: int) -> ErrorInfo | None:
    """HTTP statuses are the codes of the file library here."""
    from gdsfw_fsspec.failures import explain

    return explain(domain, code)
