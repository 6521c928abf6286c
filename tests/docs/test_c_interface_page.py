"""The page of the C interface has all of gdsfw_backend.h, and what it shows compiles, loads and runs."""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
from pathlib import Path

import gdsfw
import pytest
from docs.hook_pages import rows, sections
from docs.pages import ROOT, Block, blocks
from gdsfw import hookimpl, noop
from gdsfw.backend import BackendInfo, FileHandle, IOPath, IOPathInfo
from gdsfw.engine import native
from gdsfw.engine.native_table import TABLE_ABI, NativeTable
from gdsfw.errors import Domain
from gdsfw.plugins import PluginManager
from gdsfw.results.model import RunResult
from surface.surface import header

PAGE = "docs/reference/c-interface.md"
TEXT = (ROOT / PAGE).read_text(encoding="utf-8")
SECTIONS = sections(TEXT)
#: Kinds and members of the header: `gdsfw_io`, and `gdsfw_io.read`.
PUBLIC = {name.removeprefix("c ").rpartition(" ")[2]: text for name, text in header()}
STRUCTS = sorted(name for name, kind in PUBLIC.items() if kind == "struct")
usable, reason = native.available()


def shown(language: str) -> Block:
    """The first block of a language."""
    return next(block for block in blocks(PAGE) if block.language == language)


def names(text: str) -> list[str]:
    """What stands in backticks in a cell."""
    return re.findall(r"`([^`]+)`", text)


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the page's library, built with its own command."""
    folder = tmp_path_factory.mktemp("example")
    source = shown("c")
    assert source.marker == "file"
    (folder / source.said).write_text(source.text)
    command = shown("sh").text.replace("$(python ", f'$("{sys.executable}" ')
    for option in ("-Wall", "-Wextra", "-Werror", "-shared"):
        assert option in command
    done = subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return folder


def test_the_header_was_read() -> None:
    assert len(STRUCTS) > 9
    assert "gdsfw_io.read" in PUBLIC


def test_every_public_name_of_the_header_is_on_the_page() -> None:
    words = set(re.findall(r"\w+", TEXT))
    assert [name for name in PUBLIC if "." not in name and name not in words] == []


def test_the_page_has_no_name_that_the_header_lacks() -> None:
    known = {part for name in PUBLIC for part in name.split(".")} | {"GDSFW_ABI", "gdsfw_backend"}
    hooks = set(re.findall(r"\[(gdsfw_\w+)\]\(hooks/\1\.md\)", TEXT)) | {"gdsfw_alloc", "gdsfw_free", "gdsfw_io"}
    used = set(re.findall(r"\b(?:gdsfw|GDSFW)_\w+", TEXT))
    shown_code = set(re.findall(r"\bgdsfw_\w+", shown("python").text))
    assert used - known - hooks - shown_code == set()


@pytest.mark.parametrize("struct", STRUCTS)
def test_a_struct_has_a_table_of_its_members_in_order(struct: str) -> None:
    members = [name.partition(".")[2] for name in PUBLIC if name.startswith(f"{struct}.")]
    table = rows(SECTIONS[f"struct {struct}"])
    assert [name for row in table for name in names(row[0])] == members
    assert [row for row in table if not all(row)] == []


@pytest.mark.parametrize("struct", STRUCTS)
def test_the_types_of_a_struct_are_those_of_the_header(struct: str) -> None:
    for row in rows(SECTIONS[f"struct {struct}"]):
        for name in names(row[0]):
            declared = PUBLIC[f"{struct}.{name}"].partition(": ")[2]
            kinds = names(row[1])
            if not kinds:
                assert row[1].startswith("function")
                assert f"(*{name})(" in declared
                continue
            kind, _, extent = kinds[0].partition("[")
            wanted = f"{kind} {name}[{extent}" if extent else f"{kind} {name}"
            assert declared.replace("* ", "*").replace("*", "* ").split() == wanted.replace("*", "* ").split()


def test_the_functions_have_the_parameters_of_the_header() -> None:
    for struct in ("gdsfw_io", "gdsfw_queue"):
        for name, text in PUBLIC.items():
            if not name.startswith(f"{struct}.") or "(*" not in text:
                continue
            plain = re.sub(r"\(\*(\w+)\)", r"\1", text.partition(": ")[2])
            assert f"`{plain}`" in TEXT, name
    for name in ("gdsfw_pattern_fill", "gdsfw_pattern_verify", "gdsfw_uring_try"):
        assert f"`{PUBLIC[name]}`" in TEXT
    assert f"`{PUBLIC['gdsfw_io_fn'].removeprefix('typedef ')}`" in TEXT


def test_the_sizes_and_constants_are_those_of_the_compiler(tmp_path: Path) -> None:
    """A C program with an assertion for each; it compiles if the page is right."""
    lines = ['#include "gdsfw_backend.h"']
    for struct in STRUCTS:
        size = re.search(r"\b(\d+) bytes\b", SECTIONS[f"struct {struct}"])
        assert size is not None, struct
        lines.append(f'_Static_assert(sizeof(struct {struct}) == {size[1]}, "{struct}");')
    table = rows(SECTIONS["Constants"])
    for row in table:
        (name,) = names(row[0])
        lines.append(f'_Static_assert({name} == {row[1]}, "{name}");')
    source = tmp_path / "facts.c"
    source.write_text("\n".join(lines) + "\n")
    command = ["cc", "-std=c11", "-fsyntax-only", "-I", gdsfw.get_include(), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    constants = {name.rpartition(".")[2] for name in PUBLIC if "GDSFW_" in name}
    assert {names(row[0])[0] for row in table} == constants


def test_the_example_runs_and_prints_what_the_page_shows(example: Path) -> None:
    if not usable:
        pytest.skip(reason)
    command = [sys.executable, "-W", "error", "-c", shown("python").text]
    done = subprocess.run(command, cwd=example, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == shown("text").text
    assert "native" in done.stdout


def test_results_mean_what_the_table_says() -> None:
    if not usable:
        pytest.skip(reason)
    for r, error, base, domain, code in rows(SECTIONS["Result of a call"]):
        results = [0, 1, 1 << 40] if r == "0 or more" else [int(r)]
        errors = [0, 5, 5022] if error == "any" else [int(error)]
        bases = [0, 5000] if base == "any" else [int(base)]
        for case in ((one, two, three) for one in results for two in errors for three in bases):
            verdict = native.engine().library.gdsfw_decode(*case)
            assert f"`GDSFW_{Domain(verdict.domain).name}`" == domain, case
            assert code == "none: bytes moved" or int(code) == verdict.code, case


class Tabled:
    """A backend with a table of a test's own."""

    gdsfw_open_file = staticmethod(noop.gdsfw_open_file)
    gdsfw_alloc = staticmethod(noop.gdsfw_alloc)
    gdsfw_free = staticmethod(noop.gdsfw_free)

    def __init__(self, table: NativeTable) -> None:
        self._table = table

    @hookimpl
    def gdsfw_backend(self) -> BackendInfo:
        able = frozenset({"data", "flush"})
        return BackendInfo(
            "arena", "A table", "1", (IOPathInfo("memory", native=True),), capabilities=able, namespace="own"
        )

    @hookimpl
    def gdsfw_io(self, files: list[FileHandle]) -> IOPath:
        return IOPath("memory", files, native=self._table, file_values=range(len(files)))


def run(table: NativeTable, folder: Path, keys: str = "") -> RunResult:
    manager = PluginManager()
    manager.register(Tabled(table), "arena")
    path = folder / "job.yaml"
    job = f"name: one, backend: arena, rw: write, block_size: 4KiB, size: 64KiB{keys}"
    path.write_text(f"{{version: 1, jobs: [{{{job}}}]}}")
    return gdsfw.run(gdsfw.load(path), plugins=manager)


def moving() -> NativeTable:
    """A table that works, which a test may spoil."""
    if not usable:
        pytest.skip(reason)
    return native.noop_table()


def flat(text: str) -> str:
    return " ".join(text.split())


def test_a_table_of_another_version_is_refused_in_the_words_of_the_page(tmp_path: Path) -> None:
    table = moving()
    table.abi = TABLE_ABI + 1
    result = run(table, tmp_path)
    assert result.exit_code == 3
    message = result.jobs[0].errors[0].message.removeprefix("worker 0: ").replace("backend memory", "backend arena")
    assert f"`{message}`" in flat(SECTIONS["Versions"])


def test_a_member_behind_struct_size_counts_as_null(tmp_path: Path) -> None:
    table = moving()
    assert run(table, tmp_path, ", end_fsync: true").exit_code == 0
    table.struct_size = NativeTable.flush.offset
    assert run(table, tmp_path, ", end_fsync: false").exit_code == 0
    result = run(table, tmp_path, ", end_fsync: true")
    assert result.exit_code == 2
    assert f"`{result.jobs[0].errors[0].message.removeprefix('worker 0: ')}`" in flat(SECTIONS["Versions"])


def test_a_table_that_is_too_small_is_refused_at_the_size_that_the_page_names(tmp_path: Path) -> None:
    least = re.search(r"Less than (\d+) bytes", flat(SECTIONS["Versions"]))
    assert least is not None
    table = moving()
    table.struct_size = int(least[1]) - 1
    assert run(table, tmp_path).exit_code == 3
    assert NativeTable.max_transfer.offset == int(least[1])


def test_the_tables_that_are_ready_are_as_the_page_says() -> None:
    if not usable:
        pytest.skip(reason)
    for row in rows(SECTIONS["Ready tables"]):
        (name,) = names(row[0])
        table = native.engine().table(name)
        assert table.abi == TABLE_ABI
        assert table.struct_size == ctypes.sizeof(NativeTable)
        assert bool(table.queue) == ("queue" in row[1])
        assert bool(table.flags & native.HOST_VISIBLE) == ("invisible" not in row[1])
        most = re.search(r"most bytes of a call: (\d+)", row[1])
        assert most is None or table.max_transfer == int(most[1])
    assert SECTIONS["Constants"].count("| `GDSFW_ABI` | ") == 1


def test_every_link_of_the_page_leads_somewhere() -> None:
    links = re.findall(r"\]\(([^)]+)\)", TEXT)
    headings = {heading.lower().replace(" ", "-") for heading in SECTIONS if heading}
    for link in links:
        name, _, anchor = link.partition("#")
        assert (ROOT / "docs" / "reference" / name).exists(), link
        assert name or anchor in headings, link
