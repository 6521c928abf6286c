"""Sessions for programs: a file's pages as device memory, and lists of blocks read into device memory."""

from __future__ import annotations

import ctypes as c
import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gdsfw import dlpack
from gdsfw.backend import Buffer, Request, Target, Worker
from gdsfw.errors import BackendError, Domain, UsageError

if TYPE_CHECKING:
    from types import TracebackType

    from gdsfw.backend import FileHandle, IOPath, Mapped
    from gdsfw.engine.native_table import NativeTable
    from gdsfw.plugins import JobHooks, PluginManager


class DeviceView:
    """A file's own pages as memory of a device: one dimension of unsigned bytes.

    It has `__cuda_array_interface__` and DLPack (`torch.from_dlpack(view)`). What a consumer of the former holds is
    this object; of the latter, the capsule. The pages are unregistered by `close`, which raises BufferError while a
    capsule is in use, or when the last reference goes. Writing to a read-only view through its raw address is
    undefined: nobody may write those pages.

    Attributes:
        address: on the device.
        nbytes: size in bytes.
        device: ordinal.
        read_only: whether the device may only read.
    """

    def __init__(self, owner: Session, mapped: Mapped, handle: FileHandle) -> None:
        self.address, self.nbytes = mapped.address, mapped.nbytes
        self.device, self.read_only = mapped.device, not mapped.writable
        self._owner: Session | None = owner
        self._mapped, self._handle = mapped, handle
        self._exports = 0
        self._lock = threading.Lock()

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Version 3 of the interface of numba, cupy and torch."""
        self._open()
        return {
            "shape": (self.nbytes,), "typestr": "|u1", "data": (self.address, self.read_only), "version": 3,
            "strides": None, "stream": None,
        }  # fmt: skip

    def __dlpack_device__(self) -> tuple[int, int]:
        """DLPack's type and number of the device."""
        return self._mapped.dlpack_type, self.device

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A capsule of the pages.

        Args:
            stream: the consumer's; nothing has to be waited for.

        Raises:
            BufferError: a copy or another device is asked for, or the consumer's version cannot say read-only.
        """
        self._open()
        if copy or (dl_device is not None and tuple(dl_device) != self.__dlpack_device__()):
            raise BufferError("a view of a file's pages is neither copied nor moved to another device")
        versioned = max_version is not None and max_version[0] >= 1
        if self.read_only and not versioned:
            raise BufferError(
                "the consumer asks for a version of DLPack that cannot say read-only; take a newer one, or "
                "map with writable=True on tmpfs"
            )
        with self._lock:
            self._exports += 1
        return dlpack.export(
            self.address,
            self.nbytes,
            self.__dlpack_device__(),
            read_only=self.read_only,
            versioned=versioned,
            done=self._let_go,
        )

    def close(self) -> None:
        """Unregister the pages; a second call does nothing.

        Raises:
            BufferError: a DLPack capsule of the view is in use.
        """
        with self._lock:
            if self._exports:
                raise BufferError(f"{self._exports} exports of {self._handle.target.name} are in use")
            owner, self._owner = self._owner, None
        if owner is not None:
            owner._unmap(self._mapped, self._handle)

    def _let_go(self) -> None:
        with self._lock:
            self._exports -= 1

    def _open(self) -> None:
        if self._owner is None:
            raise BufferError(f"the view of {self._handle.target.name} is closed")

    def __len__(self) -> int:
        return self.nbytes

    def __enter__(self) -> DeviceView:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_owner", None) is not None:
            self.close()


@dataclass
class _Reader:
    """A path that stays open for one file and one piece of device memory."""

    path: IOPath
    table: NativeTable
    buffer: Buffer
    block: int
    depth: int
    undo: ExitStack
    lock: threading.Lock = field(default_factory=threading.Lock)


class Session:
    """An open backend, for programs. Made by `gdsfw.open_session`; use it in `with`.

    `map` may be called from any thread, `read_many` from the thread that made the session.
    """

    def __init__(self, backend: str, hooks: JobHooks, options: Any) -> None:
        self._backend, self._hooks = backend, hooks
        self._session: Any = hooks.gdsfw_open(options=options)
        self._options = options
        self._views = 0
        self._readers: dict[tuple[Any, ...], _Reader] = {}
        self._lock = threading.Lock()
        self._closed = self._closes_with_last_view = False

    def map(self, path: str | os.PathLike[str], *, device: int = 0, writable: bool = False) -> DeviceView:
        """The whole file, its pages registered with a device.

        Args:
            device: ordinal.
            writable: let the device write; works where the kernel lets such pages be pinned (tmpfs).

        Raises:
            UnavailableError: there is no such file or device, or the pages cannot be registered, and why.
            UsageError: the backend has no memory of devices, or the file is empty.
        """
        handle = self._open_file(path, writable)
        try:
            mapped = self._hooks.gdsfw_map(session=self._session, file=handle, device=device, writable=writable)
        except BaseException:
            self._hooks.gdsfw_close_file(session=self._session, file=handle)
            raise
        with self._lock:
            self._views += 1
        return DeviceView(self, mapped, handle)

    def read_many(
        self,
        path: str | os.PathLike[str],
        offsets: Sequence[int],
        sizes: Sequence[int] | int,
        out: Any,
        *,
        io_path: str = "auto",
        iodepth: int = 256,
    ) -> int:
        """Read blocks of a file into device memory, one behind the other.

        Args:
            offsets: of the blocks in the file, in bytes.
            sizes: of the blocks in bytes, or one for all.
            out: device memory: an object with `__cuda_array_interface__`, contiguous and large enough for all blocks.
            io_path: as in a workload.
            iodepth: most blocks in flight.

        Returns the bytes read, all of those asked for. The path stays open for the next call with the same file, `out`
        and io_path.

        Raises:
            BackendError: a read failed (the file ends before a block: ENODATA), with the block's offset.
        """
        lengths = [sizes] * len(offsets) if isinstance(sizes, int) else list(sizes)
        if len(lengths) != len(offsets):
            raise UsageError(f"{len(offsets)} offsets, but {len(lengths)} sizes")
        address, nbytes, device = _device_memory(out)
        if sum(lengths) > nbytes:
            raise UsageError(f"{sum(lengths)} bytes are asked for, `out` has {nbytes}")
        if not lengths:
            return 0
        reader = self._reader(Path(path), (address, nbytes, device), max(lengths), io_path, iodepth)
        with reader.lock:
            return _read(reader, list(offsets), lengths, str(path))

    def close(self) -> None:
        """Close the backend; a second call does nothing.

        Raises:
            BufferError: a view is open.
        """
        with self._lock:
            if self._views:
                raise BufferError(f"{self._views} views of the session are open")
            closed, self._closed = self._closed, True
        if not closed:
            for reader in self._readers.values():
                reader.undo.close()
            self._readers.clear()
            self._hooks.gdsfw_close(session=self._session)

    def _open_file(self, path: str | os.PathLike[str], writable: bool = False) -> FileHandle:
        if self._closed:
            raise UsageError("the session is closed")
        name = os.fspath(path)
        target = Target(name, 0, os.stat(name).st_size, direct="false", allow_overwrite=writable, job="session")  # noqa: PTH116
        handle: FileHandle = self._hooks.gdsfw_open_file(
            session=self._session, target=target, mode="rw" if writable else "r"
        )
        return handle

    def _unmap(self, mapped: Mapped, handle: FileHandle) -> None:
        self._hooks.gdsfw_unmap(session=self._session, mapped=mapped)
        self._hooks.gdsfw_close_file(session=self._session, file=handle)
        with self._lock:
            self._views -= 1
            closes_now = self._closes_with_last_view and not self._views
        if closes_now:
            self.close()

    def _reader(self, path: Path, out: tuple[int, int, int], block: int, io_path: str, depth: int) -> _Reader:
        key = (path, *out, io_path, depth)
        found = self._readers.get(key)
        if found is not None and found.block >= block:
            return found
        if found is not None:
            found.undo.close()
        self._readers[key] = self._make_reader(path, out, block, io_path, depth)
        return self._readers[key]

    def _make_reader(self, path: Path, out: tuple[int, int, int], block: int, io_path: str, depth: int) -> _Reader:
        from gdsfw.workload.model import Job

        address, nbytes, device = out
        job = Job.model_validate({"name": "read-many", "rw": "randread", "io_path": io_path, "iodepth": depth})
        worker = Worker(job, 0, options=self._options, session=self._session, device=device)
        hooks = self._hooks
        with ExitStack() as undo:
            handle = self._open_file(path)
            undo.callback(hooks.gdsfw_close_file, session=self._session, file=handle)
            worker.state = hooks.gdsfw_worker_start(session=self._session, worker=worker)
            undo.callback(hooks.gdsfw_worker_stop, worker=worker)
            buffer = Buffer(address, nbytes, "device")
            request = Request(
                io_path, "read", block, 1, [(0, handle.target.nbytes)], depth, max(1, depth // 2), "false"
            )
            hooks.gdsfw_register_buffer(worker=worker, buffer=buffer)
            undo.callback(hooks.gdsfw_deregister_buffer, worker=worker, buffer=buffer)
            hooks.gdsfw_register_file(worker=worker, file=handle, request=request)
            undo.callback(hooks.gdsfw_deregister_file, worker=worker, file=handle)
            plane = hooks.gdsfw_io(worker=worker, files=[handle], buffer=buffer, request=request)
            undo.callback(plane.close)
            if plane.native is None:
                raise UsageError(f"io_path {plane.name} of backend {self._backend} has no native calls for read_many")
            return _Reader(plane, plane.native, buffer, block, depth, undo.pop_all())

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            # Views may live in the frames of an error on its way up: it must not be hidden behind a BufferError.
            self._closes_with_last_view = error is not None and self._views > 0
        if not self._closes_with_last_view:
            self.close()


def open_session(
    backend: str, options: Mapping[str, Any] | None = None, *, plugins: PluginManager | None = None
) -> Session:
    """Open a backend for a program.

    Args:
        backend: its name, as in a workload.
        options: as in `backend_options: {<name>: ...}`.
        plugins: the plugins to use; those installed by default.

    Raises:
        UnavailableError: what it needs is absent.
        UsageError: there is no such backend or option.
    """
    from gdsfw.plugins import PluginManager as Manager

    manager = plugins or Manager.installed(os.environ)
    return Session(backend, manager.job_hooks(backend), manager.validate_options(backend, dict(options or {})))


def _device_memory(out: Any) -> tuple[int, int, int]:
    """(address, bytes, device ordinal) of an object with __cuda_array_interface__."""
    try:
        interface = out.__cuda_array_interface__
    except AttributeError:
        raise UsageError("`out` has no __cuda_array_interface__: it is no device memory") from None
    address, read_only = interface["data"]
    if read_only or interface.get("strides"):
        raise UsageError("`out` is read-only or not contiguous")
    nbytes = int(interface["typestr"][2:])
    for extent in interface["shape"]:
        nbytes *= extent
    device = getattr(out, "device", 0)
    index = getattr(device, "index", getattr(device, "id", device))
    return int(address), nbytes, index if isinstance(index, int) else 0


def _read(reader: _Reader, offsets: list[int], sizes: list[int], name: str) -> int:
    from gdsfw.engine.native_library import engine
    from gdsfw.engine.native_table import ListResult, QueueOptions, RequestStruct

    plane, buffer, count = reader.path, reader.buffer, len(offsets)
    requests, at, value = (RequestStruct * count)(), 0, plane.file_values[0]
    for request, offset, size in zip(requests, offsets, sizes, strict=True):
        request.file, request.buffer_base, request.size = value, buffer.address, size
        request.file_offset, request.buffer_offset = offset, at
        at += size
    values = (c.c_uint64 * 1)(value)
    options = QueueOptions(
        iodepth=min(reader.depth, plane.iodepth) if plane.iodepth > 1 else 1,
        iodepth_batch=plane.iodepth_batch or 1,
        buffer_base=buffer.address,
        buffer_size=buffer.nbytes,
        max_block=reader.block,
        files=values,
        nfiles=1,
    )
    result = ListResult()
    if engine().library.gdsfw_move_list(reader.table, options, requests, count, result):
        raise MemoryError("no memory for the list of blocks")
    if result.domain:
        where = f"{name}, {sizes[result.index]} bytes at {offsets[result.index]}"
        raise BackendError("read", Domain(result.domain), result.code, where)
    return int(result.bytes)
