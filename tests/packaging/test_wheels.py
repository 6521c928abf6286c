"""Every distribution as a user gets it: sdist, wheel from the sdist, installed into an empty environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = {
    "gdsfw": ROOT,
    "gdsfw-core": ROOT / "gdsfw-core",
    "gdsfw-posix": ROOT / "gdsfw-posix",
    "gdsfw-cufile": ROOT / "gdsfw-cufile",
    "gdsfw-hipfile": ROOT / "gdsfw-hipfile",
}


def clean_environ(**more: str) -> dict[str, str]:
    """This environment without what would let a child see the checkout or change a build."""
    hidden = ("PYTHONPATH", "GDSFW_", "CC", "VIRTUAL_ENV")
    return {key: value for key, value in os.environ.items() if not key.startswith(hidden)} | more


def call(*command: str | Path, code: int = 0, cwd: Path | None = None, **more: str) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        timeout=280,
        cwd=cwd,
        env=clean_environ(**more),
        check=False,
    )
    assert done.returncode == code, f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with sdist and wheel of every distribution; each wheel is built from its sdist."""
    folder = tmp_path_factory.mktemp("built")
    for source in FOLDERS.values():
        call(sys.executable, "-m", "build", "--outdir", folder, source)
    return folder


@pytest.fixture(scope="module")
def environment(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment of its own with all wheels installed; gives the folder of its programs."""
    folder = tmp_path_factory.mktemp("environment")
    call(sys.executable, "-m", "venv", folder)
    programs = folder / "bin"
    call(programs / "python", "-m", "pip", "install", "--quiet", *sorted(built.glob("*.whl")))
    return programs


def wheel(built: Path, name: str) -> Path:
    (found,) = built.glob(f"{name.replace('-', '_')}-[0-9]*.whl")
    return found


def sdist_names(built: Path, name: str) -> set[str]:
    (found,) = built.glob(f"{name.replace('-', '_')}-[0-9]*.tar.gz")
    with tarfile.open(found) as archive:
        return {member.partition("/")[2] for member in archive.getnames()}


@pytest.mark.parametrize("name", FOLDERS)
def test_an_sdist_has_what_a_build_needs_and_nothing_built(built: Path, name: str) -> None:
    names = sdist_names(built, name)
    assert {"LICENSE", "README.md", "pyproject.toml", "PKG-INFO"} <= names
    strange = [entry for entry in names if entry.endswith((".so", ".pyc")) or entry.startswith(("build", "dist", "."))]
    assert set(strange) <= {".gitignore"}


def test_cores_sdist_has_the_c_sources(built: Path) -> None:
    names = sdist_names(built, "gdsfw-core")
    sources = {str(path.relative_to(FOLDERS["gdsfw-core"])) for path in (ROOT / "gdsfw-core/native").rglob("*.[ch]")}
    assert sources <= names
    assert {"native/CMakeLists.txt", "native/engine.map"} <= names


def test_cores_wheel_fits_every_python_of_the_platform(built: Path) -> None:
    path = wheel(built, "gdsfw-core")
    assert "-py3-none-linux_" in path.name
    names = zipfile.ZipFile(path).namelist()
    assert "gdsfw/engine/libgdsfw_engine.so" in names
    assert "gdsfw/include/gdsfw_backend.h" in names
    assert "gdsfw/py.typed" in names


@pytest.mark.parametrize("name", ["gdsfw-posix", "gdsfw-cufile", "gdsfw-hipfile"])
def test_a_backends_wheel_is_pure_python_and_typed(built: Path, name: str) -> None:
    path = wheel(built, name)
    assert path.name.endswith("-py3-none-any.whl")
    assert f"{name.replace('-', '_')}/py.typed" in zipfile.ZipFile(path).namelist()


def test_the_metapackage_holds_no_code(built: Path) -> None:
    assert not [name for name in zipfile.ZipFile(wheel(built, "gdsfw")).namelist() if name.endswith(".py")]


def backends(program: Path, path: Path) -> Any:
    return json.loads(call(program / "python", "-m", "gdsfw", "backends", "--json", PYTHONPATH=str(path)))


def test_installed_wheels_offer_every_backend(environment: Path, tmp_path: Path) -> None:
    data = json.loads(call(environment / "gdsfw", "backends", "--json", cwd=tmp_path))
    assert [entry["name"] for entry in data["backends"]] == ["cufile", "hipfile", "noop", "posix"]
    assert data["failures"] == []
    assert data["engine"]["available"] is True
    assert list(tmp_path.iterdir()) == []


def test_installed_wheels_know_their_versions(environment: Path) -> None:
    data = json.loads(call(environment / "gdsfw", "version", "--json"))
    assert {plugin["version"] for plugin in data["plugins"]} == {data["gdsfw"]}


def test_installed_wheels_run_the_quickstart(environment: Path, tmp_path: Path) -> None:
    out = tmp_path / "result.json"
    quickstart = ROOT / "examples" / "quickstart.yaml"
    small = ("--set", "defaults.size=1MiB", "--backend", "posix")
    call(environment / "gdsfw", "run", quickstart, *small, "-o", out, cwd=tmp_path)
    result = json.loads(out.read_text())
    assert (result["exit_code"], result["status"]) == (0, "done")


def test_without_a_c_compiler_the_wheel_runs_the_python_loop(built: Path, environment: Path, tmp_path: Path) -> None:
    (sdist,) = built.glob("gdsfw_core-*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.glob("gdsfw_core-*")
    out = tmp_path / "out"
    call(sys.executable, "-m", "build", "--wheel", "--outdir", out, source, CC="false")
    (path,) = out.glob("*.whl")
    assert path.name.endswith("-py3-none-any.whl")
    target = tmp_path / "installed"
    call(environment / "python", "-m", "pip", "install", "--quiet", "--no-deps", "--target", target, path)
    data = backends(environment, target)
    assert data["engine"]["available"] is False
    assert "the C engine was not built" in data["engine"]["reason"]
    noop = next(entry for entry in data["backends"] if entry["name"] == "noop")
    assert noop["usable"] is True
    text = call(environment / "python", "-m", "gdsfw", "backends", PYTHONPATH=str(target))
    assert "All paths run in Python: the C engine was not built" in text
    call(sys.executable, "-m", "build", "--wheel", "-o", out, source, CC="false", GDSFW_REQUIRE_ENGINE="1", code=1)
