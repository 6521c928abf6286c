from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from gdsfw import hookimpl
from gdsfw.backend import BackendInfo, Buffer, FileHandle, IOPath, IOPathInfo, Request, Worker


class Nothing:
    """The least that a Python path needs."""

    def read(self, file: FileHandle, size: int, file_offset: int, buffer_offset: int) -> int:
        return size

    def write(self, file: FileHandle, size: int, file_offset: int, buffer_offset: int) -> int:
        return size


MakePlugin = Callable[..., ModuleType]


@pytest.fixture
def make_plugin() -> MakePlugin:
    """Makes a plugin module of the functions given, each marked unless it is already."""

    def make(*functions: Callable[..., Any]) -> ModuleType:
        module = ModuleType("plugin_of_a_test")
        for function in functions:
            marked = function if hasattr(function, "gdsfw_impl") else hookimpl(function)
            setattr(module, function.__name__, marked)
        return module

    return make


@pytest.fixture
def make_backend(make_plugin: MakePlugin) -> MakePlugin:
    """Makes a complete backend. `calls` lists the hooks that ran; functions given replace or add to its own."""

    def make(*functions: Callable[..., Any], name: str = "ram", **facts: Any) -> ModuleType:
        calls: list[str] = []

        def gdsfw_backend() -> BackendInfo:
            calls.append("gdsfw_backend")
            about = {"title": "memory", "version": "1.2", "io_paths": (IOPathInfo("copy", native=False),), **facts}
            return BackendInfo(name=about.pop("name", name), **about)

        def gdsfw_alloc(worker: Worker, nbytes: int, memory: str, alignment: int) -> Buffer:
            calls.append("gdsfw_alloc")
            return Buffer(0, nbytes, memory, memoryview(bytearray(nbytes)))

        def gdsfw_free(worker: Worker, buffer: Buffer) -> None:
            calls.append("gdsfw_free")

        def gdsfw_io(worker: Worker, files: list[FileHandle], buffer: Buffer, request: Request) -> IOPath:
            calls.append("gdsfw_io")
            return IOPath("copy", files, python=Nothing())

        module = make_plugin(gdsfw_backend, gdsfw_alloc, gdsfw_free, gdsfw_io)
        for function in functions:
            setattr(module, function.__name__, function if hasattr(function, "gdsfw_impl") else hookimpl(function))
        module.calls = calls  # type: ignore[attr-defined]
        return module

    return make
