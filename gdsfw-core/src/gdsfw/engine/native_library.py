"""The C engine's shared library: finding and checking it, its ready tables, its pattern functions."""

from __future__ import annotations

import ctypes as c
import functools
import os
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gdsfw.backend import PatternMismatch
from gdsfw.engine import native_abi as abi
from gdsfw.engine.native_table import TABLE_ABI, MismatchStruct, NativeQueue, NativeTable, PatternStruct
from gdsfw.errors import BackendError, Domain, InternalError, PluginError

if TYPE_CHECKING:
    from gdsfw.backend import Pattern

LIBRARY = "libgdsfw_engine.so"


class Engine:
    """The loaded library.

    Args:
        path: the shared object.

    Raises:
        OSError: it cannot be opened.
        InternalError: it was built for another version of this package.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.library = c.CDLL(str(path))
        self._check_version()
        try:
            abi.declare(self.library)
        except AttributeError as error:
            raise InternalError(f"{path} is incomplete: {error}") from None

    def _check_version(self) -> None:
        try:
            version = self.library.gdsfw_engine_abi
        except AttributeError:
            raise InternalError(f"{self.path} is no gdsfw engine: it has no gdsfw_engine_abi") from None
        version.restype, version.argtypes = c.c_uint32, ()
        if version() != abi.ENGINE_ABI:
            raise InternalError(
                f"{self.path} has engine interface {version()}, this gdsfw needs {abi.ENGINE_ABI}",
                hint="reinstall gdsfw-core, so that library and Python code come from one build",
            )

    def table(self, name: str) -> NativeTable:
        """A copy of one of the library's tables (`gdsfw_psync`), to be changed as needed."""
        return NativeTable.from_buffer_copy(NativeTable.in_dll(self.library, name))

    def queue(self, name: str) -> Any:
        """A pointer to one of the library's queues, for NativeTable.queue."""
        return c.pointer(NativeQueue.in_dll(self.library, name))


@functools.lru_cache(maxsize=1)
def _load() -> tuple[Engine | None, str]:
    resource = files("gdsfw.engine") / LIBRARY
    if not resource.is_file():
        return None, f"the C engine was not built: there is no {resource}"
    with as_file(resource) as path:
        try:
            return Engine(path), ""
        except OSError as error:
            return None, f"the C engine does not load: {error}"


def load() -> Engine | None:
    """The C engine, or None where it is missing (`available` says why).

    Raises:
        InternalError: the library belongs to another version of gdsfw.
    """
    return _load()[0]


def available() -> tuple[bool, str]:
    """Whether the C engine is there, and the reason when it is not."""
    engine, reason = _load()
    return engine is not None, reason


def engine() -> Engine:
    """The C engine, for code that runs only where there is one.

    Raises:
        InternalError: it is missing.
    """
    found, reason = _load()
    if found is None:
        raise InternalError(reason)
    return found


def psync_table() -> NativeTable:
    """pread and pwrite on host memory; file values are addresses of FdFile."""
    return engine().table("gdsfw_psync")


def noop_table() -> NativeTable:
    """Moves nothing; any file value will do."""
    return engine().table("gdsfw_noop")


def check_table(table: NativeTable, owner: str) -> None:
    """Refuse a table that this engine cannot drive.

    Args:
        owner: the backend's name, for the message.

    Raises:
        PluginError: another interface version, or a struct too small to hold one.
    """
    if table.abi != TABLE_ABI:
        where = getattr(table, "path", "its native table")
        raise PluginError(
            f"backend {owner}: {where} has interface version {table.abi}, this gdsfw has {TABLE_ABI}",
            hint="install versions of gdsfw and of the backend that belong together",
        )
    if table.struct_size < NativeTable.max_transfer.offset:
        raise PluginError(f"backend {owner}: struct_size {table.struct_size} of its native table is too small")
    if table.queue and table.queue.contents.abi != TABLE_ABI:
        raise PluginError(
            f"backend {owner}: the queue of its native table has interface version {table.queue.contents.abi}, "
            f"this gdsfw has {TABLE_ABI}"
        )


def pattern_struct(pattern: Pattern) -> PatternStruct:
    """A pattern as the C interface has it."""
    return PatternStruct(seed=pattern.seed, file_id=pattern.file_id, generation=pattern.generation)


def mismatch_of(found: MismatchStruct) -> PatternMismatch | None:
    """What a verification found; None when nothing differs."""
    if not found.bad_bytes:
        return None
    shown = found.length
    return PatternMismatch(
        found.file_offset, bytes(found.expected[:shown]), bytes(found.found[:shown]), found.bad_bytes
    )


def address_of(view: memoryview) -> tuple[int, Any]:
    """Address of a view's bytes, and what must stay referenced while it is used. Read-only views are copied."""
    if view.readonly:
        copy = c.create_string_buffer(view.tobytes(), view.nbytes)
        return c.addressof(copy), copy
    held = (c.c_uint8 * view.nbytes).from_buffer(view)
    return c.addressof(held), held


def pattern_fill(view: memoryview, file_offset: int, pattern: Pattern) -> None:
    """Write the pattern for the file range that begins at `file_offset` (bytes) into a writable view."""
    address, held = address_of(view)
    engine().library.gdsfw_pattern_fill(address, view.nbytes, file_offset, c.byref(pattern_struct(pattern)))
    del held


def pattern_verify(view: memoryview, file_offset: int, pattern: Pattern) -> PatternMismatch | None:
    """Compare a view with the file range that begins at `file_offset` (bytes); None when all bytes match."""
    address, held = address_of(view)
    found = MismatchStruct()
    engine().library.gdsfw_pattern_verify(
        address, view.nbytes, file_offset, c.byref(pattern_struct(pattern)), c.byref(found)
    )
    del held
    return mismatch_of(found)


def raise_verdict(operation: str, verdict: abi.Verdict) -> None:
    """Raise what a call's verdict says, if it names an error.

    Raises:
        OSError: the kernel's error number.
        BackendError: a code of the GPU runtime or the file library.
    """
    if verdict.domain == Domain.NONE:
        return
    if verdict.domain == Domain.ERRNO:
        raise OSError(verdict.code, os.strerror(verdict.code))
    raise BackendError(operation, Domain(verdict.domain), verdict.code)
