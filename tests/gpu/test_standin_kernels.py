"""Kernels on the stand-ins: images, launches, and whose memory they may touch."""

from __future__ import annotations

import ctypes as c
import signal

import pytest
from fakes import kernels
from fakes.api import Api
from fakes.child import own_process
from gdsfw.backend import Pattern
from gdsfw.engine import pattern

INVALID_VALUE, INVALID_IMAGE, INVALID_HANDLE, NOT_FOUND = 1, 200, 400, 500


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    command = kernels.compiler()
    if command is None:
        pytest.skip("no C++ compiler")
    return kernels.build(tmp_path_factory.mktemp("kernels"), command).read_bytes()


def function(api: Api, image: bytes, name: str) -> c.c_void_p:
    module, found = c.c_void_p(), c.c_void_p()
    api.ok("module_load", c.byref(module), image)
    api.ok("module_function", c.byref(found), module, name.encode())
    return found


def launch(api: Api, kernel: c.c_void_p, stream: int, *values: c._SimpleCData[int]) -> int:
    parameters = (c.c_void_p * len(values))(*(c.addressof(value) for value in values))
    return api.status(
        "launch", kernel, *(c.c_uint(number) for number in (2, 1, 1, 64, 1, 1, 0)), stream, parameters, None
    )


def fill(api: Api, kernel: c.c_void_p, stream: int, address: int, size: int) -> int:
    key = pattern.file_key(Pattern(5, 1))
    return launch(api, kernel, stream, c.c_uint64(address), c.c_uint64(size), c.c_uint64(4096), c.c_uint64(key))


@own_process()
def test_a_kernel_works_on_device_memory(api: Api, image: bytes) -> None:
    api.enter()
    address, stream = api.alloc(8192), api.stream()
    assert fill(api, function(api, image, "gdsfw_fill"), stream, address, 8192) == 0
    api.ok("stream_synchronize", stream)
    expected = bytearray(8192)
    pattern.python_fill(memoryview(expected), 4096, Pattern(5, 1))
    assert api.peek(address, 8192).hex() == expected.hex()


@own_process(dies_of=signal.SIGSEGV)
def test_after_the_kernel_the_host_is_kept_out_again(api: Api, image: bytes) -> None:
    api.enter()
    address, stream = api.alloc(8192), api.stream()
    fill(api, function(api, image, "gdsfw_fill"), stream, address, 8192)
    api.ok("stream_synchronize", stream)
    c.string_at(address, 1)


@own_process(devices=2)
def test_a_function_belongs_to_its_device(api: Api, image: bytes) -> None:
    api.enter(0)
    kernel = function(api, image, "gdsfw_fill")
    api.enter(1)
    assert fill(api, kernel, api.stream(), api.alloc(4096), 4096) == INVALID_HANDLE


@own_process(devices=2, dies_of=signal.SIGSEGV)
def test_a_kernel_cannot_touch_another_devices_memory(api: Api, image: bytes) -> None:
    api.enter(1)
    elsewhere = api.alloc(4096)
    api.enter(0)
    stream = api.stream()
    fill(api, function(api, image, "gdsfw_fill"), stream, elsewhere, 4096)
    api.status("stream_synchronize", stream)


@own_process()
def test_what_is_no_image_or_function_is_refused(api: Api, image: bytes) -> None:
    api.enter()
    module, found = c.c_void_p(), c.c_void_p()
    assert api.status("module_load", c.byref(module), b"image" * 20) == INVALID_IMAGE
    api.ok("module_load", c.byref(module), image)
    assert api.status("module_function", c.byref(found), module, b"nothing") == NOT_FOUND
    assert api.status("launch", None, *[1] * 7, None, None, None) == INVALID_HANDLE


@own_process("fail=stream_kernel:1:700")
def test_a_kernel_that_fails_is_an_error_of_what_comes_after(api: Api, image: bytes) -> None:
    api.enter()
    address, stream = api.alloc(4096), api.stream()
    assert fill(api, function(api, image, "gdsfw_fill"), stream, address, 4096) == 0
    assert api.status("stream_synchronize", stream) == 700
