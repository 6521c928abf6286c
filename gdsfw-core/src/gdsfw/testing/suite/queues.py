"""Paths that keep several requests in flight: depth, order, cancellation."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gdsfw.backend import QueueRequest
from gdsfw.engine.spec import EndedBy
from gdsfw.errors import Domain
from gdsfw.testing.loops import loop_of, run_loop
from gdsfw.testing.suite.common import data, note, same

if TYPE_CHECKING:
    from gdsfw.testing.subject import Rig, Subject

MIB = 1 << 20
BLOCK, DEPTH = 4096, 8
SECOND = 10**9


class TestQueues:
    """Requests that are on their way together."""

    def test_it_keeps_the_depth_that_it_says(self, subject: Subject) -> None:
        for rig, driver, io in _queues(subject):
            assert 1 <= rig.path.iodepth <= DEPTH
            assert rig.path.iodepth == 1 or (hasattr(io, "submit") and hasattr(io, "reap"))
            result = run_loop(rig, driver, rw="write", block=BLOCK, write_fill="random", verify=None)
            assert result.ended_by is EndedBy.IO_SIZE, result.errors
            deepest = 1 << max(0, len(result.depth_histogram) - 1)
            assert deepest <= rig.path.iodepth

    def test_every_request_completes_once(self, subject: Subject) -> None:
        for rig, _, io in _queues(subject):
            requests = _requests(rig, "write")
            for _ in range(3):
                done = _complete(io, requests)
                assert sorted(done) == list(range(DEPTH))
                assert [done[cookie] for cookie in sorted(done)] == [BLOCK] * DEPTH

    def test_an_idle_queue_answers_by_the_timeout(self, subject: Subject) -> None:
        for _, _, io in _queues(subject):
            assert list(io.reap(0, 0)) == []
            began = time.monotonic()
            assert list(io.reap(1, SECOND // 20)) == []
            assert time.monotonic() - began < 10

    def test_each_request_has_its_own_data_whatever_the_order(self, subject: Subject) -> None:
        subject.need("data")
        for rig, _, io in _queues(subject):
            expected = data(DEPTH * BLOCK)
            rig.put(0, expected)
            _complete(io, _requests(rig, "write"))
            rig.clear()
            _complete(io, _requests(rig, "read", backwards=True))
            found = [rig.get(slot * BLOCK, BLOCK) for slot in reversed(range(DEPTH))]
            assert b"".join(found) == expected

    def test_requests_in_flight_keep_their_data_apart(self, subject: Subject) -> None:
        subject.need("data")
        for rig, driver, _ in _queues(subject):
            for rw in ("write", "read"):
                result = run_loop(rig, driver, rw=rw, block=BLOCK)
                assert result.ended_by is EndedBy.IO_SIZE, result.errors
            assert result.verify is not None
            assert result.verify.checked_bytes == MIB
            assert result.verify.bad_blocks == 0, result.verify.mismatches

    def test_a_request_behind_the_end_spoils_no_other(self, subject: Subject) -> None:
        subject.need("data")
        for rig, _, io in _queues(subject):
            rig.put(0, data(DEPTH * BLOCK))
            _complete(io, _requests(rig, "write"))
            requests = _requests(rig, "read")
            requests[3] = requests[3]._replace(file_offset=8 * MIB)
            rig.clear()
            done = _complete(io, requests, may_fail=[3])
            assert done[3] <= 0
            assert [done[cookie] for cookie in range(DEPTH) if cookie != 3] == [BLOCK] * (DEPTH - 1)
            same(rig.get(4 * BLOCK, BLOCK), data(DEPTH * BLOCK)[4 * BLOCK : 5 * BLOCK])

    def test_a_stop_leaves_nothing_in_flight(self, subject: Subject) -> None:
        for rig, driver, io in _queues(subject):
            plain: dict[str, Any] = {"verify": None, "write_fill": "random"}
            endless = loop_of(rig, driver, rw="write", block=BLOCK, runtime_ns=60 * SECOND, **plain)
            timer = threading.Timer(0.1, endless.stop)
            timer.start()
            result = endless.run()
            timer.join()
            assert result.ended_by is EndedBy.STOP, result.errors
            assert result.error_count == 0, result.errors
            assert endless.live().in_flight is None
            # The path is as good as new.
            assert sorted(_complete(io, _requests(rig, "write"))) == list(range(DEPTH))


def _queues(subject: Subject) -> Iterator[tuple[Rig, str, Any]]:
    for path in subject.paths(queued=True):
        with subject.rig(io_path=path, names=[path], block=BLOCK, iodepth=DEPTH) as rig:
            for driver, io in rig.calls.items():
                note("path", path, "called as", driver)
                yield rig, driver, io


def _requests(rig: Rig, direction: Any, *, backwards: bool = False) -> list[QueueRequest]:
    """One request for each slot, of neighbouring blocks."""
    slots = [DEPTH - 1 - i if backwards else i for i in range(DEPTH)]
    return [QueueRequest(direction, rig.file, BLOCK, i * BLOCK, slot * BLOCK, cookie=i) for i, slot in enumerate(slots)]


def _complete(io: Any, requests: list[QueueRequest], may_fail: list[int] | None = None) -> dict[int, int]:
    """Submit and reap all of them; bytes moved by cookie, minus the code of an error."""
    waiting, done = list(requests), dict[int, int]()
    deadline = time.monotonic() + 30
    while len(done) < len(requests):
        assert time.monotonic() < deadline, f"{len(requests) - len(done)} requests have not come back within 30 s"
        if waiting:
            taken = io.submit(waiting)
            assert 0 <= taken <= len(waiting)
            waiting = waiting[taken:]
        for completion in io.reap(1, SECOND // 10):
            for cookie in range(completion.cookie, completion.cookie + max(1, completion.count)):
                assert cookie not in done, f"request {cookie} has come back twice"
                failed = completion.domain is not Domain.NONE
                assert not failed or cookie in (may_fail or []), f"{completion.domain.name} {completion.code}"
                moved = requests[cookie].size if completion.count > 1 else completion.result
                done[cookie] = -completion.code if failed else moved
    return done
