from __future__ import annotations

import ctypes as c
import errno
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from gdsfw.backend import Buffer, FileHandle, IOPath, Target
from gdsfw.engine import native_table as abi
from gdsfw.engine.native import NativeLoop, NativeQueue, NativeTable
from gdsfw.engine.spec import EndedBy, LoopFile, Verify
from gdsfw.errors import Domain

Make = Callable[..., Any]
KIB = 1024


@dataclass
class Wanted:
    """A request as the queue saw it."""

    write: bool
    size: int
    offset: int
    buffer_offset: int
    cookie: int


@dataclass
class QueueTable:
    """A queue written in Python: `finish` turns what is in flight into completions (cookie, count, domain, value).

    By default everything in flight completes in full, oldest first, as many as the loop takes.
    """

    capacity: int = 1000
    finish: Callable[[deque[Wanted], int, int], list[tuple[int, int, int, int]]] | None = None
    on_submit: Callable[[list[Wanted]], int] | None = None
    open_result: int = 0
    max_transfer: int = 0
    flags: int = abi.CAN_READ | abi.CAN_WRITE
    submitted: list[Wanted] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)
    flying: deque[Wanted] = field(default_factory=deque)
    most_flying: int = 0
    waits: list[tuple[int, int, int]] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    options: tuple[int, ...] = ()

    def path(self, files: int = 1) -> IOPath:
        self._queue = NativeQueue(
            open=abi.OPEN_FN(self._open),
            submit=abi.SUBMIT_FN(self._submit),
            reap=abi.REAP_FN(self._reap),
            cancel=abi.CANCEL_FN(self._cancel),
            close=abi.CLOSE_FN(lambda queue: self.events.append(f"close with {len(self.flying)} in flight")),
        )
        table = NativeTable(flags=self.flags, max_transfer=self.max_transfer, queue=c.pointer(self._queue))
        table.flush = abi.FLUSH_FN(self._flush)
        handles = [FileHandle(Target(f"f{i}", i, 0)) for i in range(files)]
        return IOPath("queue", handles, native=table, file_values=[20 + i for i in range(files)], keep=[self._queue])

    def _open(self, ctx: int, options: Any, queue: Any) -> int:
        o = options.contents
        self.options = (o.iodepth, o.iodepth_batch, o.buffer_size, o.max_block, o.nfiles, o.files[0])
        queue[0] = 0xFEDC_BA98_7654_3210
        self.events.append("open")
        if self.open_result < 0:
            c.set_errno(errno.EPERM)
        return self.open_result

    def _submit(self, queue: int, requests: Any, n: int) -> int:
        assert queue == 0xFEDC_BA98_7654_3210
        new = [
            Wanted(bool(r.opcode), r.size, r.file_offset, r.buffer_offset, r.cookie)
            for r in (requests[i] for i in range(n))
        ]
        if self.on_submit is not None:
            answer = self.on_submit(new)
            if answer <= 0:
                return answer
            new = new[:answer]
        new = new[: self.capacity - len(self.flying)]
        self.flying.extend(new)
        self.submitted.extend(new)
        self.batches.append(len(new))
        self.most_flying = max(self.most_flying, len(self.flying))
        return len(new)

    def _reap(self, queue: int, completions: Any, at_least: int, at_most: int, timeout_ns: int) -> int:
        self.waits.append((at_least, at_most, timeout_ns))
        if self.finish is not None:
            done = self.finish(self.flying, at_least, at_most)
        else:
            done = [(w.cookie, 1, 0, w.size) for w in list(self.flying)[:at_most]]
            for _ in done:
                self.flying.popleft()
        for i, (cookie, count, domain, value) in enumerate(done):
            result, code = (value, 0) if domain == 0 else (0, value)
            completions[i] = abi.CompletionStruct(cookie, count, domain, result, code, 10, 3)
        return len(done)

    def _flush(self, ctx: int, file: int, data_only: int) -> int:
        self.events.append("flush")
        return 0

    def _cancel(self, queue: int) -> int:
        self.events.append("cancel")
        return 0


def test_all_blocks_go_out_once_and_the_queue_is_closed_empty(run: Make, make_spec: Make) -> None:
    queue = QueueTable()
    result = run(make_spec(iodepth=8, batch_submit=4, random=True), queue.path())
    assert sorted(w.offset for w in queue.submitted) == [i * 4096 for i in range(64)]
    assert (result.read.ios, result.read.bytes) == (64, 256 * KIB)
    assert result.ended_by is EndedBy.IO_SIZE
    assert queue.events == ["open", "close with 0 in flight"]
    assert queue.options[:2] == (8, 4)
    assert queue.options[3:] == (4096, 1, 20)


def test_cookies_of_consecutive_requests_are_consecutive(run: Make, make_spec: Make) -> None:
    queue = QueueTable()
    run(make_spec(iodepth=8, batch_submit=3), queue.path())
    assert [w.cookie for w in queue.submitted] == list(range(64))


def test_fifo_queue_sees_adjacent_buffer_offsets(run: Make, make_spec: Make) -> None:
    queue = QueueTable()
    run(make_spec(iodepth=8, slot_stride=4096, buffer_offset=8192), queue.path())
    assert [w.buffer_offset for w in queue.submitted] == [8192 + 4096 * (i % 8) for i in range(64)]


def test_slots_in_flight_never_share_memory_when_completions_come_in_any_order(run: Make, make_spec: Make) -> None:
    import random

    rng = random.Random(2)

    def finish(flying: deque[Wanted], at_least: int, at_most: int) -> list[tuple[int, int, int, int]]:
        assert len({w.buffer_offset for w in flying}) == len(flying)
        count = min(len(flying), at_most, max(at_least, rng.randrange(4)))
        done = []
        for _ in range(count):
            index = rng.randrange(len(flying))
            flying.rotate(-index)
            wanted = flying.popleft()
            done.append((wanted.cookie, 1, 0, wanted.size))
        return done

    queue = QueueTable(finish=finish)
    result = run(make_spec(iodepth=16, batch_submit=5, loops=20, random=True), queue.path())
    assert result.read.ios == 64 * 20
    assert sum(result.depth_histogram) == 64 * 20


def test_one_slow_request_does_not_hold_back_the_others(run: Make, make_spec: Make) -> None:
    def finish(flying: deque[Wanted], at_least: int, at_most: int) -> list[tuple[int, int, int, int]]:
        others = [w for w in flying if w.cookie != 3][: max(at_least, 1)]
        done = others or list(flying)
        for wanted in done:
            flying.remove(wanted)
        return [(w.cookie, 1, 0, w.size) for w in done]

    queue = QueueTable(finish=finish)
    result = run(make_spec(iodepth=4, loops=50), queue.path())
    assert result.read.ios == 3200


def test_depth_is_kept_and_seen(run: Make, make_spec: Make) -> None:
    def finish(flying: deque[Wanted], at_least: int, at_most: int) -> list[tuple[int, int, int, int]]:
        done = [flying.popleft() for _ in range(at_least)]
        return [(w.cookie, 1, 0, w.size) for w in done]

    queue = QueueTable(finish=finish)
    result = run(make_spec(iodepth=16, batch_submit=16, loops=10), queue.path())
    assert queue.most_flying == 16
    assert len(result.depth_histogram) == 5
    assert result.depth_histogram[4] >= 600


def test_batches_are_waited_for_and_submitted_together(run: Make, make_spec: Make) -> None:
    queue = QueueTable()
    run(make_spec(iodepth=8, batch_submit=4, batch_complete=4, loops=5), queue.path())
    assert max(queue.batches) == 4
    assert max(at_least for at_least, _, _ in queue.waits) == 4
    assert all(0 <= timeout <= 20_000_000 for _, _, timeout in queue.waits)


def test_one_completion_for_a_group_completes_each_of_it(run: Make, make_spec: Make) -> None:
    def finish(flying: deque[Wanted], at_least: int, at_most: int) -> list[tuple[int, int, int, int]]:
        count = len(flying)
        first = flying[0].cookie if flying else 0
        flying.clear()
        return [(first, count, 0, 0)] if count else []

    queue = QueueTable(finish=finish)
    result = run(make_spec(iodepth=8, batch_submit=8), queue.path())
    assert (result.read.ios, result.read.bytes) == (64, 256 * KIB)
    assert result.read.clat.count == result.read.slat.count == result.read.lat.count == 64


def test_short_completions_are_continued_where_they_ended(run: Make, make_spec: Make) -> None:
    def finish(flying: deque[Wanted], at_least: int, at_most: int) -> list[tuple[int, int, int, int]]:
        done = [(w.cookie, 1, 0, min(w.size, 3000)) for w in flying]
        flying.clear()
        return done

    queue = QueueTable(finish=finish)
    result = run(make_spec(length=8192, iodepth=2, batch_submit=2), queue.path())
    assert (result.read.ios, result.read.bytes, result.read.short_ios) == (2, 8192, 2)
    pieces = sorted((w.offset, w.size, w.buffer_offset) for w in queue.submitted)
    assert pieces == [(0, 4096, 0), (3000, 1096, 3000), (4096, 4096, 65536), (7096, 1096, 68536)]


def test_blocks_above_max_transfer_are_split_in_their_slot(run: Make, make_spec: Make) -> None:
    queue = QueueTable(max_transfer=1024)
    result = run(make_spec(length=8192, iodepth=2, batch_submit=2), queue.path())
    assert len(queue.submitted) == 8
    assert (result.read.ios, result.read.short_ios, result.read.bytes) == (2, 0, 8192)


def test_full_queue_gets_the_rest_later(run: Make, make_spec: Make) -> None:
    queue = QueueTable(capacity=3)
    result = run(make_spec(iodepth=8, batch_submit=8), queue.path())
    assert result.read.ios == 64
    assert queue.most_flying == 3


def test_queue_that_never_takes_anything_is_an_error(run: Make, make_spec: Make) -> None:
    result = run(make_spec(iodepth=4), QueueTable(capacity=0).path())
    assert (result.errors[0].operation, result.errors[0].code) == ("submit", errno.EAGAIN)
    assert result.ended_by is EndedBy.ERROR


@pytest.mark.parametrize(("domain", "code"), [(Domain.ERRNO, errno.EIO), (Domain.FILE, 5030), (Domain.GPU, 700)])
def test_failed_request_is_reported_with_its_place(run: Make, make_spec: Make, domain: Domain, code: int) -> None:
    def finish(flying: deque[Wanted], at_least: int, at_most: int) -> list[tuple[int, int, int, int]]:
        done = [(w.cookie, 1, int(domain), code) if w.offset == 8192 else (w.cookie, 1, 0, w.size) for w in flying]
        flying.clear()
        return done

    result = run(make_spec(iodepth=4, error_limit=5), QueueTable(finish=finish).path())
    (error,) = result.errors
    assert (error.operation, error.file_offset, error.size) == ("read", 8192, 4096)
    assert (error.domain, error.code) == (domain, code)
    assert result.read.ios == 63


def test_first_error_withdraws_the_rest_and_drains(run: Make, make_spec: Make) -> None:
    def finish(flying: deque[Wanted], at_least: int, at_most: int) -> list[tuple[int, int, int, int]]:
        wanted = flying.popleft()
        if wanted.offset == 4096:
            return [(wanted.cookie, 1, int(Domain.ERRNO), errno.EIO)]
        return [(wanted.cookie, 1, 0, wanted.size)]

    queue = QueueTable(finish=finish)
    result = run(make_spec(iodepth=8, batch_submit=8), queue.path())
    assert result.ended_by is EndedBy.ERROR
    assert result.error_count == 1
    assert queue.events == ["open", "cancel", "close with 0 in flight"]


@pytest.mark.parametrize("result_of_reap", ["zero", "too much"])
def test_impossible_counts_are_errors(run: Make, make_spec: Make, result_of_reap: str) -> None:
    def finish(flying: deque[Wanted], at_least: int, at_most: int) -> list[tuple[int, int, int, int]]:
        done = [(w.cookie, 1, 0, 0 if result_of_reap == "zero" else w.size + 1) for w in flying]
        flying.clear()
        return done

    result = run(make_spec(iodepth=1), QueueTable(finish=finish).path())
    assert result.errors[0].code == (errno.ENODATA if result_of_reap == "zero" else errno.EPROTO)


def test_completion_of_an_unknown_cookie_is_an_error(run: Make, make_spec: Make) -> None:
    def finish(flying: deque[Wanted], at_least: int, at_most: int) -> list[tuple[int, int, int, int]]:
        done = [flying.popleft() for _ in range(min(len(flying), at_most - 1))]
        return [(10**9, 1, 0, 4096), *((w.cookie, 1, 0, w.size) for w in done)]

    result = run(make_spec(iodepth=4, error_limit=1000), QueueTable(finish=finish).path())
    assert (result.errors[0].operation, result.errors[0].code) == ("reap", errno.EPROTO)
    assert result.read.ios == 64


def test_refusal_to_open_is_an_error_before_anything_was_issued(run: Make, make_spec: Make) -> None:
    queue = QueueTable(open_result=-1)
    result = run(make_spec(iodepth=4), queue.path())
    assert (result.errors[0].operation, result.errors[0].code) == ("open", errno.EPERM)
    assert result.total_ios == 0
    assert queue.events == ["open"]


def test_refused_submission_fails_that_request_only(run: Make, make_spec: Make) -> None:
    def on_submit(new: list[Wanted]) -> int:
        if new[0].offset == 8192:
            c.set_errno(errno.ENOMEM)
            return -1
        return 1

    result = run(make_spec(iodepth=4, error_limit=3), QueueTable(on_submit=on_submit).path())
    (error,) = result.errors
    assert (error.operation, error.file_offset, error.code) == ("submit", 8192, errno.ENOMEM)
    assert result.read.ios == 63


def test_stop_cancels_and_withdrawn_requests_are_no_errors(make_spec: Make, buffer: Buffer) -> None:
    def finish(flying: deque[Wanted], at_least: int, at_most: int) -> list[tuple[int, int, int, int]]:
        time.sleep(0.001)
        if "cancel" not in queue.events:
            return []
        done = [(w.cookie, 1, int(Domain.ERRNO), errno.ECANCELED) for w in flying]
        flying.clear()
        return done

    queue = QueueTable(finish=finish)
    loop = NativeLoop(make_spec(iodepth=4, batch_submit=4), queue.path(), buffer)
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(loop.run()))
    thread.start()
    while (seen := loop.live().in_flight) is None:
        time.sleep(0.001)
    assert (seen.operation, seen.file_offset, seen.size) == ("read", 0, 4096)
    loop.stop()
    thread.join(30)
    (result,) = results
    assert (result.ended_by, result.error_count, result.read.ios) == (EndedBy.STOP, 0, 0)
    assert queue.events[-1] == "close with 0 in flight"


def test_runtime_ends_by_draining_not_by_cancelling(run: Make, make_spec: Make) -> None:
    queue = QueueTable()
    result = run(make_spec(iodepth=8, runtime_ns=30_000_000), queue.path())
    assert result.ended_by is EndedBy.RUNTIME
    assert "cancel" not in queue.events
    assert result.read.ios == len(queue.submitted)


def test_rate_holds_with_a_queue(run: Make, make_spec: Make) -> None:
    queue = QueueTable()
    result = run(make_spec(iodepth=8, rate_iops=(1000, 0), io_size=50 * 4096), queue.path())
    assert result.ended_ns - result.started_ns >= 49_000_000
    assert result.read.lat.count == 50


def test_think_time_lets_one_request_out_at_a_time(run: Make, make_spec: Make) -> None:
    queue = QueueTable()
    result = run(make_spec(iodepth=8, think_time_ns=1_000_000, io_size=10 * 4096), queue.path())
    assert queue.most_flying == 1
    assert result.ended_ns - result.started_ns >= 9_000_000


def test_storage_and_copy_times_are_summed(run: Make, make_spec: Make) -> None:
    result = run(make_spec(iodepth=2), QueueTable().path())
    assert (result.storage_ns, result.copy_ns) == (640, 192)


def test_generations_keep_overlapping_requests_apart(make_spec: Make, run: Make) -> None:
    def finish(flying: deque[Wanted], at_least: int, at_most: int) -> list[tuple[int, int, int, int]]:
        for wanted in flying:
            same = [w for w in flying if w.offset == wanted.offset]
            assert len(same) == 1 or not any(w.write for w in same)
        done = [flying.pop() for _ in range(min(at_most, max(1, at_least)))]
        return [(w.cookie, 1, 0, w.size) for w in done]

    queue = QueueTable(finish=finish, flags=7)
    spec = make_spec(
        rw="readwrite",
        random=True,
        length=32 * KIB,
        loops=30,
        iodepth=4,
        batch_submit=4,
        write_fill="pattern",
        verify=Verify(check=False, generations=True),
    )
    result = run(spec, queue.path())
    assert result.read.ios + result.write.ios == 240


def test_flushes_of_a_queue_job_reach_every_file(run: Make, make_spec: Make) -> None:
    queue = QueueTable()
    files = tuple(LoopFile(i, 0, 16 * KIB) for i in range(2))
    result = run(make_spec(rw="write", files=files, iodepth=4, fsync_every=4, end_fsync=True), queue.path(2))
    assert result.flushes == queue.events.count("flush") >= 4
