"""The C loop and the Python loop drive a queue alike: batches, order, data, accounts, errors, endings."""

from __future__ import annotations

import ctypes as c
import errno
import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from gdsfw.backend import Buffer, Completion, FileHandle, IOPath, QueueRequest, Target
from gdsfw.engine import native
from gdsfw.engine import native_table as abi
from gdsfw.engine.python_loop import PythonLoop
from gdsfw.engine.spec import BlockSizes, EndedBy, InFlight, Loop, LoopError, LoopFile, LoopSpec, Verify
from gdsfw.errors import BackendError, Domain, PluginError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

KIB = 1024
BLOCK = 4 * KIB
WAYS = ("native", "python", "table")
FILE_CODE_BASE = 5000

SPEC = LoopSpec(
    rw="read",
    random=False,
    read_blocks=BlockSizes(((BLOCK, 1),)),
    write_blocks=BlockSizes(((BLOCK, 1),)),
    block_align=0,
    files=(LoopFile(5, 0, 64 * KIB, pattern_seed=9),),
    seed=7,
    iodepth=8,
    batch_submit=4,
    slot_stride=16 * KIB,
)


@dataclass
class QueueStore:
    """Files in memory behind a queue that completes in any order, the same one for the same seed.

    Args:
        capacity: requests it holds.
        grouped: complete everything in flight at once, with one completion for a run of cookies.
        faults: by cookie: an error (domain, code), or a function from size to the count moved.
        refusals, reap_failures: by number of the call: an exception.
        forged: by number of the reap: a completion to give back instead.
    """

    files: list[bytearray]
    seed: int = 0
    capacity: int = 100
    grouped: bool = False
    faults: Mapping[int, tuple[Domain, int] | Callable[[int], int]] = field(default_factory=dict)
    refusals: Mapping[int, Exception] = field(default_factory=dict)
    reap_failures: Mapping[int, Exception] = field(default_factory=dict)
    forged: Mapping[int, Completion] = field(default_factory=dict)
    on_reap: Callable[[int], object] = lambda number: None
    submissions: list[list[QueueRequest]] = field(default_factory=list)
    waits: list[tuple[int, int]] = field(default_factory=list)
    flying: list[QueueRequest] = field(default_factory=list)
    cancelled: int = 0
    flushes: int = 0

    def __post_init__(self) -> None:
        self._rng = random.Random(self.seed)

    def submit(self, requests: list[QueueRequest]) -> int:
        self.submissions.append(requests)
        if len(self.submissions) - 1 in self.refusals:
            raise self.refusals[len(self.submissions) - 1]
        taken = requests[: self.capacity - len(self.flying)]
        self.flying += taken
        return len(taken)

    def reap(self, view: memoryview, at_least: int, timeout_ns: int) -> list[Completion]:
        number = len(self.waits)
        self.waits.append((at_least, timeout_ns))
        self.on_reap(number)
        if number in self.reap_failures:
            raise self.reap_failures[number]
        if number in self.forged:
            return [self.forged[number]]
        if self.grouped:
            done, self.flying = self.flying, []
            return self._group([self._finish(request, view) for request in done], done)
        count = self._rng.randint(min(at_least, len(self.flying)), len(self.flying))
        self._rng.shuffle(self.flying)
        done, self.flying = self.flying[:count], self.flying[count:]
        return [self._finish(request, view) for request in done]

    def _finish(self, request: QueueRequest, view: memoryview) -> Completion:
        fault = (Domain.ERRNO, errno.ECANCELED) if self.cancelled else self.faults.get(request.cookie)
        if isinstance(fault, tuple):
            return Completion(request.cookie, domain=fault[0], code=fault[1], storage_ns=10, copy_ns=3)
        count = request.size if fault is None else fault(request.size)
        data = self.files[request.file]  # type: ignore[call-overload]
        moved = min(count, request.size)
        at = view[request.buffer_offset :]
        if request.direction == "read":
            moved = max(0, min(moved, len(data) - request.file_offset))
            at[:moved] = data[request.file_offset : request.file_offset + moved]
        else:
            data[request.file_offset : request.file_offset + moved] = at[:moved]
        return Completion(request.cookie, count if count > request.size else moved, storage_ns=10, copy_ns=3)

    @staticmethod
    def _group(completions: list[Completion], requests: list[QueueRequest]) -> list[Completion]:
        grouped: list[Completion] = []
        for completion, request in zip(completions, requests, strict=True):
            full = completion.domain == Domain.NONE and completion.result == request.size
            last = grouped[-1] if grouped else None
            if full and last is not None and last.result == -1 and last.cookie + last.count == completion.cookie:
                last.count += 1
            else:
                # -1 marks a group for the moment.
                grouped.append(replace(completion, result=-1) if full else completion)
        sizes = {request.cookie: request.size for request in requests}
        return [replace(g, result=sizes[g.cookie]) if g.result == -1 else g for g in grouped]


class QueueIO:
    """A queue store as a Python path; the table's twin, files known by their index."""

    def __init__(self, store: QueueStore, handles: list[FileHandle], view: memoryview) -> None:
        self._store = store
        self._index = {id(handle): index for index, handle in enumerate(handles)}
        self._view = view

    def read(self, file: FileHandle, size: int, file_offset: int, buffer_offset: int) -> int:
        raise AssertionError("a path with a queue is driven by its queue")

    write = read

    def flush(self, file: FileHandle, data_only: bool) -> None:
        self._store.flushes += 1

    def submit(self, requests: list[QueueRequest]) -> int:
        indexed: list[Any] = [(*request[:1], self._index[id(request.file)], *request[2:]) for request in requests]
        return self._store.submit([QueueRequest(*request) for request in indexed])

    def reap(self, at_least: int, timeout_ns: int) -> list[Completion]:
        return self._store.reap(self._view, at_least, timeout_ns)

    def cancel(self) -> None:
        self._store.cancelled += 1


def queue_table(store: QueueStore, view: memoryview) -> tuple[native.NativeTable, list[Any]]:
    def code(function: Callable[[], int]) -> int:
        try:
            return function()
        except OSError as error:
            c.set_errno(error.errno or errno.EIO)
            return -1
        except BackendError as error:
            return -error.code

    def submit(queue: int, requests: Any, n: int) -> int:
        wanted = [
            QueueRequest(("read", "write")[r.opcode], r.file, r.size, r.file_offset, r.buffer_offset, r.cookie)
            for r in requests[:n]
        ]
        return code(lambda: store.submit(wanted))

    def reap(queue: int, out: Any, at_least: int, at_most: int, timeout_ns: int) -> int:
        def go() -> int:
            done = store.reap(view, at_least, timeout_ns)
            assert len(done) <= at_most
            for i, x in enumerate(done):
                out[i] = abi.CompletionStruct(
                    x.cookie, x.count, int(x.domain), x.result, x.code, x.storage_ns, x.copy_ns
                )
            return len(done)

        return code(go)

    def count(name: str) -> int:
        setattr(store, name, getattr(store, name) + 1)
        return 0

    queue = native.NativeQueue(
        open=abi.OPEN_FN(lambda ctx, options, queue: 0),
        submit=abi.SUBMIT_FN(submit),
        reap=abi.REAP_FN(reap),
        cancel=abi.CANCEL_FN(lambda queue: count("cancelled")),
        close=abi.CLOSE_FN(lambda queue: None),
    )
    table = native.NativeTable(
        flags=abi.HOST_VISIBLE | abi.CAN_READ | abi.CAN_WRITE,
        file_code_base=FILE_CODE_BASE,
        queue=c.pointer(queue),
        flush=abi.FLUSH_FN(lambda ctx, file, data_only: count("flushes")),
    )
    return table, [queue]


def make_loop(way: str, spec: LoopSpec, store: QueueStore) -> tuple[Loop, bytearray]:
    memory = bytearray(512 * KIB)
    view = memoryview(memory)
    buffer = Buffer(c.addressof((c.c_uint8 * len(memory)).from_buffer(memory)), len(memory), host_view=view)
    handles = [FileHandle(Target(f"file{i}", i, 0)) for i in range(len(store.files))]
    if way == "python":
        return PythonLoop(spec, IOPath("q", handles, python=QueueIO(store, handles, view), iodepth=8), buffer), memory
    table, keep = queue_table(store, view)
    path = IOPath("q", handles, native=table, file_values=range(len(handles)), iodepth=8, keep=keep)
    return (native.NativeLoop if way == "native" else PythonLoop)(spec, path, buffer), memory


def contents(spec: LoopSpec) -> list[bytearray]:
    return [bytearray(file.start + file.length) for file in spec.files]


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    usable, reason = native.available()
    if request.param != "python" and not usable:
        pytest.skip(reason)
    return str(request.param)


def run_one(way: str, spec: LoopSpec, **store: Any) -> tuple[Any, QueueStore]:
    made = QueueStore(contents(spec), **store)
    return make_loop(way, spec, made)[0].run(), made


@st.composite
def specs(draw: st.DrawFn) -> LoopSpec:
    depth = draw(st.integers(1, 8))
    lengths = draw(st.lists(st.integers(0, 30_000), min_size=1, max_size=2).filter(any))
    fill: Any = draw(st.sampled_from(["random", "pattern"]))
    sizes = st.sampled_from([512, 1000, 4096, 8192])
    split = st.lists(st.tuples(sizes, st.integers(1, 3)), min_size=1, max_size=3).map(lambda x: BlockSizes(tuple(x)))
    return LoopSpec(
        rw=draw(st.sampled_from(["read", "write", "readwrite"])),
        random=draw(st.booleans()),
        read_blocks=draw(split),
        write_blocks=draw(split),
        block_align=draw(st.sampled_from([0, 512])),
        files=tuple(LoopFile(i, 512, length, pattern_seed=i) for i, length in enumerate(lengths)),
        seed=draw(st.integers(0, 2**64 - 1)),
        io_size=draw(st.sampled_from([0, 10_000, 100_001])),
        iodepth=depth,
        batch_submit=draw(st.integers(1, depth)),
        batch_complete=draw(st.integers(1, depth)),
        slot_stride=16 * KIB,
        fsync_every=draw(st.sampled_from([0, 3])),
        end_fsync=draw(st.booleans()),
        write_fill=fill,
        dedupe_percent=draw(st.sampled_from([0, 60])),
        verify=Verify(generations=draw(st.booleans())) if fill == "pattern" else None,
        error_limit=draw(st.sampled_from([0, 2, 2**63])),
    )


FAULTS = st.sampled_from(
    [
        (Domain.ERRNO, errno.EIO),
        (Domain.GPU, 719),
        (Domain.FILE, 5005),
        lambda size: size // 2 + 1,
        lambda size: 1,
        lambda size: 0,
        lambda size: size + 1,
    ]
)
REFUSALS = st.sampled_from([OSError(errno.ENOMEM, "no memory"), BackendError("submit", Domain.GPU, 2)])

property_test = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
usable, reason = native.available()


@pytest.mark.skipif(not usable, reason=reason)
@property_test
@given(
    spec=specs(),
    faults=st.dictionaries(st.integers(0, 40), FAULTS, max_size=4),
    refusals=st.dictionaries(st.integers(0, 6), REFUSALS, max_size=1),
    seed=st.integers(0, 99),
    capacity=st.sampled_from([0, 1, 3, 100]),
    grouped=st.booleans(),
)
def test_both_loops_drive_a_queue_alike(twins: Any, spec: LoopSpec, **how: Any) -> None:
    runs = []
    for way in WAYS:
        store = QueueStore(contents(spec), **how)
        loop, memory = make_loop(way, spec, store)
        runs.append((loop.run(), store, memory))
    (result, store, memory) = runs[0]
    for other_result, other, other_memory in runs[1:]:
        assert other.submissions == store.submissions
        assert [at_least for at_least, _ in other.waits] == [at_least for at_least, _ in store.waits]
        assert twins.accounts(other_result) == twins.accounts(result)
        assert (other.cancelled, other.flushes) == (store.cancelled, store.flushes)
        assert (other_result.storage_ns, other_result.copy_ns) == (result.storage_ns, result.copy_ns)
        assert other.files == store.files
        assert other_memory == memory


def test_cookies_are_consecutive_and_a_fifo_queue_sees_adjacent_slots(way: str) -> None:
    _, store = run_one(way, SPEC, grouped=True)
    requests = [request for batch in store.submissions for request in batch]
    assert [request.cookie for request in requests] == list(range(16))
    assert [request.buffer_offset for request in requests] == [16 * KIB * (i % 8) for i in range(16)]


def test_latencies_of_a_queue_are_three(way: str) -> None:
    result, _ = run_one(way, SPEC)
    assert result.read.slat.count == result.read.clat.count == result.read.lat.count == 16
    assert result.read.lat.total_ns == result.read.slat.total_ns + result.read.clat.total_ns


def test_a_queue_that_never_takes_anything_is_an_error(way: str) -> None:
    result, _ = run_one(way, SPEC, capacity=0)
    assert result.errors == (LoopError("submit", 0, 0, BLOCK, Domain.ERRNO, errno.EAGAIN),)


def test_a_refused_submission_fails_its_first_request(way: str) -> None:
    result, _ = run_one(way, replace(SPEC, error_limit=1), refusals={0: OSError(errno.ENOMEM, "no memory")})
    assert result.errors == (LoopError("submit", 0, 0, BLOCK, Domain.ERRNO, errno.ENOMEM),)
    assert (result.ended_by, result.read.ios) == (EndedBy.IO_SIZE, 15)


def test_a_reap_that_fails_ends_the_loop_once_all_is_back(way: str) -> None:
    failures = {1: OSError(errno.EBADF, "bad"), 2: OSError(errno.EBADF, "bad")}
    result, store = run_one(way, SPEC, reap_failures=failures)
    assert (result.ended_by, store.flying, store.cancelled) == (EndedBy.ERROR, [], 1)
    assert result.errors == (LoopError("reap", 0, 0, 0, Domain.ERRNO, errno.EBADF),)


def test_an_interrupted_reap_is_repeated(way: str) -> None:
    result, _ = run_one(way, SPEC, reap_failures={1: OSError(errno.EINTR, "interrupted")})
    assert (result.ended_by, result.read.ios, result.error_count) == (EndedBy.IO_SIZE, 16, 0)


def test_an_unknown_cookie_is_an_error(way: str) -> None:
    result, _ = run_one(way, replace(SPEC, error_limit=1), forged={0: Completion(10**9, BLOCK)})
    assert result.errors == (LoopError("reap", 0, 0, 0, Domain.ERRNO, errno.EPROTO),)
    assert result.read.ios == 16


def test_stop_asks_for_an_early_end_and_withdrawn_requests_are_no_errors(way: str) -> None:
    spec = replace(SPEC, runtime_ns=3600 * 10**9)
    store = QueueStore(contents(spec))
    loop, _ = make_loop(way, spec, store)
    store.on_reap = lambda number: loop.stop() if number == 5 else None
    result = loop.run()
    assert (result.ended_by, result.error_count, store.flying) == (EndedBy.STOP, 0, [])
    assert store.cancelled <= 1
    assert all(timeout <= 20_000_000 for _, timeout in store.waits)


def test_runtime_drains_and_does_not_cancel(way: str) -> None:
    result, store = run_one(way, replace(SPEC, runtime_ns=20_000_000))
    assert (result.ended_by, store.cancelled, store.flying) == (EndedBy.RUNTIME, 0, [])
    assert result.read.ios == sum(len(batch) for batch in store.submissions)


def test_a_rate_holds_back_requests_and_measures_from_the_schedule(way: str) -> None:
    store = QueueStore(contents(SPEC))
    loop, _ = make_loop(way, replace(SPEC, rate_iops=(10_000, 0)), store)
    store.on_reap = lambda number: time.sleep(0.02) if number == 0 else None
    result = loop.run()
    assert (result.read.lat.percentile(50) or 0) > 10_000_000
    assert result.ended_ns - result.started_ns >= 15 * 100_000


def test_think_time_lets_one_request_out_at_a_time(way: str) -> None:
    result, store = run_one(way, replace(SPEC, think_time_ns=1_000_000))
    assert [len(batch) for batch in store.submissions] == [1] * 16
    assert result.ended_ns - result.started_ns >= 15 * 1_000_000


def test_the_oldest_request_is_visible(way: str) -> None:
    store = QueueStore(contents(SPEC))
    loop, _ = make_loop(way, SPEC, store)
    seen: list[Any] = []
    store.on_reap = lambda number: seen.append((min(r.file_offset for r in store.flying), loop.live().in_flight))
    loop.run()
    for offset, in_flight in seen:
        assert replace(in_flight, since_ns=0) == InFlight("read", 0, offset, BLOCK, 0)
    assert loop.live().in_flight is None


def test_a_queue_that_keeps_a_request_keeps_the_loop_and_shows_it(way: str) -> None:
    store = QueueStore(contents(SPEC))
    loop, _ = make_loop(way, SPEC, store)
    held: list[QueueRequest] = []
    go = threading.Event()

    def hold(number: int) -> None:
        if not held:
            held.append(store.flying.pop(0))
        if go.is_set():
            store.flying += held
        time.sleep(0.001)

    store.on_reap = hold
    thread = threading.Thread(target=loop.run)
    thread.start()
    while loop.live().ios[0] < 15:
        time.sleep(0.001)
    loop.stop()
    time.sleep(0.02)
    stuck = loop.live().in_flight
    assert thread.is_alive()
    assert stuck is not None
    assert stuck.file_offset == held[0].file_offset
    go.set()
    thread.join()


def test_depth_without_a_queue_is_a_defect_of_the_plugin() -> None:
    class Synchronous:
        def read(self, file: FileHandle, size: int, file_offset: int, buffer_offset: int) -> int:
            return size

        write = read

    path = IOPath("plain", [FileHandle(Target("f", 0, 0))], python=Synchronous(), iodepth=8)
    with pytest.raises(PluginError, match="path plain is to keep 8 requests in flight, but has no submit and reap"):
        PythonLoop(SPEC, path, Buffer(0, 1 << 20))
