"""One worker's loop in the C engine: a LoopSpec as the engine's config, and the engine's result as a LoopResult."""

from __future__ import annotations

import ctypes as c
import errno
import os
from array import array
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, cast

from gdsfw.engine import native_abi as abi
from gdsfw.engine.histogram import Histogram
from gdsfw.engine.io_log import open_log
from gdsfw.engine.native_library import check_table, engine, mismatch_of
from gdsfw.engine.spec import (
    DirectionStats,
    EndedBy,
    InFlight,
    Live,
    Loop,
    LoopError,
    LoopResult,
    Mismatch,
    VerifyStats,
)
from gdsfw.engine.track import generations_too_large
from gdsfw.errors import Domain, InternalError, UnavailableError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gdsfw.backend import Buffer, IOPath
    from gdsfw.engine.spec import BlockSizes, LoopFile, LoopSpec

Operation = Literal["read", "write", "flush", "fill", "copy", "verify", "submit", "reap", "open", "register"]

#: By enum operation of engine.h.
OPERATIONS = ("none", "read", "write", "flush", "fill", "copy", "verify", "submit", "reap", "open", "register")
SERVICES = ("roundrobin", "random", "sequential")
DISTRIBUTIONS = ("uniform", "zipf", "pareto", "normal", "runs")
FILLS = ("random", "zero", "pattern")
#: Merged ranges of acknowledged writes that are kept; more than that are not worth a manifest entry each.
WRITTEN_ROOM = 1 << 14
CACHE_LINE = 64


def _blocks(sizes: BlockSizes) -> abi.BlocksStruct:
    choices = (abi.BlockChoice * len(sizes.choices))(*(abi.BlockChoice(size, weight) for size, weight in sizes.choices))
    return abi.BlocksStruct(choices, len(sizes.choices), sizes.step)


def _file(value: int, file: LoopFile) -> abi.LoopFileStruct:
    entry = abi.LoopFileStruct(value, file.file_id, file.pattern_seed, file.start, file.length)
    if file.known is not None:
        # Room for one at least: a pointer to nothing would mean that everything is known.
        entry.known = (abi.SpanStruct * max(1, len(file.known)))(*(abi.SpanStruct(*span) for span in file.known))
        entry.known_count = len(file.known)
    return entry


def shape(spec: LoopSpec, file_values: tuple[int, ...] = ()) -> abi.Shape:
    """The sequence of I/O of a spec; `file_values` are what the table calls the files (0 for a preview)."""
    values = file_values or (0,) * len(spec.files)
    entries = [_file(value, file) for value, file in zip(values, spec.files, strict=True)]
    return abi.Shape(
        reads=spec.rw != "write",
        writes=spec.rw != "read",
        read_percent=spec.read_percent,
        random=spec.random,
        distribution=DISTRIBUTIONS.index(spec.distribution.kind),
        once_per_block=spec.distribution.once_per_block,
        file_service=SERVICES.index(spec.file_service),
        file_count=len(entries),
        theta=spec.distribution.theta,
        block_align=spec.block_align,
        seed=spec.seed,
        io_size=spec.io_size,
        loops=spec.loops,
        unlimited=spec.runtime_ns > 0,
        blocks=(_blocks(spec.read_blocks), _blocks(spec.write_blocks)),
        files=(abi.LoopFileStruct * len(entries))(*entries),
    )


def preview(spec: LoopSpec, count: int) -> list[tuple[str, int, int, int]]:
    """The first `count` I/Os of a spec as (direction, file index, offset, size), without doing them.

    Raises:
        InternalError: the spec cannot issue anything.
    """
    planned = (abi.PlannedIO * count)()
    found = engine().library.gdsfw_preview(c.byref(shape(spec)), planned, count)
    if found < 0:
        raise InternalError(f"the engine refuses the sequence: {os.strerror(-found)}")
    return [("write" if io.direction else "read", io.file, io.offset, io.size) for io in planned[:found]]


def _on_own_cache_line(kind: type[abi.LiveStruct]) -> abi.LiveStruct:
    """A struct at a multiple of the cache line, with a spare line on both sides against prefetching neighbours."""
    memory = (c.c_uint8 * (c.sizeof(kind) + 4 * CACHE_LINE))()
    offset = 2 * CACHE_LINE - c.addressof(memory) % CACHE_LINE
    return kind.from_buffer(memory, offset)


class NativeLoop(Loop):
    """A loop driven by the C engine.

    Raises:
        PluginError: the path's table has another interface version.
        InternalError: the engine is missing or belongs to another version.
    """

    def __init__(self, spec: LoopSpec, path: IOPath, buffer: Buffer) -> None:
        super().__init__(spec, path, buffer)
        assert path.native is not None
        check_table(path.native, path.name)
        self._library = engine().library
        self._table = path.native
        self._live = _on_own_cache_line(abi.LiveStruct)
        self._result = abi.Result()
        tracks = spec.rw != "read" and spec.write_fill == "pattern"
        generations = spec.verify is not None and spec.verify.generations
        self._written = (abi.RangeStruct * WRITTEN_ROOM)() if tracks and not generations else None
        self._config = self._make_config()

    def run(self) -> LoopResult:
        """Do the I/O with the interpreter lock released.

        Raises:
            UsageError: a key asks for something that the path's table lacks, or needs too much memory.
            UnavailableError: out of memory; the I/O log cannot be opened.
        """
        with self._log() as log_fd:
            self._config.log_fd = log_fd
            error = self._library.gdsfw_run(c.byref(self._config), c.byref(self._result))
        if error:
            self._refuse(error)
        return _result(self._result, self.spec, self._written)

    def stop(self) -> None:
        """Ask the loop to end soon; safe from a signal handler and any thread."""
        self._library.gdsfw_stop(c.byref(self._live))

    def live(self) -> Live:
        """A snapshot of the counters while the loop runs."""
        # The worker stores field after field: two equal readings are one state.
        before, now = b"", bytes(self._live)
        for _ in range(4):
            before, now = now, bytes(self._live)
            if before == now:
                break
        live = abi.LiveStruct.from_buffer_copy(now)
        in_flight = None
        if live.operation:
            in_flight = InFlight(OPERATIONS[live.operation], live.file, live.offset, live.size, live.since_ns)
        return Live(tuple(live.ios), tuple(live.bytes), live.errors, bool(live.measuring), in_flight)

    def _make_config(self) -> abi.Config:
        spec = self.spec
        return abi.Config(
            io=c.pointer(self._table),
            live=c.pointer(self._live),
            shape=shape(spec, self.path.file_values),
            buffer=self.buffer.address,
            buffer_size=self.buffer.nbytes,
            buffer_offset=spec.buffer_offset,
            slot_stride=spec.slot_stride,
            iodepth=spec.iodepth,
            batch_submit=spec.batch_submit,
            batch_complete=spec.batch_complete,
            latencies=spec.latencies,
            runtime_ns=spec.runtime_ns,
            ramp_ns=spec.ramp_ns,
            rate_bytes=spec.rate_bytes,
            rate_iops=spec.rate_iops,
            think_time_ns=spec.think_time_ns,
            fsync_every=spec.fsync_every,
            fdatasync_every=spec.fdatasync_every,
            error_limit=spec.error_limit,
            poisson=spec.rate_process == "poisson",
            end_fsync=spec.end_fsync,
            write_fill=FILLS.index(spec.write_fill),
            compress_percent=spec.compress_percent,
            dedupe_percent=spec.dedupe_percent,
            check=spec.verify is not None and spec.verify.check,
            generations=spec.verify is not None and spec.verify.generations,
            register_per_io=spec.register_per_io,
            log_fd=-1,
            written=self._written,
            written_room=len(self._written) if self._written is not None else 0,
        )

    @contextmanager
    def _log(self) -> Iterator[int]:
        if self.spec.io_log_path is None:
            yield -1
            return
        fd = open_log(self.spec.io_log_path)
        try:
            yield fd
        finally:
            os.close(fd)

    def _refuse(self, error: int) -> None:
        if error == errno.EFBIG:
            raise generations_too_large()
        if error == errno.EOPNOTSUPP:
            raise UsageError(
                f"path {self.path.name} lacks a function that this job needs (flush, fill, verify or register)",
                hint="leave out fsync, fdatasync, end_fsync, verify or register_buffers: per_io, or use another path",
            )
        if error == errno.ENOMEM:
            raise UnavailableError("the engine could not allocate its state: out of memory")
        raise InternalError(f"the engine refused its configuration: {os.strerror(error)}")


def _histogram(h: abi.HistogramStruct) -> Histogram:
    counts = array("Q")
    counts.frombytes(bytes(h.counts))
    count = sum(counts)
    if count == 0:
        return Histogram()
    total, squares = h.total_high << 64 | h.total_low, h.square_high << 64 | h.square_low
    return Histogram(counts, count, total, h.min, h.max, squares)


def _stats(stats: abi.StatsStruct, separate_lat: bool) -> DirectionStats:
    clat = _histogram(stats.clat)
    lat = _histogram(stats.lat) if separate_lat else Histogram.merged([clat])
    return DirectionStats(
        stats.ios, stats.bytes, stats.short_ios, stats.errors, clat=clat, lat=lat, slat=_histogram(stats.slat)
    )


def _error(failure: abi.FailureStruct) -> LoopError:
    operation = cast("Operation", OPERATIONS[failure.operation])
    return LoopError(operation, failure.file, failure.offset, failure.size, Domain(failure.domain), failure.code)


def _bad_block(bad: abi.BadBlockStruct) -> Mismatch:
    found = mismatch_of(bad.mismatch)
    assert found is not None
    return Mismatch(bad.file, found.file_offset, found.expected, found.found, found.bad_bytes)


def _verify(result: abi.Result, spec: LoopSpec) -> VerifyStats | None:
    if spec.verify is None:
        return None
    shown = min(result.bad_blocks, len(result.bad))
    return VerifyStats(
        result.checked_bytes,
        result.expected_bytes,
        result.checked_blocks,
        result.bad_blocks,
        tuple(_bad_block(bad) for bad in result.bad[:shown]),
        result.unknown_bytes,
    )


def _written(result: abi.Result, ranges: Any) -> tuple[tuple[int, int, int], ...] | None:
    if ranges is None or result.written_count > len(ranges):
        return None
    return tuple((r.file, r.start, r.length) for r in ranges[: result.written_count])


def _result(result: abi.Result, spec: LoopSpec, ranges: Any) -> LoopResult:
    depths = list(result.depths)
    while depths and depths[-1] == 0:
        depths.pop()
    return LoopResult(
        ended_by=EndedBy(result.ended_by),
        started_ns=result.started_ns,
        ended_ns=result.ended_ns,
        read=_stats(result.stats[0], bool(result.separate_lat)),
        write=_stats(result.stats[1], bool(result.separate_lat)),
        errors=tuple(_error(failure) for failure in result.failures[: min(result.failure_count, 16)]),
        error_count=result.failure_count,
        verify=_verify(result, spec),
        total_ios=result.total_ios,
        total_bytes=result.total_bytes,
        depth_histogram=tuple(depths),
        flushes=result.flushes,
        flush_ns=result.flush_ns,
        storage_ns=result.storage_ns,
        copy_ns=result.copy_ns,
        cpu_ns=result.cpu_ns,
        written=_written(result, ranges),
        log_errno=result.log_errno,
    )
