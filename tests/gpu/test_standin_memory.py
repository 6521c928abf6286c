"""Stand-ins: devices, contexts, and memory that only the GPU can touch."""

from __future__ import annotations

import ctypes as c
import mmap
import os
import signal
import threading
from pathlib import Path

from fakes.api import Api, open_file
from fakes.child import own_process

INVALID_VALUE, OUT_OF_MEMORY, NOT_INITIALIZED, NO_DEVICE, INVALID_CONTEXT = 1, 2, 3, 100, 201
ALREADY_REGISTERED, NOT_REGISTERED, NOT_SUPPORTED, CONTEXT_DESTROYED = 712, 713, 801, 709
READ_ONLY = 8


@own_process(devices=3, memory=1 << 26)
def test_devices_have_names_sizes_and_addresses_of_their_own(api: Api) -> None:
    api.ok("init", 0)
    count, total, name, pci = c.c_int(), c.c_size_t(), (c.c_char * 64)(), (c.c_char * 32)()
    api.ok("device_count", c.byref(count))
    assert count.value == 3
    seen = set()
    for device in range(3):
        uuid = (c.c_ubyte * 16)()
        api.ok("device_name", name, 64, device)
        api.ok("device_pci", pci, 32, device)
        api.ok("device_total", c.byref(total), device)
        api.ok("device_uuid", uuid, device)
        assert b"stand-in" in name.value
        assert total.value == 1 << 26
        seen |= {name.value, pci.value, bytes(uuid)}
    assert len(seen) == 9
    assert api.status("device_total", c.byref(total), 3) == 101


@own_process(devices=0)
def test_a_machine_without_devices_says_so(api: Api) -> None:
    assert api.status("init", 0) == NO_DEVICE


@own_process()
def test_nothing_works_before_the_start_or_without_a_context(api: Api) -> None:
    address = c.c_uint64()
    if api.hip:
        assert api.status("alloc", c.byref(address), 4096) == 0  # the first device is everybody's
        return
    assert api.status("alloc", c.byref(address), 4096) == NOT_INITIALIZED
    api.ok("init", 0)
    assert api.status("alloc", c.byref(address), 4096) == INVALID_CONTEXT


@own_process()
def test_the_device_is_each_threads_own(api: Api) -> None:
    api.enter(1)
    found: list[int] = []

    def other() -> None:
        device = c.c_int(-1)
        found.append(api.status("current_device", c.byref(device)))
        found.append(device.value)

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert found == ([0, 0] if api.hip else [INVALID_CONTEXT, -1])


@own_process()
def test_a_context_is_there_only_on_devices_in_use(api: Api) -> None:
    api.enter(1)
    api.alloc(4096)
    active = []
    for device in range(2):
        flags, state = c.c_uint(), c.c_int()
        api.ok("primary_state", device, c.byref(flags), c.byref(state))
        active.append(state.value)
    assert active == [0, 1]


@own_process()
def test_memory_of_a_released_context_is_gone(api: Api) -> None:
    if api.hip:
        return  # its contexts stay
    api.enter(0)
    address = api.alloc(4096)
    api.ok("primary_release", 0)
    assert api.status("free", address) == CONTEXT_DESTROYED


@own_process(dies_of=signal.SIGSEGV)
def test_host_code_that_reads_device_memory_crashes(api: Api) -> None:
    api.enter()
    c.string_at(api.alloc(4096), 1)


@own_process(dies_of=signal.SIGSEGV)
def test_host_code_that_writes_device_memory_crashes(api: Api) -> None:
    api.enter()
    c.memset(api.alloc(4096) + 100, 0, 1)


@own_process()
def test_system_calls_into_device_memory_fail_with_efault(api: Api, data: Path) -> None:
    api.enter()
    address = api.alloc(4096)
    libc = c.CDLL(None, use_errno=True)
    with open_file(data) as fd:
        assert libc.pread(fd, c.c_void_p(address), c.c_size_t(4096), c.c_long(0)) == -1
        assert c.get_errno() == 14
        assert libc.pwrite(fd, c.c_void_p(address), c.c_size_t(4096), c.c_long(0)) == -1


@own_process()
def test_device_memory_is_reached_by_copies_and_fills(api: Api) -> None:
    api.enter()
    address = api.alloc(8192)
    assert api.peek(address, 8192) == b"\xdb" * 8192  # fresh memory is not zero
    api.put(address, b"abc")
    api.ok("set8", address + 3, 7, 4)
    back = c.create_string_buffer(8)
    api.ok("to_host", back, address, 8)
    assert back.raw == b"abc\7\7\7\7\xdb"
    api.ok("in_device", address + 4096, address, 8)
    assert api.peek(address + 4096, 8) == back.raw


@own_process()
def test_copies_beyond_an_allocation_are_refused(api: Api) -> None:
    api.enter()
    address = api.alloc(100)
    host = c.create_string_buffer(4096)
    assert api.status("to_device", address, host, 101) == INVALID_VALUE
    assert api.status("to_host", host, address + 99, 2) == INVALID_VALUE
    assert api.status("to_device", address + 4096, host, 1) == INVALID_VALUE
    assert api.status("to_device", c.addressof(host), host, 1) == INVALID_VALUE  # the host's memory is no device's


@own_process()
def test_devices_have_memories_of_their_own(api: Api) -> None:
    api.enter(0)
    address = api.alloc(4096)
    api.enter(1)
    assert api.status("to_device", address, b"x", 1) == INVALID_VALUE
    assert api.status("free", address) == INVALID_VALUE
    api.control(strict=0)  # what real drivers accept
    api.ok("to_device", address, b"x", 1)


@own_process(memory=1 << 20)
def test_memory_runs_out_and_comes_back(api: Api) -> None:
    api.enter()
    address, left, total = c.c_uint64(), c.c_size_t(), c.c_size_t()
    first = api.alloc(1 << 19)
    assert api.status("alloc", c.byref(address), (1 << 19) + 1) == OUT_OF_MEMORY
    api.ok("mem_info", c.byref(left), c.byref(total))
    assert (left.value, total.value) == (1 << 19, 1 << 20)
    api.ok("free", first)
    api.alloc(1 << 20)


@own_process(dies_of=signal.SIGSEGV)
def test_freed_memory_is_never_handed_out_again(api: Api) -> None:
    api.enter()
    address = api.alloc(4096)
    api.ok("free", address)
    assert api.status("free", address) == INVALID_VALUE
    assert api.status("to_device", address, b"x", 1) == INVALID_VALUE
    assert api.alloc(4096) != address
    mapped = [mmap.mmap(-1, 4096) for _ in range(100)]
    c.memset(address, 0, 1)
    assert mapped


@own_process(pinned=8192)
def test_pinned_memory_is_the_hosts_and_has_a_limit(api: Api) -> None:
    api.enter()
    address = api.host_alloc(8192)
    c.memset(address, 1, 8192)
    other = c.c_uint64()
    assert api.status("host_alloc", c.byref(other), 1, 0) == OUT_OF_MEMORY
    api.ok("host_free", address)
    assert api.status("host_free", address) == INVALID_VALUE
    api.host_alloc(4096)


@own_process()
def test_pointers_tell_what_they_are(api: Api) -> None:
    api.enter(1)
    kind, ordinal = c.c_uint(), c.c_int()
    for address, expected in ((api.alloc(4096), 2), (api.host_alloc(4096), 1)):
        api.ok("pointer_attribute", c.byref(kind), 2, address + 7)
        api.ok("pointer_attribute", c.byref(ordinal), 9, address)
        assert (kind.value, ordinal.value) == (expected, 1)
    base, size = c.c_uint64(), c.c_size_t()
    address = api.alloc(100)
    api.ok("address_range", c.byref(base), c.byref(size), address + 50)
    assert (base.value, size.value) == (address, 100)


def _mapping(fd: int, flags: int, protection: int) -> int:
    libc = c.CDLL(None)
    libc.mmap.restype = c.c_void_p
    address = libc.mmap(None, c.c_size_t(65536), protection, flags, fd, c.c_long(0))
    return int(address)


def _on_tmpfs(path: Path) -> bool:
    fields = (c.c_long * 32)()
    assert c.CDLL(None).statfs(str(path).encode(), fields) == 0
    return fields[0] == 0x01021994


@own_process()
def test_pages_of_a_file_are_registered_read_only(api: Api, data: Path) -> None:
    api.enter()
    device = api.alloc(65536)
    with open_file(data) as fd:
        address = _mapping(fd, mmap.MAP_SHARED, mmap.PROT_READ)
        assert api.status("host_register", address, 65536, 0) == INVALID_VALUE  # it may not be written
        api.ok("host_register", address, 65536, READ_ONLY)
        assert api.status("host_register", address + 4096, 4096, READ_ONLY) == ALREADY_REGISTERED
        api.ok("to_device", device, c.c_void_p(address), 65536)
        assert api.peek(device, 65536) == data.read_bytes()
        assert api.status("to_host", c.c_void_p(address), device, 4096) == INVALID_VALUE
        api.ok("host_unregister", address)
        assert api.status("host_unregister", address) == NOT_REGISTERED


@own_process()
def test_writable_shared_pages_are_registered_on_tmpfs_only(api: Api, data: Path) -> None:
    api.enter()
    read_write = mmap.PROT_READ | mmap.PROT_WRITE
    with open_file(data) as fd:
        address = _mapping(fd, mmap.MAP_SHARED, read_write)
        assert api.status("host_register", address, 65536, 0) == (0 if _on_tmpfs(data) else INVALID_VALUE)
        api.ok("host_register", _mapping(fd, mmap.MAP_PRIVATE, read_write), 65536, 0)
    memory = os.memfd_create("pages")
    os.ftruncate(memory, 65536)
    api.ok("host_register", _mapping(memory, mmap.MAP_SHARED, read_write), 65536, 0)


@own_process()
def test_memory_that_is_not_there_cannot_be_registered(api: Api) -> None:
    api.enter()
    page = mmap.mmap(-1, 8192)
    address = c.addressof(c.c_char.from_buffer(page))
    assert api.status("host_register", address, 0, 0) == INVALID_VALUE
    assert api.status("host_register", 4096, 4096, 0) == INVALID_VALUE
    api.ok("host_register", address, 8192, 0)


@own_process(read_only_register=0)
def test_a_device_may_lack_read_only_registration(api: Api, data: Path) -> None:
    api.enter()
    with open_file(data) as fd:
        address = _mapping(fd, mmap.MAP_SHARED, mmap.PROT_READ)
        assert api.status("host_register", address, 65536, READ_ONLY) == NOT_SUPPORTED


@own_process(host_pointer=0, dies_of=signal.SIGSEGV)
def test_the_devices_view_of_registered_memory_may_be_another_address(api: Api) -> None:
    api.enter()
    page = mmap.mmap(-1, 4096)
    page[:3] = b"abc"
    address, view = c.addressof(c.c_char.from_buffer(page)), c.c_uint64()
    api.ok("host_register", address, 4096, 0)
    api.ok("host_pointer", c.byref(view), address + 1, 0)
    device = api.alloc(4096)
    api.ok("in_device", device, view.value, 2)
    assert api.peek(device, 2) == b"bc"
    c.string_at(view.value, 1)


@own_process()
def test_a_file_truncated_under_its_registration_reads_as_zeros_without_an_error(api: Api, data: Path) -> None:
    api.enter()
    device = api.alloc(65536)
    with open_file(data) as fd:
        address = _mapping(fd, mmap.MAP_SHARED, mmap.PROT_READ)
        api.ok("host_register", address, 65536, READ_ONLY)
        os.ftruncate(fd, 4096)
        api.ok("to_device", device, c.c_void_p(address), 65536)
    assert api.peek(device, 8192) == b"\1" * 4096 + b"\0" * 4096


@own_process()
def test_visible_devices_are_numbered_anew(api: Api) -> None:
    variable = "HIP_VISIBLE_DEVICES" if api.hip else "CUDA_VISIBLE_DEVICES"
    c.CDLL(None).setenv(variable.encode(), b"1", 1)
    api.ok("init", 0)
    count, name = c.c_int(), (c.c_char * 64)()
    api.ok("device_count", c.byref(count))
    api.ok("device_name", name, 64, 0)
    assert count.value == 1
    assert name.value.endswith(b" 1")
