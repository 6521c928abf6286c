"""The GPU backends before they have I/O: honest about it, and of no harm on a machine without their libraries."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Protocol

import gdsfw_cufile
import gdsfw_hipfile
import pytest
from gdsfw.errors import ExitCode, UnavailableError
from gdsfw.gpu.presence import Piece, check, missing
from gdsfw.host import Host
from gdsfw.plugins import PluginManager

BACKENDS = {"cufile": gdsfw_cufile, "hipfile": gdsfw_hipfile}


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
    with pytest.raises(UnavailableError, match=f"backend {name}: gdsfw-{name} .* has no I/O paths yet") as caught:
        manager.job_hooks(name).gdsfw_open(options=None)
    assert caught.value.exit_code is ExitCode.UNAVAILABLE
    for found in missing(BACKENDS[name].PIECES, Host()):
        assert found.name in caught.value.message
        assert found.fix in str(caught.value.hint)


def test_a_probe_of_an_empty_machine_names_every_piece_with_its_fix(manager: PluginManager, tmp_path: Path) -> None:
    (name,) = manager.backends()
    checks = manager.job_hooks(name).gdsfw_probe(options=None, directory=tmp_path, host=Host(tmp_path, live=False))
    assert checks[0].name == "io"
    assert "driver" in [found.name for found in checks]
    for found in checks[1:]:
        assert found.state in ("fail", "unknown")
        assert found.fix or found.state == "unknown"


def test_no_vendor_library_is_imported(manager: PluginManager) -> None:
    manager.backends()
    assert not {"cuda", "rocm", "hip", "numpy"} & sys.modules.keys()


@pytest.mark.parametrize("name", BACKENDS)
def test_a_job_ends_with_3_before_anything_is_touched(site: Site, name: str) -> None:
    workload = site.folder / "w.yaml"
    workload.write_text(
        f"version: 1\njobs:\n  - {{name: j, backend: {name}, rw: read, size: 1MiB, directory: {site.folder}/data}}\n"
    )
    done = site.run("run", str(workload), "-o", "result.json", code=3)
    assert "has no I/O paths yet" in done.stdout
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
    assert missing([piece], host) == []


def test_a_recorded_tree_does_not_tell_about_distributions(tmp_path: Path) -> None:
    piece = Piece("bindings", "pip install it", distributions=("pytest",))
    assert check(piece, Host(tmp_path, live=False)).state == "unknown"
    assert check(piece, Host()).seen.startswith("pytest ")
    absent = Piece("bindings", "pip install it", distributions=("no-such-distribution",))
    assert check(absent, Host()).state == "fail"
