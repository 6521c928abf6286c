"""The pages of the hooks, taken apart for the tests, and what those run."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable
from itertools import dropwhile, takewhile
from pathlib import Path
from types import ModuleType
from typing import Any

import gdsfw
from docs.pages import ROOT
from gdsfw import hookimpl, hookspecs, noop
from gdsfw.plugin_rules import hook_arguments
from gdsfw.plugins import PluginManager
from gdsfw.results.model import RunResult

FOLDER = ROOT / "docs" / "reference" / "hooks"
INDEX = (FOLDER / "index.md").read_text(encoding="utf-8")
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("gdsfw_*.md"))}
SPECS = {
    node.name: node
    for node in ast.parse(inspect.getsource(hookspecs)).body
    if isinstance(node, ast.FunctionDef) and node.name in hook_arguments()
}


def sections(text: str) -> dict[str, str]:
    """Text below each heading of a page; what stands before the first one is under the empty name."""
    parts = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)
    return {"": parts[0], **{name: body.strip() for name, body in zip(parts[1::2], parts[2::2], strict=True)}}


def rows(text: str) -> list[list[str]]:
    """Cells of the rows of the first table in a text, without its head."""
    lines = dropwhile(lambda line: not line.startswith("|"), text.splitlines())
    table = list(takewhile(lambda line: line.startswith("|"), lines))
    return [[cell.strip() for cell in line[1:-1].split("|")] for line in table[2:]]


def flat(text: str) -> str:
    """A text whose lines are not broken."""
    return " ".join(text.split())


def thread_of(hook: str) -> str:
    """By the docstring of hookspecs.py; sessions, of which it does not speak, call in their caller's thread."""
    text = flat(inspect.getdoc(hookspecs) or "")
    main = re.search(r"Main thread: (.*?)\. The worker's", text)
    worker = re.search(r"The worker's own thread: (.*?)\.", text)
    assert main is not None
    assert worker is not None
    words = {"main": main[1].replace(" and the observers", ", job_*"), "worker": worker[1]}
    for thread, named in words.items():
        patterns = [word.strip().replace("and ", "") for word in named.replace(" and ", ", ").split(",")]
        if any(re.fullmatch(word.replace("*", ".*"), hook.removeprefix("gdsfw_")) for word in patterns):
            return thread
    assert hook in ("gdsfw_map", "gdsfw_unmap")
    return "caller"


def plugin(hook: str, function: Callable[..., Any], *, wrapper: bool = False) -> PluginManager:
    """A manager with noop and a plugin that has one hook."""
    module = ModuleType("plugin_of_a_test")
    setattr(module, hook, hookimpl(specname=hook, wrapper=wrapper)(function))
    manager = PluginManager()
    manager.register(noop, "noop")
    manager.register(module, "other")
    return manager


def run(manager: PluginManager, folder: Path, keys: str = "", backend: str = "noop") -> RunResult:
    """A read of 16 blocks by one worker."""
    path = folder / "job.yaml"
    job = f"name: one, backend: {backend}, rw: read, block_size: 4KiB, size: 64KiB"
    path.write_text(f"{{version: 1, jobs: [{{{job}{keys}}}]}}")
    return gdsfw.run(gdsfw.load(path), plugins=manager)
