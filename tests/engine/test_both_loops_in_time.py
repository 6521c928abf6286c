"""The C loop and the Python loop end, wait, measure and report alike."""

from __future__ import annotations

import errno
import threading
import time
from dataclasses import replace
from typing import Any

import pytest
from gdsfw.engine.spec import BlockSizes, EndedBy, InFlight, LoopFile, LoopSpec
from gdsfw.errors import UnavailableError

KIB = 1024
BLOCK = 4 * KIB

SPEC = LoopSpec(
    rw="read",
    random=False,
    read_blocks=BlockSizes(((BLOCK, 1),)),
    write_blocks=BlockSizes(((BLOCK, 1),)),
    block_align=0,
    files=(LoopFile(5, 0, 64 * KIB),),
    seed=7,
    slot_stride=16 * KIB,
)


def contents(spec: LoopSpec) -> list[bytearray]:
    return [bytearray(file.start + file.length) for file in spec.files]


def run_one(twins: Any, way: str, spec: LoopSpec, **store: Any) -> Any:
    return twins.run(way, spec, twins.store(contents(spec), **store))


# ---- endings -------------------------------------------------------------------------------------------------

ENDLESS = replace(SPEC, runtime_ns=3600 * 10**9)


def test_runtime_ends_the_loop_and_not_before_its_time(twins: Any, way: str) -> None:
    result = run_one(twins, way, replace(SPEC, runtime_ns=20_000_000)).result
    assert result.ended_by is EndedBy.RUNTIME
    assert result.ended_ns - result.started_ns >= 20_000_000
    assert result.read.ios > 16


def test_stop_ends_the_loop_after_the_call_in_flight(twins: Any, way: str) -> None:
    store = twins.store(contents(SPEC))
    loop, _ = twins.loop(way, ENDLESS, store)
    store.on_move = lambda number: loop.stop() if number == 20 else None
    result = loop.run()
    assert (result.ended_by, result.read.ios) == (EndedBy.STOP, 21)


def test_stop_before_the_start_issues_nothing(twins: Any, way: str) -> None:
    store = twins.store(contents(SPEC))
    loop, _ = twins.loop(way, ENDLESS, store)
    loop.stop()
    result = loop.run()
    assert (result.ended_by, result.total_ios, store.calls) == (EndedBy.STOP, 0, [])


@pytest.mark.parametrize("waits", [{"rate_iops": (1, 0)}, {"think_time_ns": 3600 * 10**9}])
def test_stop_ends_a_wait(twins: Any, way: str, waits: dict[str, Any]) -> None:
    store = twins.store(contents(SPEC))
    loop, _ = twins.loop(way, replace(ENDLESS, **waits), store)
    store.on_move = lambda number: threading.Timer(0.02, loop.stop).start()
    result = loop.run()
    assert (result.ended_by, result.read.ios) == (EndedBy.STOP, 1)


def test_runtime_ends_a_wait(twins: Any, way: str) -> None:
    spec = replace(SPEC, rate_iops=(1, 0), runtime_ns=20_000_000)
    result = run_one(twins, way, spec).result
    assert (result.ended_by, result.read.ios) == (EndedBy.RUNTIME, 1)


def test_the_ramp_is_run_and_not_counted(twins: Any, way: str) -> None:
    spec = replace(SPEC, ramp_ns=20_000_000, runtime_ns=20_000_000, error_limit=1)
    result = run_one(twins, way, spec, faults={0: twins.errno(errno.EIO)}).result
    assert result.ended_by is EndedBy.RUNTIME
    assert 0 < result.read.ios < result.total_ios
    assert result.read.clat.count == result.read.ios
    assert (result.read.errors, result.error_count) == (0, 1)
    assert result.ended_ns - result.started_ns >= 20_000_000


def test_a_loop_that_ends_in_its_ramp_has_measured_nothing(twins: Any, way: str) -> None:
    result = run_one(twins, way, replace(SPEC, ramp_ns=3600 * 10**9)).result
    assert (result.ended_by, result.read.ios, result.total_ios) == (EndedBy.IO_SIZE, 0, 16)
    assert result.started_ns == result.ended_ns


# ---- rates and latencies -------------------------------------------------------------------------------------


@pytest.mark.parametrize("rates", [{"rate_iops": (1000, 0)}, {"rate_bytes": (4096_000, 0)}])
def test_a_rate_spaces_the_ios(twins: Any, way: str, rates: dict[str, Any]) -> None:
    result = run_one(twins, way, replace(SPEC, **rates)).result
    assert result.ended_ns - result.started_ns >= 15 * 1_000_000


def test_each_direction_has_its_own_rate(twins: Any, way: str) -> None:
    spec = replace(SPEC, rw="readwrite", rate_iops=(0, 1000))
    result = run_one(twins, way, spec).result
    assert result.ended_ns - result.started_ns >= (result.write.ios - 1) * 1_000_000
    assert result.read.ios > 0


@pytest.mark.parametrize("process", ["linear", "poisson"])
def test_latency_from_the_schedule_shows_what_a_stall_delays(twins: Any, way: str, process: Any) -> None:
    store = twins.store(contents(SPEC))
    spec = replace(SPEC, rate_iops=(10_000, 0), rate_process=process)
    loop, _ = twins.loop(way, spec, store)
    store.on_move = lambda number: time.sleep(0.05) if number == 0 else None
    result = loop.run()
    # All 16 were due within a few ms, so that they waited for most of the stall.
    assert result.read.lat.percentile(50) > 25_000_000
    assert result.read.clat.total_ns < result.read.lat.total_ns


def test_without_a_rate_the_two_latencies_are_one(twins: Any, way: str) -> None:
    read = run_one(twins, way, SPEC).result.read
    assert read.lat == read.clat
    assert read.slat.count == 0


def test_poisson_arrivals_do_not_come_evenly_but_at_the_rate(twins: Any, way: str) -> None:
    spec = replace(SPEC, loops=4, rate_iops=(4000, 0), rate_process="poisson")
    result = run_one(twins, way, spec).result
    assert (result.read.ios, result.ended_by) == (64, EndedBy.IO_SIZE)
    assert result.ended_ns - result.started_ns >= 64 / 4000 * 1e9 / 3


def test_think_time_passes_between_ios(twins: Any, way: str) -> None:
    result = run_one(twins, way, replace(SPEC, think_time_ns=1_000_000)).result
    assert result.ended_ns - result.started_ns >= 16 * 1_000_000


def test_latencies_can_be_left_out(twins: Any, way: str) -> None:
    read = run_one(twins, way, replace(SPEC, latencies=False)).result.read
    assert (read.ios, read.clat.count, read.lat.count) == (16, 0, 0)


# ---- what the main thread sees, and the log ------------------------------------------------------------------


def test_live_counts_and_the_call_in_flight_are_visible(twins: Any, way: str) -> None:
    spec = replace(SPEC, files=(LoopFile(0, 0, BLOCK), LoopFile(1, 0, 64 * KIB)))
    store = twins.store(contents(spec), faults={1: twins.errno(errno.EIO)})
    loop, _ = twins.loop(way, replace(spec, error_limit=1), store)
    seen = []
    store.on_move = lambda number: seen.append(loop.live()) if number == 2 else None
    before = time.monotonic_ns()
    loop.run()
    (live,) = seen
    assert (live.ios, live.bytes, live.errors, live.measuring) == ((1, 0), (BLOCK, 0), 1, True)
    assert replace(live.in_flight, since_ns=0) == InFlight("read", 1, BLOCK, BLOCK, 0)
    assert before <= live.in_flight.since_ns <= time.monotonic_ns()
    assert loop.live().in_flight is None


def test_a_stuck_call_is_visible_from_another_thread(twins: Any, way: str) -> None:
    store = twins.store(contents(SPEC))
    loop, _ = twins.loop(way, SPEC, store)
    stuck, go = threading.Event(), threading.Event()

    def block(number: int) -> None:
        if number == 5:
            stuck.set()
            go.wait(30)

    store.on_move = block
    thread = threading.Thread(target=loop.run)
    thread.start()
    assert stuck.wait(30)
    first, second = loop.live().in_flight, loop.live().in_flight
    assert first == second
    assert (first.operation, first.file_offset) == ("read", 5 * BLOCK)
    go.set()
    thread.join()


def test_a_flush_in_flight_is_visible(twins: Any, way: str) -> None:
    store = twins.store(contents(SPEC))
    loop, _ = twins.loop(way, replace(SPEC, rw="write", end_fsync=True), store)
    seen: list[Any] = []
    store.on_flush = lambda: seen.append(loop.live().in_flight)
    loop.run()
    assert [(flight.operation, flight.file_index) for flight in seen] == [("flush", 0)]


def test_the_io_log_has_one_line_for_each_io(twins: Any, way: str, tmp_path: Any) -> None:
    (tmp_path / "io.csv").touch()
    spec = replace(SPEC, rw="readwrite", random=True, error_limit=1, io_log_path=str(tmp_path / "io.csv"))
    run = run_one(twins, way, spec, faults={4: twins.errno(errno.EIO)})
    rows = [line.split(",") for line in (tmp_path / "io.csv").read_text().splitlines()]
    assert [(r[1], int(r[2]), int(r[3]), int(r[4])) for r in rows] == run.calls
    assert [(int(r[6]), int(r[7])) for r in rows] == [(0, 0)] * 4 + [(1, errno.EIO)] + [(0, 0)] * 11
    times = [int(r[0]) for r in rows]
    assert times == sorted(times)
    assert all(0 <= int(r[5]) <= int(r[0]) for r in rows)


def test_a_log_that_cannot_be_opened_is_refused_before_the_first_io(twins: Any, way: str, tmp_path: Any) -> None:
    spec = replace(SPEC, io_log_path=str(tmp_path / "missing" / "io.csv"))
    with pytest.raises(UnavailableError, match=r"io_log .*missing/io\.csv: No such file or directory"):
        run_one(twins, way, spec)
