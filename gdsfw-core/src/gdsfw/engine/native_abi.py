"""The C engine as ctypes sees it: the structs of native/engine.h and every function of the library.

What a backend needs (native/include/gdsfw_backend.h) is in native_table.py.
"""

from __future__ import annotations

import ctypes as c
from typing import ClassVar, Final

from gdsfw.engine.histogram import BUCKETS
from gdsfw.engine.native_table import (
    VERSION_FIELDS,
    BlockDataStruct,
    ListResult,
    MismatchStruct,
    NativeTable,
    PatternStruct,
    QueueOptions,
    RequestStruct,
    UringOptions,
    UringReport,
    Versioned,
)

#: GDSFW_ENGINE_ABI of engine.h, what the library states.
ENGINE_ABI: Final = 2


class BlockChoice(c.Structure):
    """struct gdsfw_block_choice."""

    _fields_: ClassVar = [("size", c.c_uint64), ("weight", c.c_uint64)]


class BlocksStruct(c.Structure):
    """struct gdsfw_blocks."""

    _fields_: ClassVar = [("choices", c.POINTER(BlockChoice)), ("count", c.c_uint64), ("step", c.c_uint64)]


class SpanStruct(c.Structure):
    """struct gdsfw_span."""

    _fields_: ClassVar = [("start", c.c_uint64), ("length", c.c_uint64)]


class LoopFileStruct(c.Structure):
    """struct gdsfw_loop_file."""

    _fields_: ClassVar = [
        ("value", c.c_uint64),
        ("file_id", c.c_uint64),
        ("pattern_seed", c.c_uint64),
        ("start", c.c_uint64),
        ("length", c.c_uint64),
        ("known", c.POINTER(SpanStruct)),
        ("known_count", c.c_uint64),
    ]


class Shape(c.Structure):
    """struct gdsfw_shape."""

    _fields_: ClassVar = [
        ("reads", c.c_uint32),
        ("writes", c.c_uint32),
        ("read_percent", c.c_uint32),
        ("random", c.c_uint32),
        ("distribution", c.c_uint32),
        ("once_per_block", c.c_uint32),
        ("file_service", c.c_uint32),
        ("file_count", c.c_uint32),
        ("theta", c.c_double),
        ("block_align", c.c_uint64),
        ("seed", c.c_uint64),
        ("io_size", c.c_uint64),
        ("loops", c.c_uint64),
        ("unlimited", c.c_uint64),
        ("blocks", BlocksStruct * 2),
        ("files", c.POINTER(LoopFileStruct)),
    ]


class LiveStruct(c.Structure):
    """struct gdsfw_live; lies at an address that is a multiple of 64."""

    _fields_: ClassVar = [
        ("stop", c.c_uint32),
        ("padding", c.c_uint8 * 60),
        ("ios", c.c_uint64 * 2),
        ("bytes", c.c_uint64 * 2),
        ("errors", c.c_uint64),
        ("measuring", c.c_uint32),
        ("operation", c.c_uint32),
        ("file", c.c_uint32),
        ("reserved", c.c_uint32),
        ("offset", c.c_uint64),
        ("size", c.c_uint64),
        ("since_ns", c.c_uint64),
        ("padding_after", c.c_uint8 * 48),
    ]


class RangeStruct(c.Structure):
    """struct gdsfw_range."""

    _fields_: ClassVar = [("file", c.c_uint64), ("start", c.c_uint64), ("length", c.c_uint64)]


class Config(Versioned):
    """struct gdsfw_config."""

    ABI = ENGINE_ABI
    _fields_: ClassVar = [
        *VERSION_FIELDS,
        ("io", c.POINTER(NativeTable)),
        ("live", c.POINTER(LiveStruct)),
        ("shape", Shape),
        ("buffer", c.c_uint64),
        ("buffer_size", c.c_uint64),
        ("buffer_offset", c.c_uint64),
        ("slot_stride", c.c_uint64),
        ("iodepth", c.c_uint32),
        ("batch_submit", c.c_uint32),
        ("batch_complete", c.c_uint32),
        ("latencies", c.c_uint32),
        ("runtime_ns", c.c_uint64),
        ("ramp_ns", c.c_uint64),
        ("rate_bytes", c.c_uint64 * 2),
        ("rate_iops", c.c_uint64 * 2),
        ("think_time_ns", c.c_uint64),
        ("fsync_every", c.c_uint64),
        ("fdatasync_every", c.c_uint64),
        ("error_limit", c.c_uint64),
        ("poisson", c.c_uint32),
        ("end_fsync", c.c_uint32),
        ("write_fill", c.c_uint32),
        ("compress_percent", c.c_uint32),
        ("dedupe_percent", c.c_uint32),
        ("check", c.c_uint32),
        ("generations", c.c_uint32),
        ("register_per_io", c.c_uint32),
        ("log_fd", c.c_int32),
        ("reserved", c.c_uint32),
        ("written", c.POINTER(RangeStruct)),
        ("written_room", c.c_uint64),
    ]


class PlannedIO(c.Structure):
    """struct gdsfw_planned_io."""

    _fields_: ClassVar = [
        ("direction", c.c_uint32),
        ("file", c.c_uint32),
        ("offset", c.c_uint64),
        ("size", c.c_uint64),
    ]


class FailureStruct(c.Structure):
    """struct gdsfw_failure."""

    _fields_: ClassVar = [
        ("operation", c.c_uint32),
        ("file", c.c_uint32),
        ("offset", c.c_uint64),
        ("size", c.c_uint64),
        ("domain", c.c_uint32),
        ("reserved", c.c_uint32),
        ("code", c.c_int64),
    ]


class BadBlockStruct(c.Structure):
    """struct gdsfw_bad_block."""

    _fields_: ClassVar = [("file", c.c_uint64), ("mismatch", MismatchStruct)]


class HistogramStruct(c.Structure):
    """struct gdsfw_histogram."""

    _fields_: ClassVar = [
        ("total_low", c.c_uint64),
        ("total_high", c.c_uint64),
        ("square_low", c.c_uint64),
        ("square_high", c.c_uint64),
        ("min", c.c_uint64),
        ("max", c.c_uint64),
        ("counts", c.c_uint64 * BUCKETS),
    ]


class StatsStruct(c.Structure):
    """struct gdsfw_stats."""

    _fields_: ClassVar = [
        ("ios", c.c_uint64),
        ("bytes", c.c_uint64),
        ("short_ios", c.c_uint64),
        ("errors", c.c_uint64),
        ("clat", HistogramStruct),
        ("lat", HistogramStruct),
        ("slat", HistogramStruct),
    ]


class Result(Versioned):
    """struct gdsfw_result."""

    ABI = ENGINE_ABI
    _fields_: ClassVar = [
        *VERSION_FIELDS,
        ("ended_by", c.c_uint32),
        ("separate_lat", c.c_uint32),
        ("started_ns", c.c_uint64),
        ("ended_ns", c.c_uint64),
        ("total_ios", c.c_uint64),
        ("total_bytes", c.c_uint64),
        ("flushes", c.c_uint64),
        ("flush_ns", c.c_uint64),
        ("storage_ns", c.c_uint64),
        ("copy_ns", c.c_uint64),
        ("cpu_ns", c.c_uint64),
        ("checked_bytes", c.c_uint64),
        ("expected_bytes", c.c_uint64),
        ("checked_blocks", c.c_uint64),
        ("bad_blocks", c.c_uint64),
        ("unknown_bytes", c.c_uint64),
        ("failure_count", c.c_uint64),
        ("written_count", c.c_uint64),
        ("log_errno", c.c_uint64),
        ("depths", c.c_uint64 * 16),
        ("failures", FailureStruct * 16),
        ("bad", BadBlockStruct * 16),
        ("stats", StatsStruct * 2),
    ]


class Verdict(c.Structure):
    """struct gdsfw_verdict."""

    _fields_: ClassVar = [("domain", c.c_uint32), ("reserved", c.c_uint32), ("code", c.c_int64)]


_P = c.POINTER

#: Every function of the library: name -> (result type, argument types).
FUNCTIONS: Final[dict[str, tuple[type | None, tuple[type, ...]]]] = {
    "gdsfw_engine_abi": (c.c_uint32, ()),
    "gdsfw_engine_sizes": (c.c_uint64, (c.c_uint32,)),
    "gdsfw_run": (c.c_int32, (_P(Config), _P(Result))),
    "gdsfw_stop": (None, (_P(LiveStruct),)),
    "gdsfw_preview": (c.c_int64, (_P(Shape), _P(PlannedIO), c.c_uint64)),
    "gdsfw_move_list": (
        c.c_int64,
        (_P(NativeTable), _P(QueueOptions), _P(RequestStruct), c.c_uint64, _P(ListResult)),
    ),
    "gdsfw_permute": (None, (c.c_uint64,) * 6 + (_P(c.c_uint64),)),
    "gdsfw_histogram_index": (c.c_uint32, (c.c_uint64,)),
    "gdsfw_pattern_fill": (None, (c.c_uint64, c.c_uint64, c.c_int64, _P(PatternStruct))),
    "gdsfw_pattern_verify": (
        c.c_uint64,
        (c.c_uint64, c.c_uint64, c.c_int64, _P(PatternStruct), _P(MismatchStruct)),
    ),
    "gdsfw_decode": (Verdict, (c.c_int64, c.c_int32, c.c_uint32)),
    "gdsfw_call_move": (c.c_int64, (_P(NativeTable), _P(RequestStruct), _P(Verdict))),
    "gdsfw_call_flush": (c.c_int64, (_P(NativeTable), c.c_uint64, c.c_int32, _P(Verdict))),
    "gdsfw_call_copy": (
        c.c_int64,
        (_P(NativeTable), c.c_uint64, c.c_int64, c.c_uint64, c.c_uint64, c.c_int32, _P(Verdict)),
    ),
    "gdsfw_call_make_data": (
        c.c_int64,
        (_P(NativeTable), c.c_uint64, c.c_int64, c.c_uint64, _P(BlockDataStruct), _P(Verdict)),
    ),
    "gdsfw_call_fill": (
        c.c_int64,
        (_P(NativeTable), c.c_uint64, c.c_int64, c.c_uint64, c.c_int64, _P(PatternStruct), _P(Verdict)),
    ),
    "gdsfw_call_verify": (
        c.c_int64,
        (
            _P(NativeTable),
            c.c_uint64,
            c.c_int64,
            c.c_uint64,
            c.c_int64,
            _P(PatternStruct),
            _P(MismatchStruct),
            _P(Verdict),
        ),
    ),
    "gdsfw_uring_try": (c.c_int64, (_P(UringOptions), _P(QueueOptions), _P(UringReport))),
    "gdsfw_call_register": (c.c_int64, (_P(NativeTable), c.c_uint64, c.c_uint64, _P(Verdict))),
}

#: Tables that the library offers as data.
TABLES: Final = ("gdsfw_psync", "gdsfw_noop", "gdsfw_uring")


def declare(library: c.CDLL) -> None:
    """Give every function of `library` its types. AttributeError names one that is missing."""
    for name, (result, arguments) in FUNCTIONS.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
