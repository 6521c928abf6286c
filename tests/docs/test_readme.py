"""What only the README shows: the quickstart, the exit codes, and a backend that reads and writes real files."""

from __future__ import annotations

import os
import re
from pathlib import Path
from types import ModuleType

import yaml
from docs.pages import ROOT, blocks
from gdsfw.backend import FileHandle, Request, Target
from gdsfw.errors import ExitCode
from gdsfw.plugins import PluginManager

README = (ROOT / "README.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    (found,) = (block.text for block in blocks("README.md") if block.language == language)
    return found


def test_its_workload_is_the_quickstart() -> None:
    quickstart = (ROOT / "examples" / "quickstart.yaml").read_text(encoding="utf-8")
    assert yaml.safe_load(block("yaml")) == yaml.safe_load(quickstart)


def test_its_table_of_exit_codes_is_complete() -> None:
    codes = {int(code) for code in re.findall(r"^\| (\d+) \|", README, re.MULTILINE)}
    assert codes == set(ExitCode)


def test_its_backend_reads_and_writes_real_files(tmp_path: Path) -> None:
    module = ModuleType("mine")
    exec(block("python"), vars(module))
    manager = PluginManager()
    manager.register(module, "mine")
    hooks = manager.job_hooks("mine")
    buffer = hooks.gdsfw_alloc(worker=None, nbytes=8192, memory="host", alignment=4096)
    path = tmp_path / "data"
    path.write_bytes(b"a" * 4096 + b"b" * 4096)
    descriptor = os.open(path, os.O_RDWR)
    file = FileHandle(Target(str(path), 1, 8192), fd=descriptor)
    request = Request("preadv", "readwrite", 4096, 4096, [(0, 8192)])
    io = hooks.gdsfw_io(worker=None, files=[file], buffer=buffer, request=request).python
    try:
        assert io.read(file, 4096, 4096, 0) == 4096
        assert io.write(file, 4096, 0, 0) == 4096
    finally:
        os.close(descriptor)
        hooks.gdsfw_free(worker=None, buffer=buffer)
    assert path.read_bytes() == b"b" * 8192
