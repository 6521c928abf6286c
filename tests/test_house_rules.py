"""Rules of the house that a script can check: no vendors in core, described hooks, small pieces, lazy imports."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from gdsfw import hookspecs
from gdsfw.plugin_rules import hook_arguments

ROOT = Path(__file__).parents[1]
CORE = ROOT / "gdsfw-core"
#: The array interface has the vendor's word in its name, whoever implements it.
VENDOR_WORDS = re.compile(
    r"cufile|hipfile|(?<!__)cuda(?!_array_interface__)|rocm|nvidia|amdgpu|\bamd\b|\bhip\b", re.IGNORECASE
)

PYTHON_FILES = sorted(path for member in ROOT.glob("gdsfw-*") for path in (member / "src").rglob("*.py"))
C_FILES = sorted((CORE / "native").rglob("*.[ch]"))
CORE_TEXTS = [
    path
    for folder in ("src", "native")
    for path in sorted((CORE / folder).rglob("*"))
    if path.suffix in (".py", ".c", ".cpp", ".h", ".map", ".txt", ".yaml", ".json", ".html")
]


def short(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_there_is_something_to_check() -> None:
    assert len(PYTHON_FILES) > 50
    assert len(C_FILES) > 10


@pytest.mark.parametrize("path", CORE_TEXTS, ids=short)
def test_core_names_no_vendor(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    named = [f"{number}: {line.strip()}" for number, line in enumerate(lines, 1) if VENDOR_WORDS.search(line)]
    assert named == []


@pytest.mark.parametrize("hook", hook_arguments())
def test_every_hook_says_what_it_does(hook: str) -> None:
    text = inspect.getdoc(getattr(hookspecs, hook))
    assert text is not None
    summary = text.splitlines()[0]
    assert summary[0].isupper()
    assert text.endswith(".")
    assert len(summary) > 20


@pytest.mark.parametrize("hook", hook_arguments())
def test_every_hook_says_whether_it_is_required_or_what_its_default_is(hook: str) -> None:
    """gdsfw_options and those that only observe or add have neither."""
    text = inspect.getdoc(getattr(hookspecs, hook)) or ""
    if hook in hookspecs.REQUIRED:
        assert "Required" in text
    elif hook not in ("gdsfw_options", "gdsfw_error", "gdsfw_import") and not hook.startswith(
        ("gdsfw_job_", "gdsfw_commands")
    ):
        assert "Default" in text


def test_a_name_of_an_argument_means_one_thing_in_every_hook() -> None:
    meanings: dict[str, set[str]] = {}
    for name in hook_arguments():
        for parameter in inspect.signature(getattr(hookspecs, name)).parameters.values():
            meanings.setdefault(parameter.name, set()).add(str(parameter.annotation))
    meanings.pop("options")  # a model's instance, and for gdsfw_import another tool's words
    assert {name: kinds for name, kinds in meanings.items() if len(kinds) > 1} == {}


@pytest.mark.parametrize("path", PYTHON_FILES, ids=short)
def test_python_comes_in_small_pieces(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 500
    functions = (
        node for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    )
    long = [f"{node.name}: {_lines(node)}" for node in functions if _lines(node) > 60]
    assert long == []


def _lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def c_functions(text: str) -> Iterator[tuple[str, int]]:
    """(name, lines) of each function of a C source: what begins in the first column and ends with `}` there."""
    lines = text.splitlines()
    start = None
    for number, line in enumerate(lines):
        if start is None and re.match(r"[A-Za-z_].*\(", line) and not line.rstrip().endswith(";"):
            start = number
        elif start is not None and line.startswith("}"):
            name = re.search(r"(\w+)\(", lines[start])
            yield (name[1] if name else lines[start]), number - start + 1
            start = None
        elif start is not None and not line.startswith((" ", "\t", "#")) and line.rstrip().endswith(";"):
            start = None


@pytest.mark.parametrize("path", C_FILES, ids=short)
def test_c_comes_in_small_pieces(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 500
    assert [f"{name}: {lines}" for name, lines in c_functions(text) if lines > 60] == []


def test_c_functions_are_found() -> None:
    text = "static int\nadd(int a,\n    int b) {\n  return a + b;\n}\nint x(void);\nvoid f(void) {\n}\n"
    assert list(c_functions(text)) == [("add", 4), ("f", 2)]


@pytest.mark.parametrize("path", [path for path in C_FILES if path.suffix == ".c"], ids=short)
def test_the_engine_neither_prints_nor_exits_nor_asserts(path: Path) -> None:
    code = re.sub(r"/\*.*?\*/|//[^\n]*", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert re.findall(r"\b(?:f?printf|puts|perror|exit|abort|assert|signal|sigaction)\s*\(", code) == []


#: Nobody needs these to see a help text or to run on host memory.
HEAVY = {"cuda", "hip", "rocm", "numpy", "matplotlib", "plotly", "requests", "ssl", "http", "asyncio", "urllib.request"}


def modules_of(*arguments: str, cwd: Path) -> set[str]:
    """Modules that a `gdsfw` command has imported when it ends well."""
    code = (
        "import sys\nfrom gdsfw.cli import main\ntry:\n    main(sys.argv[1:])\n"
        "except SystemExit as end:\n    assert not end.code, end.code\n"
        "print('\\n'.join(sys.modules), file=open('modules.txt', 'w'))"
    )
    subprocess.run([sys.executable, "-c", code, *arguments], check=True, capture_output=True, cwd=cwd, timeout=60)
    names = set((cwd / "modules.txt").read_text().split())
    return names | {name.partition(".")[0] for name in names}


def test_help_imports_nothing_heavy(tmp_path: Path) -> None:
    found = modules_of("--help", cwd=tmp_path)
    assert found & (HEAVY | {"pydantic", "yaml", "rich"}) == set()
    assert {name for name in found if name.startswith("gdsfw.cli.")} <= {"gdsfw.cli.group", "gdsfw.cli.failure"}


def test_a_command_imports_no_other_command(tmp_path: Path) -> None:
    found = modules_of("version", cwd=tmp_path)
    assert {name for name in found if name.startswith("gdsfw.cli.")} == {"gdsfw.cli.group", "gdsfw.cli.version"}


def test_a_noop_run_imports_no_vendor_plotting_or_network_module(tmp_path: Path) -> None:
    workload = tmp_path / "noop.yaml"
    workload.write_text(
        "version: 1\njobs:\n  - {name: nothing, backend: noop, rw: randread, block_size: 4KiB, size: 64KiB}\n"
    )
    assert modules_of("run", str(workload), cwd=tmp_path) & HEAVY == set()
