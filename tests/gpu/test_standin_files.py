"""Stand-ins: the file libraries' driver, registrations and synchronous transfers."""

from __future__ import annotations

import ctypes as c
import errno
import os
import threading
from pathlib import Path

from fakes.api import READ, WRITE, Api, Description, open_file
from fakes.child import own_process

NOT_OPEN, CLOSING, NOT_SUPPORTED, GPU_ERROR, TYPE_INVALID, POINTER_RANGE = 5001, 5006, 5008, 5011, 5013, 5014
CONTEXT_MISMATCH, MAPPING_SIZE, INVALID_TYPE, OPEN_FLAG, DIRECT_NOT_SET = 5015, 5016, 5018, 5019, 5020
INVALID_VALUE, MEMORY_ALREADY, MEMORY_NOT, ALREADY_OPEN, FILE_NOT, FILE_ALREADY = 5022, 5023, 5024, 5026, 5027, 5028
INTERNAL, PINNING, NO_CONTEXT = 5030, 5036, 5047
INVALID_CONTEXT = 201


def refusal(api: Api, fd: int, kind: int = 1) -> int:
    """The code that registering a descriptor ends with; it does not stay registered."""
    handle = c.c_uint64()
    code = api.file_status("handle_register", c.byref(handle), c.byref(Description(kind, fd, None)))[0]
    if not code:
        api.function("handle_deregister")(handle)
    return code


@own_process()
def test_the_driver_counts_its_users(api: Api) -> None:
    api.enter()
    assert api.file_status("driver_close") == (NOT_OPEN, 0)
    for users in range(3):
        assert api.function("use_count")() == users
        api.ok("driver_open")
    for users in range(3, 0, -1):
        assert api.function("use_count")() == users
        api.ok("driver_close")
    assert api.file_status("driver_close") == (NOT_OPEN, 0)


@own_process()
def test_the_first_registration_opens_the_driver_once(api: Api, data: Path) -> None:
    api.enter()
    with open_file(data) as fd:
        api.register(fd)
        api.ok("buffer_register", api.alloc(4096), 4096, 0)
    assert api.function("use_count")() == 1


@own_process()
def test_the_last_close_drops_all_registrations(api: Api, data: Path) -> None:
    api.enter()
    address = api.alloc(4096)
    with open_file(data) as fd:
        handle = api.register(fd)
        api.ok("buffer_register", address, 4096, 0)
        api.ok("driver_close")
        assert api.transfer(READ, handle, address, 4096) == (-1, errno.EINVAL)
        assert api.file_status("buffer_deregister", address) == (CLOSING, 0)
        assert api.register(fd) != handle
        assert api.read(handle, address, 4096) == -FILE_NOT
        api.ok("buffer_register", address, 4096, 0)


@own_process()
def test_handles_have_the_top_bit_set_and_a_descriptor_has_one(api: Api, data: Path) -> None:
    api.enter()
    with open_file(data) as fd, open_file(data) as other:
        handle = api.register(fd)
        assert handle >> 63
        assert refusal(api, fd) == FILE_ALREADY
        assert api.register(other) != handle
        api.function("handle_deregister")(c.c_uint64(handle))
        assert api.register(fd) != handle
    assert api.misuse() == ""


@own_process()
def test_what_is_no_file_is_refused(api: Api, tmp_path: Path) -> None:
    api.enter()
    reading, _writing = os.pipe()
    assert refusal(api, 999) == (INTERNAL if api.hip else INVALID_VALUE)
    assert refusal(api, reading) == (0 if api.hip else INVALID_TYPE)
    with open_file(tmp_path / "x") as fd:
        assert refusal(api, fd, kind=2) == NOT_SUPPORTED
        assert refusal(api, fd, kind=3) == NOT_SUPPORTED
    assert api.file_status("handle_register", None, c.byref(Description(1, 0, None))) == (INVALID_VALUE, 0)
    assert api.file_status("handle_register", c.byref(c.c_uint64()), None) == (INVALID_VALUE, 0)


@own_process()
def test_cufile_refuses_flags_that_hipfile_takes(api: Api, data: Path) -> None:
    api.enter()
    expected = 0 if api.hip else OPEN_FLAG
    for flag in (os.O_NOFOLLOW, os.O_APPEND, os.O_NONBLOCK):
        with open_file(data, os.O_RDWR | flag) as fd:
            assert refusal(api, fd) == expected
            with open_file(Path(f"/proc/self/fd/{fd}"), os.O_RDWR) as again:
                assert refusal(api, again) == 0


@own_process(require_direct=1)
def test_an_old_cufile_asks_for_direct_io(api: Api, data: Path) -> None:
    api.enter()
    with open_file(data) as fd:
        assert refusal(api, fd) == (0 if api.hip else DIRECT_NOT_SET)


def descriptors() -> int:
    """How many this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


@own_process()
def test_hipfile_opens_a_second_descriptor_for_each_file(api: Api, data: Path) -> None:
    api.enter()
    before = descriptors()
    with open_file(data) as fd:
        handle = api.register(fd)
        opened = descriptors() - before - 1
        assert opened in ((0, 1) if api.hip else (0,))  # none where the file system has no direct I/O
        api.function("handle_deregister")(c.c_uint64(handle))
        assert descriptors() == before + 1


@own_process()
def test_undefined_file_operations_are_noticed(api: Api, data: Path) -> None:
    api.enter()
    if api.hip:
        return  # they are ignored for plain descriptors
    with open_file(data) as fd:
        description = Description(1, fd, 1)
        assert api.file_status("handle_register", c.byref(c.c_uint64()), c.byref(description)) == (INVALID_VALUE, 0)
    assert "fs_ops" in api.misuse()


@own_process()
def test_buffers_are_registered_once_and_within_their_allocation(api: Api) -> None:
    api.enter()
    address = api.alloc(8192)
    assert api.file_status("buffer_register", None, 4096, 0) == (INVALID_VALUE, 0)
    assert api.file_status("buffer_register", address, 8193, 0) == (POINTER_RANGE, 0)
    api.ok("buffer_register", address, 4096, 0)
    assert api.file_status("buffer_register", address, 4096, 0) == (MEMORY_ALREADY, 0)
    assert api.file_status("buffer_register", address + 2048, 4096, 0)[0] == (0 if api.hip else MEMORY_ALREADY)
    api.ok("buffer_deregister", address)
    assert api.file_status("buffer_deregister", address)[0] == (MEMORY_NOT if api.hip else INVALID_VALUE)


@own_process()
def test_host_memory_is_a_buffer_too(api: Api) -> None:
    api.enter()
    api.ok("buffer_register", api.host_alloc(4096), 4096, 0)
    pageable = c.create_string_buffer(4096)
    assert api.file_status("buffer_register", c.addressof(pageable), 4096, 0)[0] == (TYPE_INVALID if api.hip else 0)


@own_process()
def test_cufile_pins_no_more_than_it_may(api: Api) -> None:
    api.enter()
    address = api.alloc(1 << 20)
    if not api.hip:
        api.ok("set_size", 8, 512)
    assert api.file_status("buffer_register", address, 1 << 20, 0)[0] == (0 if api.hip else PINNING)
    if not api.hip:
        api.ok("buffer_register", address, 1 << 19, 0)


@own_process()
def test_freeing_a_registered_buffer_is_noticed(api: Api) -> None:
    api.enter()
    address = api.alloc(4096)
    api.ok("buffer_register", address, 4096, 0)
    api.ok("free", address)
    assert "registered" in api.misuse()


@own_process()
def test_bytes_get_from_the_file_into_the_device_and_back(api: Api, data: Path, tmp_path: Path) -> None:
    api.enter()
    address = api.alloc(65536)
    with open_file(data) as fd, open_file(tmp_path / "copy") as out:
        source, target = api.register(fd), api.register(out)
        assert api.read(source, address, 65536) == 65536
        assert api.peek(address, 65536) == data.read_bytes()
        assert api.write(target, address, 4096, 0, 8192) == 4096
        assert api.write(target, address, 100, 4096, 5) == 100
    assert (tmp_path / "copy").read_bytes() == b"\3" * 4096 + b"\1" * 100


@own_process()
def test_odd_offsets_and_sizes_work_also_on_direct_descriptors(api: Api, data: Path) -> None:
    api.enter()
    address = api.alloc(65536)
    try:
        fd = os.open(data, os.O_RDONLY | os.O_DIRECT)
    except OSError:
        fd = os.open(data, os.O_RDONLY)
    handle = api.register(fd)
    assert api.read(handle, address, 65536) == 65536
    assert api.read(handle, address, 5, 4094, 1) == 5
    assert api.peek(address, 7) == b"\1\1\1\2\2\2\1"


@own_process()
def test_the_end_of_the_file_is_a_short_count(api: Api, data: Path) -> None:
    api.enter()
    address = api.alloc(65536)
    with open_file(data) as fd:
        handle = api.register(fd)
        assert api.read(handle, address, 8192, 65536 - 100) == 100
        assert api.read(handle, address, 8192, 65536) == 0
        assert api.read(handle, address, 0) == 0


@own_process()
def test_transfers_stay_inside_the_registered_buffer(api: Api, data: Path) -> None:
    api.enter()
    address = api.alloc(65536)
    beyond = -INVALID_VALUE if api.hip else -MAPPING_SIZE
    with open_file(data) as fd:
        handle = api.register(fd)
        api.ok("buffer_register", address, 8192, 0)
        assert api.read(handle, address, 8192) == 8192
        assert api.read(handle, address, 4096, 0, 4096) == 4096
        assert api.read(handle, address, 8193) == beyond
        assert api.read(handle, address, 1, 0, 8192) == beyond
        # An inner pointer is no registered buffer: only the allocation limits it.
        assert api.read(handle, address + 4096, 8192) == 8192
        assert api.read(handle, address + 4096, 65536 - 4095) == (-INVALID_VALUE if api.hip else -POINTER_RANGE)


@own_process()
def test_negative_offsets_are_errors_of_each_vendors_kind(api: Api, data: Path) -> None:
    api.enter()
    address = api.alloc(4096)
    with open_file(data) as fd:
        handle = api.register(fd)
        before, behind = api.transfer(READ, handle, address, 1, -1), api.transfer(READ, handle, address, 1, 0, -1)
    if api.hip:
        assert before == behind == (-1, errno.EINVAL)
    else:
        assert (before[0], behind[0]) == (-INVALID_VALUE, -INTERNAL)


@own_process()
def test_unknown_handles_and_memory_are_vendor_errors(api: Api, data: Path) -> None:
    api.enter()
    address = api.alloc(4096)
    pageable = c.create_string_buffer(16)
    with open_file(data) as fd:
        handle = api.register(fd)
        assert api.read(handle + 1, address, 1) == -FILE_NOT
        assert api.read(handle, 0, 1) == -INVALID_VALUE
        moved = api.read(handle, c.addressof(pageable), 16)
        assert moved == (-TYPE_INVALID if api.hip else 16)
        assert api.read(handle, api.host_alloc(4096), 16) == (-INVALID_VALUE if api.hip else 16)


@own_process()
def test_errors_of_the_kernel_come_as_minus_one_and_errno(api: Api, data: Path) -> None:
    api.enter()
    address = api.alloc(4096)
    with open_file(data, os.O_RDONLY) as fd:
        assert api.transfer(WRITE, api.register(fd), address, 4096) == (-1, errno.EBADF)


@own_process()
def test_a_closed_driver_moves_nothing(api: Api) -> None:
    api.enter()
    address = api.alloc(4096)
    assert api.transfer(READ, 1 << 63, address, 4096) == (-1, errno.EINVAL)
    assert api.transfer(WRITE, 1 << 63, address, 4096) == (-1, errno.EINVAL)


@own_process()
def test_cufile_wants_the_buffers_context_and_hipfile_finds_the_device_itself(api: Api, data: Path) -> None:
    api.enter(1)
    address = api.alloc(4096)
    answers: list[object] = []

    def other(device: int | None) -> None:
        if device is not None:
            api.enter(device)
        answers.append(api.read(handle, address, 4096))
        answers.append(api.file_status("buffer_register", address, 4096, 0))

    with open_file(data) as fd:
        handle = api.register(fd)
        for device in (None, 0):
            thread = threading.Thread(target=other, args=(device,))
            thread.start()
            thread.join()
    if api.hip:
        assert answers == [4096, (0, 0), 4096, (MEMORY_ALREADY, 0)]
    else:
        wrong = [-CONTEXT_MISMATCH, (CONTEXT_MISMATCH, 0)]
        assert answers == [-NO_CONTEXT, (GPU_ERROR, INVALID_CONTEXT), *wrong]


@own_process(max_io=10000)
def test_what_is_larger_than_one_call_moves_is_cut_and_not_refused(api: Api, data: Path) -> None:
    """hipFile's own limit is 0x7ffff000; a smaller one shows it without gigabytes."""
    api.enter()
    address = api.alloc(65536)
    with open_file(data) as fd:
        assert api.read(api.register(fd), address, 65536) == 10000


@own_process()
def test_cufile_has_parameters_and_hipfile_has_not(api: Api) -> None:
    api.enter()
    size, flag, text = c.c_size_t(), c.c_bool(), c.create_string_buffer(64)
    if api.hip:
        assert api.file_status("get_size", 9, c.byref(size)) == (INTERNAL, 0)
        assert api.file_status("set_flag", 1, 0) == (INTERNAL, 0)
        assert api.file_status("properties", text) == (INTERNAL, 0)
        return
    api.ok("get_size", 9, c.byref(size))
    api.ok("get_flag", 1, c.byref(flag))
    assert (size.value, flag.value) == (128, True)
    assert api.file_status("set_size", 9, 0) == (INVALID_VALUE, 0)
    assert api.file_status("set_size", 99, 1) == (INVALID_VALUE, 0)
    api.ok("set_size", 9, 64)
    api.ok("set_string", 2, c.c_char_p(b"/tmp"))
    api.ok("driver_open")
    assert api.file_status("set_size", 9, 32) == (ALREADY_OPEN, 0)
    assert api.file_status("set_flag", 1, 0) == (ALREADY_OPEN, 0)
    api.ok("get_string", 2, text, 64)
    api.ok("get_size", 9, c.byref(size))
    assert (size.value, text.value) == (64, b"/tmp")


@own_process()
def test_forbidding_the_bounce_leaves_no_way(api: Api, data: Path) -> None:
    variable = "HIPFILE_ALLOW_COMPAT_MODE" if api.hip else "CUFILE_ALLOW_COMPAT_MODE"
    c.CDLL(None).setenv(variable.encode(), b"false", 1)
    api.enter()
    if not api.hip:
        assert api.file_status("driver_open") == (NOT_OPEN, 0)
        return
    with open_file(data) as fd:
        assert api.read(api.register(fd), api.alloc(4096), 4096) == -INTERNAL


@own_process(contexts=1)
def test_the_file_library_can_open_every_device(api: Api) -> None:
    api.enter(0)
    api.ok("driver_open")
    flags, active = c.c_uint(), c.c_int()
    api.ok("primary_state", 1, c.byref(flags), c.byref(active))
    assert active.value == 1


@own_process(devices=0)
def test_without_a_device_the_driver_does_not_open(api: Api) -> None:
    assert api.file_status("driver_open") == (GPU_ERROR, 100)


@own_process()
def test_cufile_writes_its_log_where_it_is_told(api: Api, tmp_path: Path) -> None:
    c.CDLL(None).setenv(b"CUFILE_LOGFILE_PATH", str(tmp_path / "log").encode(), 1)
    api.enter()
    api.ok("driver_open")
    assert (tmp_path / "log").exists() != api.hip
    if not api.hip:
        assert "running in compatible mode" in (tmp_path / "log").read_text()
