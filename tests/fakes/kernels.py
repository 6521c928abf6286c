"""gdsfw's device kernels as host code: the same source, with the device's words defined away."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from gdsfw.gpu.kernels import FUNCTIONS, source

PRELUDE = Path(__file__).parent / "src" / "kernel_host.hpp"


def compiler() -> str | None:
    """The C++ compiler that there is."""
    for name in (os.environ.get("CXX"), "c++", "g++", "clang++"):
        if name and shutil.which(name):
            return name
    return None


def build(folder: Path, command: str) -> Path:
    """A shared library with `<kernel>_run(parameters, grid, block)` for each kernel."""
    entries = "\n".join(f"KERNEL_ENTRY({name})" for name in FUNCTIONS.values())
    text, library = folder / "kernels.cpp", folder / "libkernels.so"
    text.write_text("\n".join((PRELUDE.read_text(), source(), entries, "")))
    flags = ["-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas", "-fPIC", "-shared"]
    subprocess.run([command, *flags, "-o", str(library), str(text)], check=True)
    return library
