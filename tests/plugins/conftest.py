from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
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


class Site:
    """A folder on a child process's module path, with distributions that no installer put there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def distribution(self, name: str, source: str, *, entry_points: dict[str, str], version: str = "1.0") -> None:
        """Write a distribution: module `source` under its normalised name, and its metadata."""
        module = name.replace("-", "_")
        (self.folder / f"{module}.py").write_text(source)
        info = self.folder / f"{module}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        lines = [f"{key} = {value}" for key, value in entry_points.items()]
        (info / "entry_points.txt").write_text("\n".join(["[gdsfw]", *lines, ""]))

    def run(self, *arguments: str, code: int = 0, **environ: Any) -> subprocess.CompletedProcess[str]:
        """Run `gdsfw` with these distributions and check its exit code."""
        done = subprocess.run(
            [sys.executable, "-m", "gdsfw", *arguments],
            capture_output=True,
            text=True,
            timeout=60,
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(self.folder), **environ},
            check=False,
        )
        assert done.returncode == code, done.stderr
        return done

    def backends(self, **environ: str) -> Any:
        """What `gdsfw backends --json` says."""
        return json.loads(self.run("backends", "--json", **environ).stdout)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)
