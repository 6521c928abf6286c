"""The GPU backends on a machine without their libraries: honest about it, and of no harm."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, Protocol

import gdsfw_cufile
import gdsfw_hipfile
import pytest
from gdsfw.errors import ExitCode, UnavailableError
from gdsfw.gpu.presence import Piece, check
from gdsfw.host import Host
from gdsfw.plugins import PluginManager
from gdsfw_cufile import pieces as cufile_pieces
from gdsfw_hipfile import pieces as hipfile_pieces

BACKENDS = {"cufile": gdsfw_cufile.plugin, "hipfile": gdsfw_hipfile.plugin}
PIECES = {"cufile": cufile_pieces.PIECES, "hipfile": hipfile_pieces.PIECES}

if Path("/proc/driver/nvidia/version").exists():
    pytest.skip("this machine has a GPU driver: tests/gpu looks at it", allow_module_level=True)


class Site(Protocol):
    folder: Path

    def run(self, *arguments: str, code: int = 0, **environ: Any) -> Any: ...


@pytest.fixture(params=BACKENDS)
def manager(request: pytest.FixtureRequest) -> PluginManager:
    manager = PluginManager()
    manager.register(BACKENDS[request.param], request.param)
    return manager


def test_opening_refuses_and_says_what_is_missing(manager: PluginManager, tmp_path: Path) -> None:
    (name,) = manager.backends()
    with pytest.raises(UnavailableError, match=f"backend {name}: ") as caught:
        manager.job_hooks(name).gdsfw_open(options=manager.validate_options(name, {}))
    assert caught.value.exit_code is ExitCode.UNAVAILABLE
    driver = next(piece for piece in PIECES[name] if piece.name == "driver")
    assert driver.fix in str(caught.value.hint)


def test_a_probe_of_an_empty_machine_names_every_piece_with_its_fix(manager: PluginManager, tmp_path: Path) -> None:
    (name,) = manager.backends()
    checks = manager.job_hooks(name).gdsfw_probe(options=None, directory=tmp_path, host=Host(tmp_path, live=False))
    pieces = {piece.name for piece in PIECES[name]}
    found = {check.name: check for check in checks if check.name in pieces}
    assert set(found) == pieces
    for one in found.values():
        assert one.state in ("fail", "unknown")
        assert one.fix or one.state == "unknown"


def test_no_vendor_library_is_imported_to_list_backends() -> None:
    script = (
        "import os, sys; from gdsfw.plugins import PluginManager; PluginManager.installed(os.environ).backends(); "
        "sys.exit(bool({'cuda', 'rocm', 'hip', 'numpy'} & sys.modules.keys()))"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize("name", BACKENDS)
def test_a_job_ends_with_3_before_anything_is_touched(site: Site, name: str) -> None:
    workload = site.folder / "w.yaml"
    workload.write_text(
        f"version: 1\njobs:\n  - {{name: j, backend: {name}, rw: read, size: 1MiB, directory: {site.folder}/data}}\n"
    )
    done = site.run("run", str(workload), "-o", "result.json", code=3)
    assert f"backend {name}: " in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert not (site.folder / "data").exists()


def test_a_piece_is_there_if_one_of_its_files_is(tmp_path: Path) -> None:
    host = Host(tmp_path, live=False)
    piece = Piece("library", "install it", files=("/usr/lib/libx.so", "/opt/lib/libx.so*"))
    found = check(piece, host)
    assert (found.state, found.fix) == ("fail", "install it")
    assert found.needed == "/usr/lib/libx.so or /opt/lib/libx.so*"
    (tmp_path / "opt/lib").mkdir(parents=True)
    (tmp_path / "opt/lib/libx.so.7").touch()
    assert check(piece, host).seen == "/opt/lib/libx.so.7"


def test_a_recorded_tree_does_not_tell_about_distributions(tmp_path: Path) -> None:
    piece = Piece("bindings", "pip install it", distributions=("pytest",))
    assert check(piece, Host(tmp_path, live=False)).state == "unknown"
    assert check(piece, Host()).seen.startswith("pytest ")
    absent = Piece("bindings", "pip install it", distributions=("no-such-distribution",))
    assert check(absent, Host()).state == "fail"
