"""The example plugins in place for a child process, as an installer would put them, and the backends they go around."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from fakes.build import Builder, compiler
from fakes.driving import OnStandin
from fakes.standins import Standin
from gdsfw import host_memory
from gdsfw.engine import native
from gdsfw.engine.native import UringOptions, try_uring
from helpers.running import Ended, Gdsfw

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

EXAMPLES = Path(__file__).parents[2] / "examples"
DISTRIBUTIONS = ("plugins/gdsfw-trace", "plugins/gdsfw-fault", "backends/gdsfw-ramdisk")
KIB = 1 << 10
Event = dict[str, Any]


def module_path(folder: Path) -> str:
    """PYTHONPATH with the example distributions: their own sources and entry points, without an installer's network."""
    site = folder / "site"
    sources = []
    for place in DISTRIBUTIONS:
        project = tomllib.loads((EXAMPLES / place / "pyproject.toml").read_text())["project"]
        info = site / f"{project['name'].replace('-', '_')}-0.1.0.dist-info"
        info.mkdir(parents=True, exist_ok=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 0.1.0\n")
        lines = [f"{name} = {module}" for name, module in project["entry-points"]["gdsfw"].items()]
        (info / "entry_points.txt").write_text("\n".join(["[gdsfw]", *lines, ""]))
        sources.append(str(EXAMPLES / place / "src"))
    return os.pathsep.join([str(site), *sources])


class Wrapped(Gdsfw):
    """`gdsfw run` with the example distributions in place."""

    def start(self, path: Path, *arguments: str, **environ: str) -> Any:
        """See Gdsfw.start."""
        return super().start(path, *arguments, **{"PYTHONPATH": module_path(self.folder), **environ})


@dataclass(frozen=True)
class Backend:
    """A backend and one of its paths, as jobs name them.

    Args:
        vendor: of the stand-in that takes the place of its libraries; empty for none.
        loop: what drives it where nothing is around it.
    """

    name: str
    io_path: str
    iodepth: int = 1
    vendor: str = ""
    loop: str = "native"

    def __str__(self) -> str:
        return f"{self.name}-{self.io_path}-{self.iodepth}"

    def job(self, **more: Any) -> dict[str, Any]:
        """A job on it."""
        return {"backend": self.name, "io_path": self.io_path, "iodepth": self.iodepth, **more}


HOST_BACKENDS = [
    Backend("posix", "psync"),
    Backend("posix", "io_uring", 8),
    Backend("noop", "noop"),
    Backend("ramdisk", "copy", loop="python"),
]
GPU_BACKENDS = [
    Backend(name, path, depth, vendor)
    for vendor, name in (("cuda", "cufile"), ("hip", "hipfile"))
    for path, depth in (("sync", 1), ("batch", 4), ("stream", 4), ("staged", 4))
]
BACKENDS = [*HOST_BACKENDS, *GPU_BACKENDS]
Run = Callable[..., Ended]


@cache
def _builder(base: Path, command: str) -> Builder:
    folder = base / "standins-of-plugins"
    folder.mkdir()
    return Builder(folder, command)


def runner(backend: Backend, folder: Path, temporary: pytest.TempPathFactory) -> tuple[Run, Gdsfw]:
    """Runs jobs on a backend: `run(*jobs, code=0, **defaults)`; and the driver, to be closed."""
    if not backend.vendor:
        skip_without_io_uring(backend)
        driver = Wrapped(folder)
        return driver.run, driver
    command = compiler()
    if not command:
        pytest.skip("no C compiler (cc, gcc or clang) to build the vendors' stand-ins with")
    standin = Standin.build(_builder(temporary.getbasetemp(), command), backend.vendor)
    if lacking := standin.lacking():
        pytest.skip(lacking)
    on = OnStandin(standin, folder)
    places = {"PYTHONPATH": module_path(folder)}

    def run(*jobs: Mapping[str, Any], code: int = 0, **defaults: Any) -> Ended:
        return on.run(*jobs, environ=places, code=code, **defaults)

    return run, on.gdsfw


def written_and_read(backend: Backend, **more: Any) -> list[dict[str, Any]]:
    """A job that writes 256 KiB and one that reads them back, compared where the backend moves bytes at all."""
    verify = {} if backend.name == "noop" else {"verify": True}
    common = backend.job(size="256KiB", block_size="16KiB", **verify, **more)
    return [
        {"name": "w", "rw": "write", **common},
        {"name": "r", "rw": "randread", "files_from": "w", **common},
    ]


def read_trace(folder: Path, name: str = "trace.json") -> list[Event]:
    """The events, each checked against the Trace Event Format."""
    document = json.loads((folder / name).read_text())
    assert document["displayTimeUnit"] == "ns"
    assert document["otherData"]["producer"] == "gdsfw-trace/1"
    events: list[Event] = document["traceEvents"]
    for event in events:
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "process_sort_index", "process_labels") or (
                event["name"] in ("thread_name", "thread_sort_index")
            )
            continue
        assert event["ts"] >= 0
        assert event["cat"] in ("hook", "io", "call")
        if event["ph"] == "X":
            assert event["dur"] >= 0
        else:
            assert event["ph"] in ("b", "e")
            assert event["id"]
    assert document["jobs"] == len({event["pid"] for event in events})
    return events


def in_process(gdsfw: Wrapped, code: str) -> str:
    """Run a program with the plugins in place; what it said."""
    places = {"PYTHONPATH": module_path(gdsfw.folder)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=gdsfw.folder,
        env={**os.environ, **places},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def readme_workload(plugin: str, folder: Path) -> tuple[Path, str]:
    """The workload of an example's README as a file, and the README."""
    text = (EXAMPLES / "plugins" / plugin / "README.md").read_text()
    (found,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    path = folder / "readme.yaml"
    path.write_text(found)
    return path, text


def option_rows(text: str) -> set[str]:
    """Names in the first column of a README's tables of options."""
    return set(re.findall(r"`(\w+)`", " ".join(line.split("|")[1] for line in text.splitlines() if line[:3] == "| `")))


def skip_without_io_uring(backend: Backend) -> None:
    """Where the kernel or its operator does not let io_uring be used."""
    if backend.io_path != "io_uring":
        return
    usable, reason = native.available()
    if not usable:
        pytest.skip(reason)
    buffer = host_memory.allocate(4 * KIB)
    refusal = try_uring(UringOptions(), buffer, [], 4)
    host_memory.free(buffer)
    if refusal:
        pytest.skip(refusal.message)
