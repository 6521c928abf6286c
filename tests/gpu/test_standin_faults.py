"""Stand-ins: being told to fail, to be slow, to lack things, and to report peer-to-peer."""

from __future__ import annotations

import ctypes as c
import os
import time
from pathlib import Path

import pytest
from fakes.api import READ, Api, open_file
from fakes.child import own_process
from fakes.standins import Standin


def set_up(api: Api, path: Path, flags: int = os.O_RDWR) -> tuple[int, int]:
    """A registered file, left open, and device memory."""
    api.enter()
    return api.register(os.open(path, flags)), api.alloc(65536)


@own_process("fail=read:2:-1:28", "fail=read:3:-5022", "fail=read:4:700", "fail=read:5:0", "short=read:6:100")
def test_the_nth_read_fails_with_a_given_error_or_is_short(api: Api, data: Path) -> None:
    handle, address = set_up(api, data)
    answers = [api.transfer(READ, handle, address, 4096) for _ in range(7)]
    assert [moved for moved, _ in answers] == [4096, -1, -5022, -700, 0, 100, 4096]
    assert answers[1][1] == 28
    assert api.calls("read") == 7


@own_process("fail=alloc:3+:2", "fail=host_alloc:*:999", "fail=event_query:%2:600")
def test_calls_fail_from_the_nth_on_always_or_each_nth(api: Api) -> None:
    api.enter()
    api.alloc(1)
    api.alloc(1)
    address, event = c.c_uint64(), api.event()
    assert [api.status("alloc", c.byref(address), 1) for _ in range(2)] == [2, 2]
    assert api.status("host_alloc", c.byref(address), 1, 0) == 999
    assert [api.status("event_query", event) for _ in range(4)] == [0, 600, 0, 600]
    api.control("clear=alloc")
    api.alloc(1)
    api.control("clear")
    api.host_alloc(1)


@own_process("fail=buffer_register:1:5036", "fail=buffer_register:2:201", "fail=driver_open:1:5001")
def test_errors_of_the_file_library_and_of_the_runtime_are_told_apart(api: Api) -> None:
    api.enter()
    address = api.alloc(4096)
    assert api.file_status("driver_open") == (5001, 0)
    assert api.file_status("buffer_register", address, 4096, 0) == (5036, 0)
    assert api.file_status("buffer_register", address, 4096, 0) == (5011, 201)
    api.ok("buffer_register", address, 4096, 0)


@own_process("delay=read:2:50000000")
def test_calls_can_be_slow(api: Api, data: Path) -> None:
    handle, address = set_up(api, data)
    api.read(handle, address, 4096)
    before = time.monotonic()
    api.read(handle, address, 4096)
    assert time.monotonic() - before >= 0.05


@own_process()
def test_a_rule_that_cannot_be_understood_is_refused(api: Api) -> None:
    for text in ("fail=read", "fail=read:0:1", "fail=read:x:1", "delay=read:1:x", "nonsense=1", "nonsense"):
        assert api.function("control")(text.encode()) == -1


def test_a_process_with_a_bad_setting_ends_at_once(standin: Standin) -> None:
    done = standin.run(
        "import ctypes, sys; getattr(ctypes.CDLL(sys.argv[1]), sys.argv[2])(0)",
        next(standin.root.rglob("libcuda.so.1" if standin.vendor == "cuda" else "libamdhip64.so")),
        standin.symbol("init"),
        settings={"mistyped": 1},
    )
    assert done.returncode == 70
    assert "mistyped" in done.stderr


@own_process()
def test_the_trace_tells_what_was_called_copied_and_moved(api: Api, data: Path, tmp_path: Path) -> None:
    handle, address = set_up(api, data)
    api.control(trace=tmp_path / "trace")
    api.put(address, b"abc")
    api.read(handle, address, 4096, 8192)
    lines = (tmp_path / "trace").read_text().splitlines()
    assert [line.split(" tid")[0] for line in lines if line.startswith("call")] == [
        f"call {api.standin.symbol(name)}" for name in ("to_device", "stream_copy", "read")
    ]
    assert "copy to_device bytes=3 device=0 wait=1 pinned=0" in lines
    assert "io read bytes=4096 file_offset=8192 device=0 way=posix result=4096" in lines


def _direct(path: Path) -> int:
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_DIRECT))
    except OSError:
        pytest.skip(f"{path.parent} has no direct I/O")
    return os.O_RDWR | os.O_DIRECT


@own_process(p2p=1)
def test_reported_peer_to_peer_is_counted_as_such(api: Api, data: Path) -> None:
    if not api.hip:
        api.ok("cuFileSetStatsLevel", 3)
        api.ok("driver_open")
        api.ok("cuFileStatsStart")
    handle, address = set_up(api, data, _direct(data))
    buffered = api.register(os.open(data, os.O_RDWR))
    assert api.read(handle, address, 4096) == 4096
    assert api.read(handle, address, 4096) == 4096
    assert api.read(buffered, address, 100) == 100
    counters = api.read_counters()
    assert (counters.total, counters.bytes) == (3, 8292)
    assert (counters.nvfs, counters.posix, counters.p2p) == (2, 1, 0)


@own_process(p2p=1)
def test_forcing_the_bounce_switches_peer_to_peer_off(api: Api, data: Path) -> None:
    c.CDLL(None).setenv(b"HIPFILE_FORCE_COMPAT_MODE" if api.hip else b"CUFILE_FORCE_COMPAT_MODE", b"true", 1)
    if not api.hip:
        api.ok("cuFileSetStatsLevel", 3)
        api.ok("driver_open")
        api.ok("cuFileStatsStart")
    handle, address = set_up(api, data, _direct(data))
    assert api.read(handle, address, 4096) == 4096
    counters = api.read_counters()
    assert (counters.nvfs, counters.posix) == (0, 1)


@own_process(p2p="nvfs")
def test_driver_properties_tell_what_is_possible(api: Api) -> None:
    if api.hip:
        return  # it has none
    properties = (c.c_uint * 16)()
    api.ok("properties", properties)
    assert properties[0] == 2  # version of the kernel driver
    assert properties[6] & 1 << 4  # local NVMe
    api.control(p2p=0)
    api.ok("properties", properties)
    assert (properties[0], properties[6]) == (0, 0)
    assert properties[7] & 1 << 1  # the bounce is allowed


@own_process(version="0.2.0")
def test_the_library_tells_the_version_it_is_asked_to(api: Api) -> None:
    if api.hip:
        numbers = [c.c_uint(), c.c_uint(), c.c_uint()]
        api.ok("version", *map(c.byref, numbers))
        assert [number.value for number in numbers] == [0, 2, 0]
        return
    api.control(version=1140)
    number = c.c_int()
    api.ok("version", c.byref(number))
    assert number.value == 1140


@own_process()
def test_a_library_can_lack_functions(api: Api) -> None:
    lacking = Api(api.standin.variant(without=["batch_setup", "to_device_async"]))
    for name in ("batch_setup", "to_device_async"):
        with pytest.raises(AttributeError):
            lacking.function(name)
    assert lacking.function("batch_submit")


@own_process()
def test_a_whole_library_can_be_missing(api: Api) -> None:
    only_runtime = Api(api.standin.variant(parts=["runtime"]))
    assert only_runtime.function("init")
    with pytest.raises(OSError, match="cannot open"):
        only_runtime.function("read")


@own_process()
def test_transfers_of_many_threads_do_not_disturb_each_other(api: Api, data: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    api.enter()

    def work(number: int) -> bool:
        api.enter()
        address = api.alloc(65536)
        with open_file(data) as fd:
            handle = api.register(fd)
            good = all(api.read(handle, address, 65536) == 65536 for _ in range(20))
            api.function("handle_deregister")(c.c_uint64(handle))
        return good and api.peek(address, 65536) == data.read_bytes()

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))
    assert api.misuse() == ""
