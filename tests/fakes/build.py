"""Compiles the stand-ins of the vendors' GPU libraries. One set of sources; a vendor is a table of names."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SOURCES = Path(__file__).parent / "src"
RUNTIME = ("control", "device", "memory", "hostmap", "stream", "event", "copy", "modules", "runtime", "properties")
FILE = ("driver", "parameters", "registry", "transfer", "batch", "async", "statistics")
COMPILER = ("rtc",)
PARTS = ("runtime", "file", "compiler")
FLAGS = ("-std=c11", "-D_GNU_SOURCE", "-O1", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", "-pthread")
DEFINES = (f"-DKERNEL_HOST={SOURCES / 'kernel_host.hpp'}",)


@dataclass(frozen=True)
class Library:
    """One shared library: its sources, its place under the root, and the names by which loaders ask for it."""

    sources: tuple[str, ...]
    path: str
    soname: str
    links: tuple[str, ...] = ()
    needs: str = ""


LIBRARIES = {
    "cuda": {
        "runtime": Library(RUNTIME, "libcuda.so.1", "libcuda.so.1", ("libcuda.so",)),
        "file": Library(FILE, "libcufile.so.0", "libcufile.so.0", ("libcufile.so",)),
        "compiler": Library(COMPILER, "libnvrtc.so.13", "libnvrtc.so.13", ("libnvrtc.so",)),
    },
    "hip": {
        "runtime": Library(RUNTIME, "lib/libamdhip64.so.7", "libamdhip64.so.7", ("libamdhip64.so",)),
        "file": Library(FILE, "lib/libhipfile.so.0", "libhipfile.so.0", ("libhipfile.so",), needs="libamdhip64.so.7"),
        "compiler": Library(COMPILER, "lib/libhiprtc.so.7", "libhiprtc.so.7", ("libhiprtc.so",)),
    },
}


def compiler() -> str | None:
    """The C compiler that there is."""
    for name in (os.environ.get("CC"), "cc", "gcc", "clang"):
        if name and shutil.which(name):
            return name
    return None


class Builder:
    """Compiles into a folder, each vendor once; links as many variants as tests ask for.

    Args:
        folder: for everything that is built.
        command: the C compiler.
    """

    def __init__(self, folder: Path, command: str) -> None:
        self._folder = folder
        self._command = command
        self._compiled: set[tuple[str, str]] = set()

    def root(self, vendor: str, *, without: Sequence[str] = (), parts: Sequence[str] = PARTS) -> Path:
        """A folder with a vendor's libraries: those in `parts`, lacking the functions in `without`."""
        name = "-".join([vendor, *sorted(parts), *(["without", *sorted(without)] if without else [])])
        root = self._folder / name
        if not root.exists():
            for part, library in LIBRARIES[vendor].items():
                self._link(vendor, part, library, root, without)
            for part, library in LIBRARIES[vendor].items():
                if part not in parts:
                    for name in (library.path, *(str(Path(library.path).with_name(link)) for link in library.links)):
                        (root / name).unlink()
        return root

    def _objects(self, vendor: str, part: str, library: Library) -> list[str]:
        folder = self._folder / "objects" / vendor / part
        if (vendor, part) not in self._compiled:
            folder.mkdir(parents=True)
            sources = [str(SOURCES / f"{name}.c") for name in library.sources]
            self._run([*FLAGS, *DEFINES, f"-DSTANDIN_{vendor.upper()}", "-c", *sources], folder)
            self._compiled.add((vendor, part))
        return [str(folder / f"{name}.o") for name in library.sources]

    def _link(self, vendor: str, part: str, library: Library, root: Path, without: Sequence[str]) -> None:
        target = root / library.path
        target.parent.mkdir(parents=True, exist_ok=True)
        objects = self._objects(vendor, part, library)
        options = [f"-Wl,-soname,{library.soname}", "-Wl,-rpath,$ORIGIN"]
        if library.needs:
            options += ["-Wl,--no-as-needed", f"-L{target.parent}", f"-l:{library.needs}"]
        if without:
            script = target.with_suffix(".map")
            script.write_text("{ local: " + " ".join(f"{name};" for name in without) + " };\n")
            options.append(f"-Wl,--version-script={script}")
        self._run(["-shared", "-pthread", "-o", str(target), *objects, *options, "-ldl"], root)
        for link in library.links:
            target.with_name(link).symlink_to(target.name)

    def _run(self, arguments: Sequence[str], folder: Path) -> None:
        done = subprocess.run([self._command, *arguments], cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode or done.stderr:
            raise RuntimeError(f"{self._command}: {done.stderr}")
