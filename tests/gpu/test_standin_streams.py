"""Stand-ins: work that runs later, in order."""

from __future__ import annotations

import ctypes as c

from fakes.api import Api, Gate
from fakes.child import own_process

INVALID_VALUE, INVALID_HANDLE, NOT_READY, ILLEGAL_ADDRESS = 1, 400, 600, 700
DISABLE_TIMING = 2


@own_process()
def test_a_stream_does_its_work_later_and_in_order(api: Api) -> None:
    api.enter()
    stream, address, host = api.stream(), api.alloc(4096), api.host_alloc(4096)
    gate = Gate(api, stream)
    c.memset(host, 1, 4096)
    api.ok("to_device_async", address, c.c_void_p(host), 4096, stream)
    api.ok("set8_async", address, 9, 1, stream)
    assert api.status("stream_query", stream) == NOT_READY
    c.memset(host, 2, 4096)  # pinned memory is read when the stream gets there
    gate.open()
    api.ok("stream_synchronize", stream)
    api.ok("stream_query", stream)
    assert api.peek(address, 4096) == b"\x09" + b"\2" * 4095


@own_process()
def test_copies_of_memory_that_is_not_pinned_are_done_when_the_call_returns(api: Api) -> None:
    api.enter()
    stream, address = api.stream(), api.alloc(4096)
    host = c.create_string_buffer(b"abc", 4096)
    api.ok("to_device_async", address, host, 4096, stream)
    assert api.peek(address, 3) == b"abc"


@own_process()
def test_an_event_passes_when_the_stream_reaches_it(api: Api) -> None:
    api.enter()
    stream, event = api.stream(), api.event(DISABLE_TIMING)
    api.ok("event_query", event)  # never recorded
    gate = Gate(api, stream)
    api.ok("event_record", event, stream)
    assert api.status("event_query", event) == NOT_READY
    gate.open()
    api.ok("event_synchronize", event)
    api.ok("event_query", event)


@own_process()
def test_only_events_with_timing_measure(api: Api) -> None:
    api.enter()
    stream, before, after, plain = api.stream(), api.event(), api.event(), api.event(DISABLE_TIMING)
    ms = c.c_float(-1)
    assert api.status("event_elapsed", c.byref(ms), before, after) == INVALID_HANDLE  # not recorded
    for event in (before, after, plain):
        api.ok("event_record", event, stream)
    api.ok("stream_synchronize", stream)
    api.ok("event_elapsed", c.byref(ms), before, after)
    assert ms.value >= 0
    assert api.status("event_elapsed", c.byref(ms), before, plain) == INVALID_HANDLE


@own_process()
def test_a_stream_waits_for_another_streams_event(api: Api) -> None:
    api.enter()
    first, second, event, address = api.stream(), api.stream(), api.event(), api.alloc(1)
    gate = Gate(api, first)
    api.ok("set8_async", address, 1, 1, first)
    api.ok("event_record", event, first)
    api.ok("stream_wait_event", second, event, 0)
    api.ok("set8_async", address, 2, 1, second)
    gate.open()
    api.ok("stream_synchronize", second)
    assert api.peek(address, 1) == b"\2"


@own_process()
def test_the_default_stream_waits_for_blocking_streams_only(api: Api) -> None:
    api.enter()
    blocking, free, address = api.stream(0), api.stream(1), api.alloc(2)
    held = Gate(api, free)
    api.ok("to_device", address, b"x", 1)  # though a non-blocking stream is held up
    gate = Gate(api, blocking)
    api.ok("set8_async", address, 7, 1, None)
    assert api.status("stream_query", None) == NOT_READY
    gate.open()
    api.ok("stream_synchronize", None)
    assert api.peek(address, 1) == b"\7"
    held.open()


@own_process()
def test_a_destroyed_stream_finishes_its_work(api: Api) -> None:
    api.enter()
    stream, event, address = api.stream(), api.event(), api.alloc(1)
    gate = Gate(api, stream)
    api.ok("set8_async", address, 5, 1, stream)
    api.ok("event_record", event, stream)
    api.ok("stream_destroy", stream)
    assert api.status("stream_synchronize", stream) == INVALID_HANDLE
    gate.open()
    api.ok("event_synchronize", event)
    assert api.peek(address, 1) == b"\5"
    api.ok("event_destroy", event)
    assert api.status("event_query", event) == INVALID_HANDLE


@own_process()
def test_streams_and_events_belong_to_a_device(api: Api) -> None:
    api.enter(0)
    stream, event = api.stream(), api.event()
    api.enter(1)
    other, address = api.stream(), api.alloc(4096)
    assert api.status("event_record", event, other) == INVALID_HANDLE
    assert api.status("to_device_async", address, b"x", 1, stream) == INVALID_HANDLE
    api.ok("event_query", event)  # asking is allowed from anywhere
    api.ok("stream_synchronize", stream)


@own_process()
def test_freeing_memory_waits_for_the_device(api: Api) -> None:
    api.enter()
    stream, address, host = api.stream(), api.alloc(4096), api.host_alloc(4096)
    for _ in range(50):
        api.ok("to_device_async", address, c.c_void_p(host), 4096, stream)
    api.ok("free", address)
    assert api.calls("stream_copy") == 50


@own_process("fail=stream_copy:2:700")
def test_work_that_fails_on_the_device_is_an_error_of_what_comes_after(api: Api) -> None:
    api.enter()
    stream, event, address, host = api.stream(), api.event(), api.alloc(4096), api.host_alloc(4096)
    api.ok("to_device_async", address, c.c_void_p(host), 4096, stream)
    api.ok("stream_synchronize", stream)
    api.ok("to_device_async", address, c.c_void_p(host), 4096, stream)
    api.status("event_record", event, stream)
    assert api.status("stream_synchronize", stream) == ILLEGAL_ADDRESS
    assert api.status("event_query", event) == ILLEGAL_ADDRESS
    assert api.status("alloc", c.byref(c.c_uint64()), 1) == ILLEGAL_ADDRESS


@own_process("delay=stream_copy:*:30000000")
def test_copies_can_be_slow(api: Api) -> None:
    api.enter()
    stream, address, host = api.stream(), api.alloc(4096), api.host_alloc(4096)
    before, after, ms = api.event(), api.event(), c.c_float()
    api.ok("event_record", before, stream)
    api.ok("to_device_async", address, c.c_void_p(host), 4096, stream)
    api.ok("event_record", after, stream)
    assert api.status("event_query", after) == NOT_READY
    api.ok("event_synchronize", after)
    api.ok("event_elapsed", c.byref(ms), before, after)
    assert ms.value >= 30
