"""What `gdsfw new-backend` writes is complete and clean; the C library that it writes compiles and passes the kit.

That pip builds and installs it, and that the kit finds a broken line in it, is tried by
examples/backends/try-new-backend.sh.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import gdsfw
import pytest
import yaml
from fakes.build import compiler
from gdsfw.cli.new_backend import LONGEST
from gdsfw.scaffold import render
from gdsfw.workload.loader import load_text

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
RAMDISK = ROOT / "examples/backends/gdsfw-ramdisk"
LONG = "w" * (LONGEST - 2) + "-w"
KINDS = pytest.mark.parametrize("native", [False, True], ids=["python", "native"])


def written(folder: Path, name: str, native: bool) -> Path:
    """The distribution, in `folder`."""
    place = folder / f"gdsfw-{name}"
    for path, text in render(name, native).items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(text, encoding="utf-8")
    return place


def check(*command: object, cwd: Path, **environ: str) -> str:
    """Run a program that must end well, and give what it printed."""
    words = list(map(str, command))
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False, env={**os.environ, **environ})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_example_in_this_repository_is_what_the_command_writes() -> None:
    built = {line.rstrip("/") for line in (RAMDISK / ".gitignore").read_text().splitlines()}
    paths = [path.relative_to(RAMDISK) for path in RAMDISK.rglob("*") if path.is_file()]
    found = {str(path): (RAMDISK / path).read_text() for path in paths if not built.intersection(path.parts)}
    assert found == render("ramdisk", native=False)


@KINDS
def test_no_mark_of_a_template_is_left(native: bool) -> None:
    for path, text in render("my-disk", native).items():
        assert re.findall(r"@[A-Z]+@", path + text) == []


@KINDS
def test_the_readme_says_what_each_file_is(native: bool) -> None:
    files = render("my-disk", native)
    rows = re.findall(r"^\| `([^`]+)` \|", files["README.md"], re.MULTILINE)
    assert set(rows) == set(files) - {"README.md", ".gitignore"}


@KINDS
def test_its_metadata_offer_the_backend_and_ask_for_core_alone(native: bool) -> None:
    files = render("my-disk", native)
    project: dict[str, Any] = tomllib.loads(files["pyproject.toml"])["project"]
    assert project["name"] == "gdsfw-my-disk"
    assert project["entry-points"] == {"gdsfw": {"my-disk": "gdsfw_my_disk"}}
    assert project["dependencies"] == [f"gdsfw-core>={gdsfw.__version__}"]
    assert project["readme"] in files


@KINDS
def test_its_workflow_installs_it_and_runs_its_tests_on_each_python(native: bool) -> None:
    workflow = yaml.safe_load(render("my-disk", native)[".github/workflows/test.yaml"])
    job = workflow["jobs"]["test"]
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert commands == ["python -m pip install -e '.[test]'", "gdsfw backends", "python -m pytest"]
    assert job["strategy"]["matrix"]["python"] == ["3.10", "3.13"]  # 3.10 as a number would be 3.1
    assert set(workflow) - {"name", "jobs"} == {True}  # `on`, as YAML 1.1 reads it


@KINDS
def test_its_workload_is_valid(native: bool) -> None:
    workload = load_text(render("my-disk", native)["examples/quickstart.yaml"])
    assert [job.name for job in workload.jobs] == ["ingest", "scan", "lookup"]


@KINDS
@pytest.mark.parametrize("name", ["a", LONG])
def test_it_is_clean_in_the_linters_of_this_repository(tmp_path: Path, name: str, native: bool) -> None:
    for tool in ("ruff", "codespell_lib"):
        if not find_spec(tool):
            pytest.skip(f"{tool} is not installed: pip install --group lint")
    place = written(tmp_path, name, native)
    for command in (["check"], ["format", "--check"]):
        check(
            sys.executable,
            "-m",
            "ruff",
            *command,
            "--no-cache",
            "--config",
            ROOT / "pyproject.toml",
            place,
            cwd=tmp_path,
        )
    check(sys.executable, "-m", "codespell_lib", place, cwd=tmp_path)


@KINDS
def test_it_is_clean_in_mypy_as_strict_as_it_gets(tmp_path: Path, native: bool) -> None:
    if not find_spec("mypy"):
        pytest.skip("mypy is not installed: pip install --group lint")
    place = written(tmp_path, LONG, native)
    options = ["--strict", "--python-version", "3.10", "--cache-dir", tmp_path / "cache", "--no-error-summary"]
    path = f"{ROOT / 'gdsfw-core/src'}:{place / 'src'}"
    check(sys.executable, "-m", "mypy", *options, "src", "tests", cwd=place, MYPYPATH=path)


@pytest.fixture
def cc() -> str:
    found = compiler()
    if found is None:
        pytest.skip("no C compiler")
    return found


def compile_library(cc: str, place: Path, name: str) -> None:
    """As CMakeLists.txt does, with every warning an error."""
    symbol = name.replace("-", "_")
    options = [
        "-std=c11",
        "-Wall",
        "-Wextra",
        "-Wpedantic",
        "-Werror",
        "-O2",
        "-fPIC",
        "-shared",
        "-fvisibility=hidden",
    ]
    library = place / f"src/gdsfw_{symbol}/libgdsfw_{symbol}.so"
    check(cc, *options, "-I", gdsfw.get_include(), place / f"native/{symbol}.c", "-o", library, cwd=place)


@pytest.mark.parametrize("name", ["a", LONG, "int", "errno", "gdsfw2", "io", "memory", "aligned"])
def test_its_c_library_compiles_without_a_warning_whatever_the_name(cc: str, tmp_path: Path, name: str) -> None:
    place = written(tmp_path, name, native=True)
    compile_library(cc, place, name)
    (library,) = place.rglob("*.so")
    assert library.stat().st_size > 0


def test_its_c_library_passes_the_kit_in_the_native_loop(cc: str, tmp_path: Path) -> None:
    place = written(tmp_path, "my-c-disk", native=True)
    compile_library(cc, place, "my-c-disk")
    info = place / "src/gdsfw_my_c_disk-0.1.0.dist-info"  # in the place of an installer's
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: gdsfw-my-c-disk\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text("[gdsfw]\nmy-c-disk = gdsfw_my_c_disk\n")
    kit = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    out = check(*kit, cwd=place, PYTHONPATH=str(place / "src"), GDSFW_REQUIRE_ENGINE="1")
    assert "passed" in out
