from __future__ import annotations

import ctypes as c
import errno
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from gdsfw.backend import Buffer, IOPath
from gdsfw.engine import native_table as abi
from gdsfw.engine.native import NativeLoop, psync_table
from gdsfw.engine.spec import BlockSizes, EndedBy, LoopFile, LoopSpec, Verify
from gdsfw.errors import Domain, InternalError, UsageError

Make = Callable[..., Any]
MIB = 1 << 20


def test_write_then_read_back_moves_and_verifies_every_byte(
    run: Make, make_spec: Make, open_path: Make, tmp_path: Path
) -> None:
    path = open_path(tmp_path / "f")
    wrote = run(make_spec(length=MIB, rw="write", write_fill="pattern", verify=Verify()), path)
    assert (wrote.write.ios, wrote.write.bytes, wrote.total_bytes) == (256, MIB, MIB)
    assert wrote.written == ((0, 0, MIB),)
    read = run(make_spec(length=MIB, random=True, block=16384, verify=Verify()), path)
    assert read.verify is not None
    assert (read.verify.checked_bytes, read.verify.expected_bytes) == (MIB, MIB)
    assert (read.verify.checked_blocks, read.verify.bad_blocks) == (64, 0)
    assert read.written is None


def test_flipped_bit_on_disk_is_found_with_offset_and_bytes(
    run: Make, make_spec: Make, open_path: Make, tmp_path: Path
) -> None:
    path = open_path(tmp_path / "f")
    run(make_spec(rw="write", write_fill="pattern"), path)
    with (tmp_path / "f").open("r+b") as file:
        file.seek(70_001)
        byte = file.read(1)
        file.seek(70_001)
        file.write(bytes([byte[0] ^ 4]))
    result = run(make_spec(verify=Verify()), path)
    (bad,) = result.verify.mismatches
    assert (bad.file_index, bad.file_offset, bad.bad_bytes) == (0, 70_001, 1)
    assert bad.found[:1] == bytes([byte[0] ^ 4])
    assert bad.expected[:1] == byte
    assert result.verify.bad_blocks == 1
    assert result.ended_by is EndedBy.IO_SIZE


def test_swapped_blocks_are_two_bad_blocks(run: Make, make_spec: Make, open_path: Make, tmp_path: Path) -> None:
    path = open_path(tmp_path / "f")
    run(make_spec(rw="write", write_fill="pattern"), path)
    data = bytearray((tmp_path / "f").read_bytes())
    data[0:4096], data[40960:45056] = data[40960:45056], data[0:4096]
    (tmp_path / "f").write_bytes(data)
    result = run(make_spec(verify=Verify()), path)
    assert [m.file_offset // 4096 for m in result.verify.mismatches] == [0, 10]


def test_short_counts_are_continued_and_counted_once(run: Make, make_spec: Make, scripted: Make) -> None:
    table = scripted(lambda direction, size, offset: min(size, 1500))
    result = run(make_spec(length=8192), table.path())
    assert table.calls == [
        ("read", 4096, 0),
        ("read", 2596, 1500),
        ("read", 1096, 3000),
        ("read", 4096, 4096),
        ("read", 2596, 5596),
        ("read", 1096, 7096),
    ]
    assert (result.read.ios, result.read.bytes, result.read.short_ios) == (2, 8192, 2)


def test_large_blocks_are_split_at_max_transfer_without_counting_as_short(
    run: Make, make_spec: Make, scripted: Make
) -> None:
    table = scripted(lambda direction, size, offset: size, max_transfer=16384)
    result = run(make_spec(length=3 * 40_000, block=40_000), table.path())
    assert table.calls[:3] == [("read", 16384, 0), ("read", 16384, 16384), ("read", 7232, 32768)]
    assert (result.read.ios, result.read.short_ios) == (3, 0)


@pytest.mark.parametrize(("rw", "code"), [("read", errno.ENODATA), ("write", errno.EIO)])
@pytest.mark.parametrize("before", [0, 100])
def test_no_bytes_before_the_end_of_a_block_is_an_error(
    run: Make, make_spec: Make, scripted: Make, rw: str, code: int, before: int
) -> None:
    answers = iter([before, 0] if before else [0])
    result = run(make_spec(rw=rw), scripted(lambda direction, size, offset: next(answers)).path())
    (error,) = result.errors
    assert (error.operation, error.domain, error.code, error.file_offset) == (rw, Domain.ERRNO, code, 0)
    assert result.ended_by is EndedBy.ERROR
    assert result.stopped_by_error
    assert result.total_bytes == before


def test_more_bytes_than_asked_for_is_an_error(run: Make, make_spec: Make, scripted: Make) -> None:
    result = run(make_spec(), scripted(lambda direction, size, offset: size + 1).path())
    assert result.errors[0].code == errno.EPROTO


def test_truncated_file_ends_with_unexpected_end_of_file(
    run: Make, make_spec: Make, open_path: Make, tmp_path: Path
) -> None:
    (tmp_path / "f").write_bytes(bytes(10_000))
    result = run(make_spec(), open_path(tmp_path / "f"))
    (error,) = result.errors
    assert (error.file_offset, error.code) == (8192, errno.ENODATA)
    assert result.read.ios == 2


def test_errors_below_the_limit_are_carried_on_through(run: Make, make_spec: Make, scripted: Make) -> None:
    def answer(direction: str, size: int, offset: int) -> int:
        if offset % 8192:
            raise OSError(errno.EIO, "")
        return size

    result = run(make_spec(error_limit=100), scripted(answer).path())
    assert result.ended_by is EndedBy.IO_SIZE
    assert (result.error_count, result.read.errors, result.read.ios) == (32, 32, 32)
    assert len(result.errors) == 16
    stopped = run(make_spec(error_limit=3), scripted(answer).path())
    assert (stopped.ended_by, stopped.error_count) == (EndedBy.ERROR, 4)


def test_stop_from_another_thread_ends_a_loop_that_would_run_for_an_hour(
    make_spec: Make, noop_path: Make, buffer: Buffer
) -> None:
    loop = NativeLoop(make_spec(random=True, runtime_ns=3_600 * 10**9), noop_path(), buffer)
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(loop.run()))
    thread.start()
    while loop.live().ios[0] == 0:
        time.sleep(0.001)
    assert loop.live().measuring
    loop.stop()
    thread.join(30)
    assert results[0].ended_by is EndedBy.STOP


@pytest.mark.parametrize("waiting", [{"rate_iops": (1, 0)}, {"think_time_ns": 3_600 * 10**9}])
def test_stop_wakes_a_loop_that_sleeps(
    make_spec: Make, noop_path: Make, buffer: Buffer, waiting: dict[str, Any]
) -> None:
    loop = NativeLoop(make_spec(**waiting), noop_path(), buffer)
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(loop.run()))
    thread.start()
    while loop.live().ios[0] == 0:
        time.sleep(0.001)
    loop.stop()
    thread.join(30)
    assert results[0].ended_by is EndedBy.STOP
    assert results[0].read.ios == 1


def test_stop_before_the_start_ends_the_loop_at_once(make_spec: Make, noop_path: Make, buffer: Buffer) -> None:
    loop = NativeLoop(make_spec(runtime_ns=10**12), noop_path(), buffer)
    loop.stop()
    assert loop.run().ended_by is EndedBy.STOP


def test_call_in_flight_is_visible_from_outside(make_spec: Make, scripted: Make, buffer: Buffer) -> None:
    entered, leave = threading.Event(), threading.Event()

    def answer(direction: str, size: int, offset: int) -> int:
        if offset == 8192:
            entered.set()
            leave.wait(30)
        return size

    before = time.monotonic_ns()
    loop = NativeLoop(make_spec(), scripted(answer).path(), buffer)
    thread = threading.Thread(target=loop.run)
    thread.start()
    assert entered.wait(30)
    live = loop.live()
    leave.set()
    thread.join(30)
    assert live.in_flight is not None
    assert (live.in_flight.operation, live.in_flight.file_offset, live.in_flight.size) == ("read", 8192, 4096)
    assert before <= live.in_flight.since_ns <= time.monotonic_ns()
    assert live.ios == (2, 0)
    assert loop.live().in_flight is None


def test_runtime_goes_over_the_file_again_and_again(run: Make, make_spec: Make, noop_path: Make) -> None:
    result = run(make_spec(runtime_ns=20_000_000), noop_path())
    assert result.ended_by is EndedBy.RUNTIME
    assert result.ended_ns - result.started_ns >= 20_000_000
    assert result.read.bytes > 2 * 256 * 1024


def test_io_size_ends_before_the_runtime_when_it_comes_first(run: Make, make_spec: Make, noop_path: Make) -> None:
    result = run(make_spec(runtime_ns=10**12, io_size=10_000), noop_path())
    assert (result.ended_by, result.read.ios, result.read.bytes) == (EndedBy.IO_SIZE, 3, 10_000)


def test_ramp_is_not_counted_but_is_in_the_totals(run: Make, make_spec: Make, noop_path: Make) -> None:
    result = run(make_spec(random=True, ramp_ns=20_000_000, runtime_ns=20_000_000), noop_path())
    assert result.total_ios > result.read.ios > 0
    assert result.read.clat.count == result.read.ios
    assert result.total_bytes == result.total_ios * 4096


def test_loops_repeat_the_whole_range(run: Make, make_spec: Make, noop_path: Make) -> None:
    assert run(make_spec(loops=3), noop_path()).read.bytes == 3 * 256 * 1024


def test_flush_keys_flush_after_so_many_writes_and_at_the_end(run: Make, make_spec: Make, scripted: Make) -> None:
    table = scripted(lambda direction, size, offset: size)
    result = run(make_spec(rw="write", length=10 * 4096, fsync_every=4, end_fsync=True), table.path())
    kinds = [call[0] for call in table.calls]
    assert kinds == ["write"] * 4 + ["fsync"] + ["write"] * 4 + ["fsync"] + ["write"] * 2 + ["fsync"]
    assert result.flushes == 3
    assert result.flush_ns > 0
    table = scripted(lambda direction, size, offset: size)
    run(make_spec(rw="write", length=4 * 4096, fdatasync_every=2), table.path())
    assert [call[0] for call in table.calls].count("fdatasync") == 2


def test_flush_covers_every_file_written_since(run: Make, make_spec: Make, scripted: Make) -> None:
    table = scripted(lambda direction, size, offset: size)
    files = tuple(LoopFile(i, 0, 8192) for i in range(3))
    result = run(make_spec(rw="write", files=files, end_fsync=True), table.path(3))
    assert result.flushes == 3


def test_failed_flush_is_an_error_of_its_own(run: Make, make_spec: Make, scripted: Make) -> None:
    def refuse(data_only: bool) -> int:
        raise OSError(errno.EIO, "")

    table = scripted(lambda direction, size, offset: size, on_flush=refuse)
    result = run(make_spec(rw="write", fsync_every=2), table.path())
    assert (result.errors[0].operation, result.errors[0].code) == ("flush", errno.EIO)
    assert result.write.ios == 2


def test_rate_spaces_the_starts_by_the_schedule_not_by_the_answers(run: Make, make_spec: Make, scripted: Make) -> None:
    table = scripted(lambda direction, size, offset: size)
    result = run(make_spec(rate_iops=(2000, 0), io_size=200 * 4096), table.path())
    # The last of 200 starts is due 199 / 2000 s after the first: never sooner, however fast the path is.
    assert result.ended_ns - result.started_ns >= 199 * 500_000
    assert result.read.lat.count == 200
    assert result.read.lat.total_ns >= result.read.clat.total_ns


def test_latency_with_a_rate_counts_from_the_scheduled_start(run: Make, make_spec: Make, scripted: Make) -> None:
    def answer(direction: str, size: int, offset: int) -> int:
        if offset == 0:
            time.sleep(0.05)
        return size

    result = run(make_spec(rate_iops=(1000, 0), io_size=20 * 4096), scripted(answer).path())
    # One answer took 50 ms: those due meanwhile waited, which only `lat` shows.
    assert sum(1 for index, n in result.read.clat.pairs() for _ in range(n) if index > 1300) <= 2
    assert result.read.lat.percentile(50) > 10_000_000 > result.read.clat.percentile(50)


def test_rates_of_both_directions_are_kept_apart(run: Make, make_spec: Make, noop_path: Make) -> None:
    spec = make_spec(
        rw="readwrite", random=True, read_percent=50, runtime_ns=200_000_000, rate_iops=(4000, 400), length=MIB
    )
    result = run(spec, noop_path())
    assert result.write.ios <= 0.2 * 400 + 2
    assert result.read.ios <= 0.2 * 4000 + 2


def test_every_io_is_in_the_log(run: Make, make_spec: Make, noop_path: Make, tmp_path: Path) -> None:
    (tmp_path / "log").touch()
    run(make_spec(length=2000 * 4096, io_log_path=str(tmp_path / "log")), noop_path())
    lines = [line.split(",") for line in (tmp_path / "log").read_text().splitlines()]
    assert len(lines) == 2000
    assert [int(line[3]) for line in lines] == [i * 4096 for i in range(2000)]
    assert {tuple(line[k] for k in (1, 2, 4, 6, 7)) for line in lines} == {("read", "0", "4096", "0", "0")}
    times = [int(line[0]) for line in lines]
    assert times == sorted(times)


def test_written_ranges_are_merged_and_failed_ones_left_out(run: Make, make_spec: Make, scripted: Make) -> None:
    def answer(direction: str, size: int, offset: int) -> int:
        if offset in (8192, 40960):
            raise OSError(errno.ENOSPC, "")
        return size

    spec = make_spec(
        rw="write",
        random=True,
        write_fill="pattern",
        error_limit=10,
        io_size=65536,
        files=(LoopFile(1, 4096, 65536, 5),),
    )
    table = scripted(answer)
    table.flags |= 1
    result = run(spec, table.path())
    assert result.written == ((0, 4096, 4096), (0, 12288, 28672), (0, 45056, 24576))


def test_cut_last_block_is_recorded_to_the_byte(run: Make, make_spec: Make, open_path: Make, tmp_path: Path) -> None:
    spec = make_spec(rw="write", write_fill="pattern", io_size=10_000)
    assert run(spec, open_path(tmp_path / "f")).written == ((0, 0, 10_000),)


def test_odd_sized_range_is_recorded_to_its_end(run: Make, make_spec: Make, open_path: Make, tmp_path: Path) -> None:
    spec = make_spec(rw="write", write_fill="pattern", random=True, length=10_001)
    assert run(spec, open_path(tmp_path / "f")).written == ((0, 0, 10_001),)
    assert (tmp_path / "f").stat().st_size == 10_001


@pytest.mark.parametrize("random", [False, True])
@pytest.mark.parametrize("sizes", [((4096, 1),), ((4096, 3), (8192, 1)), ((512, 1), (6144, 2))])
def test_rewrites_verify_with_generations(
    run: Make, make_spec: Make, open_path: Make, tmp_path: Path, random: bool, sizes: tuple[tuple[int, int], ...]
) -> None:
    path = open_path(tmp_path / "f")
    run(make_spec(rw="write", write_fill="pattern"), path)
    spec = make_spec(
        rw="readwrite",
        random=random,
        block=BlockSizes(sizes),
        loops=6,
        write_fill="pattern",
        verify=Verify(generations=True),
    )
    result = run(spec, path)
    assert result.verify.checked_bytes == result.verify.expected_bytes == result.read.bytes > 0
    assert result.verify.bad_blocks == 0
    assert result.write.ios > 64


def test_lost_rewrite_shows_only_with_generations(make_spec: Make, scripted: Make, buffer: Buffer, run: Make) -> None:
    content: dict[int, bytes] = {}
    lost = iter([False] * 100 + [True] + [False] * 10_000)

    def answer(direction: str, size: int, offset: int) -> int:
        assert buffer.host_view is not None
        if direction == "write":
            if offset not in content or not next(lost):
                content[offset] = bytes(buffer.host_view[:size])
        else:
            buffer.host_view[:size] = content[offset]
        return size

    def once(generations: bool) -> int:
        content.clear()
        table = scripted(answer)
        table.flags |= 1
        fill = make_spec(rw="write", write_fill="pattern", length=65536)
        run(fill, table.path())
        spec = make_spec(
            rw="readwrite",
            length=65536,
            loops=40,
            random=True,
            write_fill="pattern",
            verify=Verify(generations=generations),
        )
        return int(run(spec, table.path()).verify.bad_blocks)

    assert once(generations=False) == 0
    lost = iter([False] * 100 + [True] + [False] * 10_000)
    assert once(generations=True) >= 1


def test_reads_after_a_failed_write_are_not_held_against_anyone(run: Make, make_spec: Make, scripted: Make) -> None:
    def answer(direction: str, size: int, offset: int) -> int:
        if direction == "write":
            raise OSError(errno.EIO, "")
        return size

    table = scripted(answer)
    table.flags |= 1
    spec = make_spec(
        rw="readwrite",
        random=True,
        loops=20,
        length=16384,
        write_fill="pattern",
        error_limit=10**6,
        verify=Verify(generations=True),
    )
    result = run(spec, table.path())
    assert result.verify.checked_bytes == result.verify.expected_bytes < result.read.bytes


def test_verify_without_a_way_to_do_it_is_refused(run: Make, make_spec: Make, noop_path: Make) -> None:
    with pytest.raises(UsageError, match="lacks a function"):
        run(make_spec(verify=Verify()), noop_path())


def test_registering_each_io_hands_over_the_registered_address(
    make_spec: Make, buffer: Buffer, run: Make, scripted: Make
) -> None:
    seen: list[tuple[str, int, int]] = []

    def note(kind: str, base: int, value: int) -> int:
        seen.append((kind, base - buffer.address, value))
        return 0

    table = scripted(lambda direction, size, offset: size).table()
    table.register_buffer = abi.REGISTER_FN(lambda ctx, base, size: note("register", base, size))
    table.deregister_buffer = abi.DEREGISTER_FN(lambda ctx, base: note("deregister", base, 0))
    table.read = abi.IO_FN(lambda file, base, size, offset, at: note("read", base, at) or size)
    path = IOPath("scripted", scripted(lambda *a: 0).path().files, native=table, file_values=[1])
    run(make_spec(length=4096, register_per_io=True, buffer_offset=512), path)
    assert seen == [("register", 512, 4096), ("read", 512, 0), ("deregister", 512, 0)]


def test_write_buffers_do_not_repeat_and_follow_the_shares(
    make_spec: Make, scripted: Make, run: Make, buffer: Buffer
) -> None:
    import zlib

    blocks: list[bytes] = []

    def answer(direction: str, size: int, offset: int) -> int:
        assert buffer.host_view is not None
        blocks.append(bytes(buffer.host_view[:size]))
        return size

    def write(**changes: Any) -> list[bytes]:
        blocks.clear()
        table = scripted(answer)
        table.flags |= 1
        run(make_spec(rw="write", length=400 * 4096, **changes), table.path())
        return list(blocks)

    sectors = [block[at : at + 512] for block in write() for at in range(0, 4096, 512)]
    assert len(set(sectors)) == len(sectors) == 3200
    assert all(len(zlib.compress(block)) > 4090 for block in write())
    half = [len(zlib.compress(block)) for block in write(compress_percent=50)]
    assert 1900 < min(half) <= max(half) < 2300
    share = 1 - len(set(write(dedupe_percent=30))) / 400
    assert 0.2 < share < 0.4
    assert set(write(write_fill="zero")) == {bytes(4096)}


def test_slots_reused_after_a_read_hold_write_data_again(
    make_spec: Make, scripted: Make, run: Make, buffer: Buffer
) -> None:
    blocks: list[bytes] = []

    def answer(direction: str, size: int, offset: int) -> int:
        assert buffer.host_view is not None
        if direction == "read":
            buffer.host_view[:size] = bytes(size)
        else:
            blocks.append(bytes(buffer.host_view[:size]))
        return size

    table = scripted(answer)
    table.flags |= 1
    run(make_spec(rw="readwrite", random=True), table.path())
    assert blocks
    assert all(block.count(0) < 100 for block in blocks)


def test_counters_and_cpu_time_are_of_the_measured_part(run: Make, make_spec: Make, noop_path: Make) -> None:
    result = run(make_spec(random=True, runtime_ns=30_000_000), noop_path())
    assert 0 < result.cpu_ns <= (result.ended_ns - result.started_ns) * 1.5
    assert result.started_ns <= result.ended_ns <= time.monotonic_ns()


def test_latencies_off_measures_none(run: Make, make_spec: Make, noop_path: Make) -> None:
    result = run(make_spec(latencies=False), noop_path())
    assert result.read.ios == 64
    assert result.read.clat.count == 0


def test_bytes_equal_the_kernels_own_count(run: Make, make_spec: Make, open_path: Make, tmp_path: Path) -> None:
    path = open_path(tmp_path / "f")
    run(make_spec(length=4 * MIB, rw="write"), path)
    io = Path("/proc/self/io")
    if not io.exists():
        pytest.skip("this kernel does not count bytes for each task (/proc/self/io)")

    def rchar() -> int:
        return int(io.read_text().split()[1])

    overhead = rchar()
    overhead = rchar() - overhead
    before = rchar()
    result = run(make_spec(length=4 * MIB, random=True), path)
    assert rchar() - before - overhead == result.total_bytes == 4 * MIB


def test_odd_blocks_go_to_the_tail_descriptor(run: Make, make_spec: Make, tmp_path: Path) -> None:
    from gdsfw.backend import FileHandle, Target
    from gdsfw.engine.native import FdFile

    whole, tail = tmp_path / "whole", tmp_path / "tail"
    descriptors = [os.open(p, os.O_RDWR | os.O_CREAT, 0o600) for p in (whole, tail)]
    file = FdFile(*descriptors, 4096, 0)
    path = IOPath("psync", [FileHandle(Target("f", 1, 0))], native=psync_table(), file_values=[c.addressof(file)])
    result = run(make_spec(rw="write", length=3 * 4096 + 100), path)
    for fd in descriptors:
        os.close(fd)
    assert result.write.bytes == 3 * 4096 + 100
    assert whole.stat().st_size == 3 * 4096
    assert tail.read_bytes()[: 3 * 4096] == bytes(3 * 4096)
    assert tail.stat().st_size == 3 * 4096 + 100


def test_direct_refusal_of_an_odd_block_is_einval(run: Make, make_spec: Make, tmp_path: Path) -> None:
    from gdsfw.backend import FileHandle, Target
    from gdsfw.engine.native import FdFile

    (tmp_path / "f").write_bytes(bytes(8192))
    try:
        fd = os.open(tmp_path / "f", os.O_RDONLY | os.O_DIRECT)
        os.preadv(fd, [bytearray(100)], 1)
        os.close(fd)
    except OSError:
        pass
    else:
        pytest.skip("this file system takes direct I/O of any size")
    fd = os.open(tmp_path / "f", os.O_RDONLY | os.O_DIRECT)
    file = FdFile(fd, -1, 4096, 0)
    path = IOPath("psync", [FileHandle(Target("f", 1, 0))], native=psync_table(), file_values=[c.addressof(file)])
    result = run(make_spec(length=8000, block=1000), path)
    os.close(fd)
    assert (result.errors[0].domain, result.errors[0].code) == (Domain.ERRNO, errno.EINVAL)


def test_files_of_a_job_share_the_loop(run: Make, make_spec: Make, open_path: Make, tmp_path: Path) -> None:
    files = tuple(LoopFile(i, 0, 40_000, 3) for i in range(3))
    path = open_path(*(tmp_path / f"f{i}" for i in range(3)))
    spec = make_spec(rw="write", files=files, write_fill="pattern", file_service="random")
    result = run(spec, path)
    assert result.write.bytes == 120_000
    assert result.written == tuple((i, 0, 40_000) for i in range(3))
    check = run(make_spec(files=files, verify=Verify(), random=True, block=1000), path)
    assert check.verify.checked_bytes == 120_000
    assert check.verify.bad_blocks == 0


def test_spec_without_a_byte_to_move_is_refused(run: Make, noop_path: Make) -> None:
    sizes = BlockSizes(((4096, 1),))
    spec = LoopSpec(
        rw="read",
        random=True,
        read_blocks=sizes,
        write_blocks=sizes,
        block_align=0,
        files=(LoopFile(1, 0, 0),),
        seed=1,
    )
    with pytest.raises(InternalError, match="refused its configuration"):
        run(spec, noop_path())


def test_log_that_cannot_be_written_is_reported_and_does_not_end_the_job(
    run: Make, make_spec: Make, noop_path: Make
) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    result = run(make_spec(io_log_path="/dev/full"), noop_path())
    assert result.log_errno == errno.ENOSPC
    assert result.read.ios == 64
    assert result.errors == ()


def test_failed_flush_at_the_end_ends_the_loop_with_an_error(run: Make, make_spec: Make, scripted: Make) -> None:
    def refuse(data_only: bool) -> int:
        raise OSError(errno.EIO, "")

    table = scripted(lambda direction, size, offset: size, on_flush=refuse)
    result = run(make_spec(rw="write", end_fsync=True), table.path())
    assert result.ended_by is EndedBy.ERROR
    assert result.write.ios == 64


@pytest.mark.parametrize("change", [{"block": 2 * MIB}, {"buffer_offset": MIB}, {"buffer_offset": 2**64 - 4096}])
def test_slot_outside_the_buffer_is_refused(run: Make, make_spec: Make, scripted: Make, change: dict[str, int]) -> None:
    table = scripted(lambda direction, size, offset: size)
    with pytest.raises(UsageError, match="outside the buffer"):
        run(make_spec(length=8 * MIB, **change), table.path())
    assert table.calls == []


def test_memory_out_of_the_hosts_reach_is_filled_through_copy(
    make_spec: Make, scripted: Make, run: Make, buffer: Buffer
) -> None:
    memory = bytearray(MIB)

    def copy(ctx: int, base: int, at: int, host: int, size: int, direction: int) -> int:
        assert direction == 1
        memory[at : at + size] = c.string_at(host, size)
        return size

    table = scripted(lambda direction, size, offset: size).table()
    table.copy = abi.COPY_FN(copy)
    path = IOPath("scripted", scripted(lambda *a: 0).path().files, native=table, file_values=[1])
    run(make_spec(rw="write", block=300_000, length=MIB, buffer_offset=4096), path)
    assert memory[:4096] == bytes(4096)
    assert memory[4096 : 4096 + 300_000].count(0) < 300_000 / 100
    assert memory[4096 + 300_000 :] == bytes(MIB - 4096 - 300_000)


def test_memory_that_cannot_be_filled_ends_the_loop_before_the_first_write(
    make_spec: Make, scripted: Make, run: Make
) -> None:
    scripted_table = scripted(lambda direction, size, offset: size)
    table = scripted_table.table()
    table.copy = abi.COPY_FN(lambda ctx, base, at, host, size, direction: -700)
    path = IOPath("scripted", scripted(lambda *a: 0).path().files, native=table, file_values=[1])
    result = run(make_spec(rw="write"), path)
    assert (result.errors[0].operation, result.errors[0].domain, result.errors[0].code) == ("copy", Domain.GPU, 700)
    assert scripted_table.calls == []
