"""The structs of native/include/gdsfw_gpu.h."""

from __future__ import annotations

import ctypes as c
from collections.abc import Mapping
from typing import ClassVar

from gdsfw.engine.native_table import VERSION_FIELDS, NativeTable, Versioned


class Runtime(Versioned):
    """struct gdsfw_gpu_runtime: addresses of the runtime's functions."""

    _fields_: ClassVar = [
        *VERSION_FIELDS,
        ("copy_to_device", c.c_uint64),
        ("copy_to_host", c.c_uint64),
        ("event_record", c.c_uint64),
        ("event_query", c.c_uint64),
        ("event_wait", c.c_uint64),
        ("stream_wait", c.c_uint64),
        ("not_ready", c.c_int32),
        ("reserved", c.c_uint32),
        ("launch", c.c_uint64),
        ("host_register", c.c_uint64),
        ("host_unregister", c.c_uint64),
        ("host_pointer", c.c_uint64),
    ]


class Kernels(Versioned):
    """struct gdsfw_gpu_kernels: device functions."""

    _fields_: ClassVar = [
        *VERSION_FIELDS,
        ("move", c.c_uint64),
        ("fill", c.c_uint64),
        ("verify", c.c_uint64),
        ("make", c.c_uint64),
    ]


class Move(c.Structure):
    """struct gdsfw_gpu_move."""

    _fields_: ClassVar = [("source", c.c_uint64), ("target", c.c_uint64), ("size", c.c_uint64)]


class Finding(c.Structure):
    """struct gdsfw_gpu_finding."""

    _fields_: ClassVar = [("bad_bytes", c.c_uint64), ("first", c.c_uint64)]


class MapOptions(Versioned):
    """struct gdsfw_gpu_map_options."""

    _fields_: ClassVar = [
        *VERSION_FIELDS,
        ("fd", c.c_int32),
        ("writable", c.c_uint32),
        ("start", c.c_uint64),
        ("length", c.c_uint64),
        ("window", c.c_uint64),
        ("resident", c.c_uint32),
        ("reserved", c.c_uint32),
    ]


class MapReport(Versioned):
    """struct gdsfw_gpu_map_report."""

    _fields_: ClassVar = [
        *VERSION_FIELDS,
        ("registrations", c.c_uint64),
        ("registered_bytes", c.c_uint64),
        ("most_pinned", c.c_uint64),
        ("cold_bytes", c.c_uint64),
        ("populate_ns", c.c_uint64),
        ("register_ns", c.c_uint64),
        ("step", c.c_uint32),
        ("code", c.c_int32),
    ]


class FileLibrary(Versioned):
    """struct gdsfw_gpu_file_library: addresses of the file library's functions, 0 for one it lacks."""

    _fields_: ClassVar = [
        *VERSION_FIELDS,
        ("batch_setup", c.c_uint64),
        ("batch_submit", c.c_uint64),
        ("batch_status", c.c_uint64),
        ("batch_cancel", c.c_uint64),
        ("batch_destroy", c.c_uint64),
        ("read_async", c.c_uint64),
        ("write_async", c.c_uint64),
        ("buffer_register", c.c_uint64),
        ("buffer_deregister", c.c_uint64),
    ]


class FileEntry(c.Structure):
    """struct gdsfw_gpu_file."""

    _fields_: ClassVar = [("file", c.c_uint64), ("fd", c.c_int32), ("reserved", c.c_int32)]


class Path(Versioned):
    """struct gdsfw_gpu_path."""

    _fields_: ClassVar = [
        *VERSION_FIELDS,
        ("gpu", c.POINTER(Runtime)),
        ("library", c.POINTER(FileLibrary)),
        ("stream", c.c_uint64),
        ("events", c.POINTER(c.c_uint64)),
        ("nevents", c.c_uint32),
        ("group_blocks", c.c_uint32),
        ("storage", c.POINTER(NativeTable)),
        ("mirror", c.c_uint64),
        ("mirror_size", c.c_uint64),
        ("scratch", c.c_uint64),
        ("scratch_size", c.c_uint64),
        ("spin", c.c_uint32),
        ("file_code_base", c.c_uint32),
        ("files", c.POINTER(FileEntry)),
        ("nfiles", c.c_uint64),
        ("kernels", c.POINTER(Kernels)),
        ("moves", c.c_uint64),
        ("finding", c.c_uint64),
    ]


def members(struct: type[Versioned], symbols: Mapping[str, int]) -> dict[str, int]:
    """The symbols that are members of a struct."""
    names = {name for name, *_ in struct._fields_}
    return {name: address for name, address in symbols.items() if name in names}
