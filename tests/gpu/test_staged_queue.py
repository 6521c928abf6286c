"""The staged queue in the C engine over a runtime of callbacks: device memory is ordinary memory that only they touch.

What a GPU adds (contexts, real streams, addresses the host cannot touch) is tested on one, in test_hardware.py.
"""

from __future__ import annotations

import ctypes as c
import mmap
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from gdsfw.backend import Alignment, Buffer, FileHandle, Request, Target
from gdsfw.engine.native import NativeLoop
from gdsfw.engine.spec import BlockSizes, EndedBy, LoopFile, LoopResult, LoopSpec, Verify
from gdsfw.errors import Domain
from gdsfw.gpu.paths import PathParts, make

NOT_READY = 600
COPY = c.CFUNCTYPE(c.c_int32, c.c_uint64, c.c_uint64, c.c_size_t, c.c_uint64)
EVENT = c.CFUNCTYPE(c.c_int32, c.c_uint64, c.c_uint64)
ONE = c.CFUNCTYPE(c.c_int32, c.c_uint64)


class CallbackRuntime:
    """Copies at once; events become ready after `lag` queries. Counts copies, and fails the nth with a code."""

    not_ready = NOT_READY

    def __init__(self, lag: int = 0, fail_copy: int = -1, code: int = 700) -> None:
        self.copies: list[int] = []
        self.pending: dict[int, int] = {}
        self._lag, self._fail, self._code = lag, fail_copy, code
        self._keep = {
            "copy_to_device": COPY(self._copy),
            "copy_to_host": COPY(self._copy),
            "event_record": EVENT(self._record),
            "event_query": ONE(self._query),
            "event_wait": ONE(self._wait),
            "stream_wait": ONE(lambda stream: 0),
        }

    def symbols(self) -> Mapping[str, int]:
        return {name: c.cast(call, c.c_void_p).value or 0 for name, call in self._keep.items()}

    def _copy(self, to: int, source: int, size: int, stream: int) -> int:
        self.copies.append(size)
        if len(self.copies) - 1 == self._fail:
            return self._code
        c.memmove(to, source, size)
        return 0

    def _record(self, event: int, stream: int) -> int:
        self.pending[event] = self._lag
        return 0

    def _wait(self, event: int) -> int:
        self.pending[event] = 0
        return 0

    def _query(self, event: int) -> int:
        self.pending[event] -= 1
        return NOT_READY if self.pending[event] >= 0 else 0


Run = Callable[..., LoopResult]


@pytest.fixture
def memory() -> Callable[[int], int]:
    """Addresses of fresh memory that lives until the end of the test."""
    kept: list[mmap.mmap] = []

    def allocate(nbytes: int) -> int:
        kept.append(mmap.mmap(-1, nbytes))
        return c.addressof(c.c_char.from_buffer(kept[-1]))

    return allocate


@pytest.fixture
def run(tmp_path: Path, memory: Callable[[int], int]) -> Iterator[Run]:
    fds: list[int] = []

    def start(
        runtime: CallbackRuntime,
        *,
        rw: str = "write",
        nbytes: int = 1 << 20,
        block: int = 4096,
        depth: int = 16,
        group: int = 4,
        reader: str = "psync",
        random: bool = True,
        choices: tuple[tuple[int, int], ...] | None = None,
    ) -> LoopResult:
        path = tmp_path / "data"
        fd = os.open(path, os.O_RDWR | os.O_CREAT)
        fds.append(fd)
        if os.fstat(fd).st_size < nbytes:
            os.ftruncate(fd, nbytes)
        handle = FileHandle(Target(str(path), 7, nbytes), fd=fd, writable=True, alignment=Alignment())
        sizes = choices or ((block, 1),)
        stride = max(size for size, _ in sizes)
        buffer = Buffer(memory(depth * stride), depth * stride, "device")
        request = Request("staged", rw, stride, block, [(0, nbytes)], iodepth=depth)  # type: ignore[arg-type]
        parts = PathParts(
            runtime,  # type: ignore[arg-type]
            None,
            stream=1,
            events=list(range(1, depth + 1)),
            mirror=memory(depth * stride),
            mirror_nbytes=depth * stride,
            scratch=memory(stride),
            scratch_nbytes=stride,
            group_blocks=group,
            reader=reader,
        )
        plane = make("staged", [handle], buffer, request, parts)
        spec = LoopSpec(
            rw=rw,  # type: ignore[arg-type]
            random=random,
            read_blocks=BlockSizes(sizes),
            write_blocks=BlockSizes(sizes),
            block_align=0,
            files=(LoopFile(7, 0, nbytes, 5),),
            seed=3,
            iodepth=depth,
            batch_submit=group,
            batch_complete=group,
            slot_stride=stride,
            write_fill="pattern",
            verify=Verify(),
        )
        return NativeLoop(spec, plane, buffer).run()

    yield start
    for fd in fds:
        os.close(fd)


@pytest.mark.parametrize("reader", ["psync", "io_uring"])
@pytest.mark.parametrize("lag", [0, 3])
@pytest.mark.parametrize(("depth", "group"), [(1, 1), (2, 1), (16, 4), (16, 16), (10, 3)])
def test_what_is_written_is_read_back(run: Run, depth: int, group: int, lag: int, reader: str) -> None:
    _needs(reader)
    for rw in ("write", "read"):
        result = run(CallbackRuntime(lag), rw=rw, depth=depth, group=group, reader=reader)
        assert result.ended_by is EndedBy.IO_SIZE, result.errors
        side = result.write if rw == "write" else result.read
        assert (side.ios, side.bytes) == (256, 1 << 20)
    assert result.verify is not None
    assert result.verify.checked_bytes == result.verify.expected_bytes == 1 << 20
    assert result.verify.bad_blocks == 0


def test_adjacent_blocks_of_a_group_travel_in_one_copy(run: Run) -> None:
    run(CallbackRuntime(), rw="write")
    runtime = CallbackRuntime()
    run(runtime, rw="read", depth=32, group=16)
    # Verification copies each block back: those are of one block.
    groups = [size for size in runtime.copies if size > 4096]
    assert groups == [16 * 4096] * 16


@pytest.mark.parametrize("reader", ["psync", "io_uring"])
def test_a_file_that_ends_within_a_block(run: Run, reader: str) -> None:
    _needs(reader)
    for rw in ("write", "read"):
        result = run(CallbackRuntime(1), rw=rw, nbytes=100_001, reader=reader, random=False)
        assert result.ended_by is EndedBy.IO_SIZE, result.errors
    assert result.verify is not None
    assert result.verify.checked_bytes == 100_001


def test_mixed_directions_and_sizes(run: Run) -> None:
    run(CallbackRuntime(), rw="write")
    result = run(CallbackRuntime(2), rw="readwrite", choices=((4096, 2), (16384, 1)))
    assert result.ended_by is EndedBy.IO_SIZE, result.errors
    assert result.verify is not None
    assert result.verify.bad_blocks == 0
    assert result.verify.checked_bytes == result.read.bytes


def test_a_flipped_bit_is_found(run: Run, tmp_path: Path) -> None:
    run(CallbackRuntime(), rw="write")
    data = bytearray((tmp_path / "data").read_bytes())
    data[300_000] ^= 1
    (tmp_path / "data").write_bytes(data)
    result = run(CallbackRuntime(), rw="read")
    assert result.verify is not None
    (bad,) = result.verify.mismatches
    assert (bad.file_offset, bad.bad_bytes) == (300_000, 1)


def test_a_failed_copy_fails_its_blocks_with_the_runtimes_code(run: Run) -> None:
    run(CallbackRuntime(), rw="write")
    result = run(CallbackRuntime(fail_copy=0), rw="read")
    assert result.ended_by is EndedBy.ERROR
    assert {(error.operation, error.domain, error.code) for error in result.errors} == {("read", Domain.GPU, 700)}


def test_a_truncated_file_is_an_error_of_its_blocks(run: Run, tmp_path: Path) -> None:
    run(CallbackRuntime(), rw="write")
    result = _read_while_truncating(run, CallbackRuntime(), tmp_path / "data")
    assert result.ended_by is EndedBy.ERROR
    assert result.errors[0].domain is Domain.ERRNO


def _read_while_truncating(run: Run, runtime: CallbackRuntime, path: Path) -> LoopResult:
    copy = runtime._copy

    def first(to: int, source: int, size: int, stream: int) -> int:
        os.truncate(path, 4096)
        return copy(to, source, size, stream)

    runtime._keep["copy_to_device"] = COPY(first)
    return run(runtime, rw="read")


def _needs(reader: str) -> None:
    if reader != "io_uring":
        return
    from gdsfw.engine.native_table import UringOptions
    from gdsfw.engine.native_uring import try_uring

    with mmap.mmap(-1, 4096) as page:
        address = c.addressof(c.c_char.from_buffer(page))
        refusal = try_uring(UringOptions(), Buffer(address, 4096), [], 4)
    if refusal is not None:
        pytest.skip(f"io_uring: {refusal.message}")
