from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from gdsfw.engine import native, native_abi, native_table

NATIVE = Path(__file__).parents[3] / "gdsfw-core" / "native"
SOURCES = sorted(NATIVE.rglob("*.[ch]"))
FORBIDDEN = re.compile(r"\b(printf|fprintf|puts|perror|exit|_exit|abort|assert|signal|sigaction|system|fork)\s*\(")


def functions(text: str) -> Iterator[tuple[str, int]]:
    """Name and number of lines of each function: a line that ends in `{` at the left edge, up to `}` there."""
    begun, name = 0, ""
    for number, line in enumerate(text.splitlines()):
        if re.match(r"^[a-zA-Z_].*\)\s*\{$", line) or (re.match(r"^ +.*\)\s*\{$", line) and not begun and name):
            begun, name = number + 1, line
        elif line == "}" and begun:
            yield name, number - begun + 2
            begun = 0


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_sources_stay_small_and_silent(source: Path) -> None:
    text = source.read_text()
    assert len(text.splitlines()) <= 500
    assert not [(name, lines) for name, lines in functions(text) if lines > 60]
    code = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    assert FORBIDDEN.search(code) is None
    assert max(map(len, text.splitlines())) <= 120


def test_exports_are_those_of_the_version_script() -> None:
    if shutil.which("nm") is None:
        pytest.skip("nm (binutils) is not installed")
    listed = subprocess.run(
        ["nm", "-D", "--defined-only", str(native.engine().path)], capture_output=True, text=True, check=True
    )
    exported = {line.split()[-1] for line in listed.stdout.splitlines()}
    script = (NATIVE / "engine.map").read_text()
    patterns = re.findall(r"^\s+(gdsfw_\w+\*?);", script, flags=re.MULTILINE)
    plain = {pattern for pattern in patterns if not pattern.endswith("*")}
    families = tuple(pattern[:-1] for pattern in patterns if pattern.endswith("*"))
    assert plain <= exported
    assert all(name in plain or name.startswith(families) for name in exported)


def test_every_exported_function_has_declared_types() -> None:
    declared = set(native_abi.FUNCTIONS) | set(native_abi.TABLES)
    script = (NATIVE / "engine.map").read_text()
    exported = set(re.findall(r"^\s+(gdsfw_\w+);", script, flags=re.MULTILINE))
    # Symbols of GPU queues are named by their tables (gdsfw/gpu/abi.py).
    gpu = {name for name in exported if name.startswith(("gdsfw_gpu_", "gdsfw_staged_"))}
    assert exported - declared - gpu == set()
    library = native.engine().library
    for name, (result, arguments) in native_abi.FUNCTIONS.items():
        function = getattr(library, name)
        assert function.restype is result
        assert tuple(function.argtypes or ()) == arguments


def test_structs_have_the_size_that_the_library_was_built_with() -> None:
    import ctypes as c

    structs = (
        native_abi.Config,
        native_abi.Result,
        native_abi.LiveStruct,
        native_abi.Shape,
        native_table.NativeTable,
        native_table.NativeQueue,
    )
    sizes = native.engine().library.gdsfw_engine_sizes
    assert [c.sizeof(struct) for struct in structs] == [sizes(i) for i in range(len(structs))]


COMPILER = shutil.which("cc") or shutil.which("gcc")


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
def test_library_of_another_version_is_refused_with_both_numbers_and_the_file(tmp_path: Path) -> None:
    from gdsfw.errors import InternalError

    source = tmp_path / "other.c"
    source.write_text("unsigned gdsfw_engine_abi(void) { return 77; }\n")
    library = tmp_path / "libother.so"
    subprocess.run([str(COMPILER), "-shared", "-fPIC", "-o", library, source], check=True)
    with pytest.raises(InternalError, match=rf"{library}.* 77.* {native_abi.ENGINE_ABI}"):
        native.Engine(library)
    source.write_text("int something_else;\n")
    library = tmp_path / "libstranger.so"
    subprocess.run([str(COMPILER), "-shared", "-fPIC", "-o", library, source], check=True)
    with pytest.raises(InternalError, match="is no gdsfw engine"):
        native.Engine(library)


def test_table_of_another_version_is_refused_by_name_with_both_numbers() -> None:
    from gdsfw.errors import PluginError

    table = native.noop_table()
    table.abi = 9
    with pytest.raises(PluginError, match=r"backend acme: .* version 9, this gdsfw has 1"):
        native.check_table(table, "acme")


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
@pytest.mark.parametrize("language", ["gnu99", "c11", "c++14"])
def test_public_header_compiles_by_itself_without_warnings(tmp_path: Path, language: str) -> None:
    import gdsfw

    suffix, kind = (".cpp", "c++") if "++" in language else (".c", "c")
    if kind == "c++" and shutil.which("g++") is None:
        pytest.skip("no C++ compiler")
    for header in sorted((NATIVE / "include").glob("*.h")):
        source = tmp_path / f"use{suffix}"
        source.write_text(f'#include "{header.name}"\nint main(void) {{ return 0; }}\n')
        command = [str(COMPILER), "-x", kind, f"-std={language}", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
        subprocess.run(
            [*command, "-fsyntax-only", f"-I{header.parent}", f"-I{gdsfw.get_include()}", str(source)], check=True
        )
