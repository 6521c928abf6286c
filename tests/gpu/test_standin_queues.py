"""Stand-ins: batches and stream-ordered transfers."""

from __future__ import annotations

import ctypes as c
import errno
import os
from pathlib import Path

from fakes.api import CANCELED, COMPLETE, FAILED, INVALID, READ, WRITE, Api, Entry, Event, Gate, StreamCall, entry
from fakes.child import own_process

INVALID_VALUE, MAPPING_SIZE, FILE_NOT, INTERNAL, BATCH_FULL = 5022, 5016, 5027, 5030, 5037


def set_up(api: Api, path: Path, nbytes: int = 65536, flags: int = os.O_RDWR) -> tuple[int, int]:
    """A registered file, left open, and a registered buffer."""
    api.enter()
    handle, address = api.register(os.open(path, flags)), api.alloc(nbytes)
    api.ok("buffer_register", address, nbytes, 0)
    return handle, address


def blocks(handle: int, address: int, n: int, size: int = 4096) -> list[Entry]:
    return [entry(handle, address, size, index + 1, index * size) for index in range(n)]


# ---- batches ----


@own_process(order="reverse")
def test_entries_complete_in_any_order_with_a_status_and_count_of_their_own(api: Api, data: Path) -> None:
    handle, address = set_up(api, data)
    batch = api.batch(16)
    assert api.submit(batch, blocks(handle, address, 16)) == (0, 0)
    events = api.reap(batch, 16)
    assert sorted(events) == [(cookie, COMPLETE, 4096) for cookie in range(1, 17)]
    assert events != sorted(events)
    assert api.peek(address, 65536) == data.read_bytes()


@own_process()
def test_a_batch_writes(api: Api, data: Path) -> None:
    handle, address = set_up(api, data)
    api.ok("set8", address, 0x55, 8192)
    batch = api.batch(2)
    assert api.submit(batch, [entry(handle, address, 4096, 1, 4096, WRITE)]) == (0, 0)
    assert api.reap(batch, 1) == [(1, COMPLETE, 4096)]
    assert data.read_bytes()[4096:8192] == b"\x55" * 4096


@own_process()
def test_batches_have_limits(api: Api, data: Path) -> None:
    handle, address = set_up(api, data)
    wrong = (INVALID_VALUE if api.hip else INTERNAL, 0)
    pointer = c.c_void_p()
    assert api.file_status("batch_setup", c.byref(pointer), 0) == wrong
    assert api.file_status("batch_setup", c.byref(pointer), 129) == wrong
    assert api.file_status("batch_setup", None, 1) == wrong
    batch = api.batch(2)
    full = (BATCH_FULL if api.hip else INTERNAL, 0)
    assert api.submit(batch, blocks(handle, address, 3)) == full
    assert api.file_status("batch_submit", batch, 0, None, 0) == wrong
    n, events = c.c_uint(1), (Event * 4)()
    assert api.file_status("batch_status", batch, 2, c.byref(n), events, None) == wrong
    assert api.file_status("batch_status", batch, 0, None, events, None) == wrong
    assert api.file_status("batch_status", batch, 0, c.byref(n), None, None) == wrong
    assert api.file_status("batch_status", batch + 64, 0, c.byref(n), events, None) == wrong
    assert api.file_status("batch_cancel", None)[0] == (INVALID_VALUE if api.hip else 0)


@own_process()
def test_a_batch_needs_an_open_driver_at_cufile(api: Api) -> None:
    api.enter()
    assert api.file_status("batch_setup", c.byref(c.c_void_p()), 1)[0] == (0 if api.hip else INTERNAL)


@own_process()
def test_slots_are_free_again_when_their_events_are_collected(api: Api, data: Path) -> None:
    handle, address = set_up(api, data)
    batch = api.batch(2)
    for _ in range(3):
        assert api.submit(batch, blocks(handle, address, 2)) == (0, 0)
        assert len(api.reap(batch, 2)) == 2
    assert api.reap(batch, 1) == []  # nothing outstanding


@own_process(report=3)
def test_events_may_come_in_small_portions(api: Api, data: Path) -> None:
    handle, address = set_up(api, data)
    batch = api.batch(8)
    api.submit(batch, blocks(handle, address, 8))
    seen: list[tuple[int, int, int]] = []
    while len(seen) < 8:
        portion = api.reap(batch, 1)
        assert 1 <= len(portion) <= 3
        seen += portion
    assert {cookie for cookie, _, _ in seen} == set(range(1, 9))


@own_process("delay=batch_entry:*:400000000")
def test_waiting_ends_with_the_timeout(api: Api, data: Path) -> None:
    handle, address = set_up(api, data)
    batch = api.batch(1)
    api.submit(batch, blocks(handle, address, 1))
    assert api.reap(batch, 1, seconds=0) == []
    assert api.reap(batch, 1, seconds=0.01) == []
    assert len(api.reap(batch, 1, seconds=None)) == 1


@own_process()
def test_ill_formed_entries_fail_alone_at_cufile_and_the_whole_at_hipfile(api: Api, data: Path) -> None:
    handle, address = set_up(api, data)
    batch = api.batch(4)
    good, unknown = entry(handle, address, 4096, 1), entry(handle + 1, address, 4096, 2)
    beyond, mode = entry(handle, address, 65537, 3), entry(handle, address, 4096, 4)
    mode.mode = 7
    if not api.hip:
        assert api.submit(batch, [good, unknown, beyond, mode]) == (0, 0)
        events = sorted(api.reap(batch, 4))
        assert events[:2] == [(1, COMPLETE, 4096), (2, INVALID, -FILE_NOT)]
        assert events[2:] == [(3, INVALID, -MAPPING_SIZE), (4, INVALID, -INVALID_VALUE)]
        return
    assert api.submit(batch, [good, unknown]) == (FILE_NOT, 0)
    assert api.submit(batch, [good, beyond]) == (INVALID_VALUE, 0)
    assert api.submit(batch, [good, mode]) == (INVALID_VALUE, 0)
    assert api.reap(batch, 1) == []
    assert api.calls("batch_entry") == 0


@own_process("fail=batch_entry:2:-5030", "fail=batch_entry:3:-28", "short=batch_entry:4:512", order="fifo", threads=1)
def test_success_of_the_call_says_nothing_about_the_entries(api: Api, data: Path) -> None:
    handle, address = set_up(api, data)
    batch = api.batch(4)
    api.submit(batch, blocks(handle, address, 4))
    assert sorted(api.reap(batch, 4)) == [(1, COMPLETE, 4096), (2, FAILED, -5030), (3, FAILED, -28), (4, COMPLETE, 512)]


@own_process()
def test_a_failed_entry_carries_an_error(api: Api, data: Path) -> None:
    handle, address = set_up(api, data, flags=os.O_RDONLY)
    batch = api.batch(1)
    api.submit(batch, [entry(handle, address, 4096, 1, 0, WRITE)])
    assert api.reap(batch, 1) == [(1, FAILED, -errno.EBADF if api.hip else -errno.EIO)]


@own_process("delay=batch_entry:*:100000000", threads=1, order="fifo")
def test_cancelling_ends_what_has_not_begun(api: Api, data: Path) -> None:
    handle, address = set_up(api, data)
    batch = api.batch(4)
    api.submit(batch, blocks(handle, address, 4))
    while not api.calls("batch_entry"):
        pass
    api.ok("batch_cancel", batch)
    statuses = [status for _, status, _ in sorted(api.reap(batch, 4))]
    assert statuses == [COMPLETE, CANCELED, CANCELED, CANCELED]
    assert api.submit(batch, blocks(handle, address, 1)) == (0, 0)
    assert len(api.reap(batch, 1)) == 1
    api.function("batch_destroy")(c.c_void_p(batch))


@own_process()
def test_closing_the_driver_ends_batches(api: Api, data: Path) -> None:
    handle, address = set_up(api, data)
    batch = api.batch(2)
    api.submit(batch, blocks(handle, address, 2))
    api.ok("driver_close")
    n, events = c.c_uint(1), (Event * 1)()
    wrong = (INVALID_VALUE if api.hip else INTERNAL, 0)
    assert api.file_status("batch_status", batch, 0, c.byref(n), events, None) == wrong


@own_process(slabs=4)
def test_more_entries_than_slabs_never_complete_at_cufile(api: Api, data: Path) -> None:
    """Seen with libcufile 1.15 in compatibility mode: of 128 entries in flight only 64, its slabs, complete."""
    handle, address = set_up(api, data)
    batch = api.batch(6)
    api.submit(batch, blocks(handle, address, 6))
    complete = 6 if api.hip else 4
    assert len(api.reap(batch, complete)) == complete
    if not api.hip:
        assert api.reap(batch, 1, seconds=0.1) == []
        api.ok("batch_cancel", batch)
        assert {status for _, status, _ in api.reap(batch, 2)} == {CANCELED}


@own_process("delay=batch_entry:*:20000000")
def test_a_second_submission_is_never_reported_at_cufile(api: Api, data: Path) -> None:
    """Seen with libcufile 1.15 in compatibility mode: the first submission has to be through before the next."""
    handle, address = set_up(api, data)
    batch = api.batch(4)
    first, second = blocks(handle, address, 4)[:2], blocks(handle, address, 4)[2:]
    assert api.submit(batch, first) == (0, 0)
    assert api.submit(batch, second) == (0, 0)
    seen = {cookie for cookie, _, _ in api.reap(batch, 4, seconds=0.5)}
    assert seen == ({1, 2, 3, 4} if api.hip else {1, 2})
    assert ("through" in api.misuse()) != api.hip


@own_process(threads=1)
def test_cufile_looks_at_the_callers_entries_late_and_hipfile_copies_them(api: Api, data: Path) -> None:
    handle, address = set_up(api, data)
    api.control("delay=batch_entry:*:50000000")
    batch = api.batch(2)
    api.submit(batch, blocks(handle, address, 2))
    array = api._keep[-1]
    while api.calls("batch_entry") < 1:
        pass
    array[0].file_offset = array[1].file_offset = 15 * 4096
    api.reap(batch, 2)
    content = api.peek(address, 8192)
    assert (content == data.read_bytes()[:8192]) == api.hip


# ---- streams ----


@own_process()
def test_a_stream_reads_its_arguments_when_it_gets_there(api: Api, data: Path) -> None:
    handle, address = set_up(api, data)
    stream = api.stream()
    gate = Gate(api, stream)
    call = StreamCall(8192, 0, 0)
    assert api.later(READ, handle, address, call, stream) == (0, 0)
    assert call.moved.value == 0
    call.size.value, call.file_offset.value, call.buffer_offset.value = 4096, 8192, 12288
    gate.open()
    api.ok("stream_synchronize", stream)
    assert call.moved.value == 4096
    assert api.peek(address + 12288, 4096) == b"\3" * 4096


@own_process()
def test_only_hipfile_fixes_the_arguments_of_a_registered_stream(api: Api, data: Path) -> None:
    handle, address = set_up(api, data)
    stream = api.stream()
    api.ok("stream_register", stream, 15)
    gate = Gate(api, stream)
    call = StreamCall(4096)
    assert api.later(READ, handle, address, call, stream) == (0, 0)
    call.file_offset.value = 4096
    gate.open()
    api.ok("stream_synchronize", stream)
    assert api.peek(address, 4096) == (b"\1" if api.hip else b"\2") * 4096


@own_process()
def test_transfers_of_a_stream_are_in_order_with_its_copies(api: Api, data: Path) -> None:
    handle, address = set_up(api, data)
    stream, host = api.stream(), api.host_alloc(4096)
    gate = Gate(api, stream)
    call = StreamCall(4096)
    api.later(READ, handle, address, call, stream)
    api.ok("to_host_async", c.c_void_p(host), address, 4096, stream)
    gate.open()
    api.ok("stream_synchronize", stream)
    assert c.string_at(host, 4096) == b"\1" * 4096


@own_process()
def test_bad_arguments_are_refused_early_by_hipfile_and_reported_late_by_cufile(api: Api, data: Path) -> None:
    handle, address = set_up(api, data)
    stream = api.stream()
    for call, code in (
        (StreamCall(65537), MAPPING_SIZE),
        (StreamCall(4096, 0, 65536), MAPPING_SIZE),
        (StreamCall(4096, -4096), INVALID_VALUE),
        (StreamCall(4096, 0, -4096), INTERNAL),
    ):
        answer = api.later(READ, handle, address, call, stream)
        api.ok("stream_synchronize", stream)
        assert answer == ((INVALID_VALUE, 0) if api.hip else (0, 0))
        assert api.hip or call.moved.value == -code
    late = StreamCall(4096)
    gate = Gate(api, stream)
    api.later(READ, handle, address, late, stream)
    late.size.value = 8192  # more than was announced
    gate.open()
    api.ok("stream_synchronize", stream)
    assert late.moved.value == (-INVALID_VALUE if api.hip else 8192)


@own_process()
def test_missing_arguments_are_refused(api: Api, data: Path) -> None:
    handle, address = set_up(api, data)
    call = StreamCall(4096)
    pointers = [c.byref(field) for field in (call.size, call.file_offset, call.buffer_offset, call.moved)]
    for index in range(4):
        some = [None if position == index else pointer for position, pointer in enumerate(pointers)]
        assert api.file_status("read_async", handle, address, *some, None) == (INVALID_VALUE, 0)
    assert api.file_status("read_async", handle + 1, address, *pointers, None) == (FILE_NOT, 0)


@own_process()
def test_a_closed_driver_is_opened_by_a_stream_call_that_fails_all_the_same(api: Api) -> None:
    api.enter()
    assert api.later(READ, 1, 1, StreamCall(1), 0) == (INVALID_VALUE, 0)
    assert api.function("use_count")() == 1


@own_process()
def test_errors_of_the_kernel_have_no_errno_on_a_stream(api: Api, data: Path) -> None:
    handle, address = set_up(api, data, flags=os.O_RDONLY)
    stream, call = api.stream(), StreamCall(4096)
    assert api.later(WRITE, handle, address, call, stream) == (0, 0)
    api.ok("stream_synchronize", stream)
    assert call.moved.value == (-INTERNAL if api.hip else -1)


@own_process()
def test_streams_are_registered_once(api: Api) -> None:
    api.enter()
    stream = api.stream()
    api.ok("stream_register", stream, 15)
    assert api.file_status("stream_register", stream, 15) == (INVALID_VALUE, 0)
    api.ok("stream_deregister", stream)
    assert api.file_status("stream_deregister", stream) == (INVALID_VALUE, 0)
    assert api.file_status("stream_register", stream, 16)[0] == (INVALID_VALUE if api.hip else 0)
    assert api.file_status("stream_register", stream + 64, 0) == (INVALID_VALUE, 0)
    api.ok("stream_register", None, 0)
    assert api.function("use_count")() == 0


@own_process()
def test_hipfile_wants_stream_and_buffer_on_one_device(api: Api, data: Path) -> None:
    handle, address = set_up(api, data)
    api.enter(1)
    assert api.later(READ, handle, address, StreamCall(4096), api.stream())[0] == (INVALID_VALUE if api.hip else 0)


@own_process("fail=stream_io:1:-5030", "short=stream_io:2:512")
def test_transfers_of_a_stream_can_fail_and_be_short(api: Api, data: Path) -> None:
    handle, address = set_up(api, data)
    stream, calls = api.stream(), [StreamCall(4096) for _ in range(3)]
    for call in calls:
        assert api.later(READ, handle, address, call, stream) == (0, 0)
    api.ok("stream_synchronize", stream)
    assert [call.moved.value for call in calls] == [-5030, 512, 4096]
