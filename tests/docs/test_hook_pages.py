"""The pages of the hooks say what hookspecs.py, the defaults and the loader say."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Generator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from docs.hook_pages import FOLDER, INDEX, PAGES, SPECS, flat, plugin, rows, run, sections, thread_of
from gdsfw import hookimpl, hookspecs, noop, plugin_defaults
from gdsfw.backend import BackendInfo, IOPathInfo
from gdsfw.errors import PluginError
from gdsfw.plugin_discovery import Offer, split_clashes
from gdsfw.plugin_rules import SHARED_HOOKS
from gdsfw.plugins import PluginManager

HEADINGS = [
    "Signature", "What it is for", "Parameters", "Returns", "When it is called", "What to raise", "Default",
    "Wrapping", "What the loader refuses", "Example",
]  # fmt: skip
hook_names = pytest.mark.parametrize("hook", sorted(SPECS))


def test_every_hook_has_a_page_and_no_other_page_is_there() -> None:
    assert sorted(PAGES) == sorted(SPECS)
    assert {path.name for path in FOLDER.iterdir()} == {"index.md", *(f"{name}.md" for name in PAGES)}


@hook_names
def test_a_page_has_all_headings_in_their_order(hook: str) -> None:
    assert PAGES[hook].startswith(f"# {hook}\n\n")
    assert list(sections(PAGES[hook]))[1:] == HEADINGS
    assert [name for name, body in sections(PAGES[hook]).items() if not body.strip()] == []


@hook_names
def test_the_signature_is_that_of_the_hook(hook: str) -> None:
    spec = SPECS[hook]
    assert spec.returns is not None
    arguments = ", ".join(f"{one.arg}: {ast.unparse(one.annotation)}" for one in spec.args.args if one.annotation)
    assert sections(PAGES[hook])["Signature"] == f"`{hook}({arguments}) -> {ast.unparse(spec.returns)}`"


@hook_names
def test_each_parameter_is_explained_and_no_other(hook: str) -> None:
    wanted = [(f"`{one.arg}`", f"`{ast.unparse(one.annotation)}`") for one in SPECS[hook].args.args if one.annotation]
    body = sections(PAGES[hook])["Parameters"]
    found = rows(body)
    assert [(name, kind) for name, kind, _ in found] == wanted
    assert all(len(meaning) > 5 for _, _, meaning in found)
    assert found or body == "None."


@hook_names
def test_the_facts_of_a_page_are_those_of_the_code(hook: str) -> None:
    ((required, first, thread, who),) = rows(sections(PAGES[hook])[""])
    decorator = SPECS[hook].decorator_list[0]
    assert (required == "yes") == (hook in hookspecs.REQUIRED)
    assert (first == "yes") == (isinstance(decorator, ast.Call) and "firstresult=True" in ast.unparse(decorator))
    assert thread == thread_of(hook)
    assert (who == "the backend") == (hook not in SHARED_HOOKS)


@hook_names
def test_a_default_is_named_where_there_is_one(hook: str) -> None:
    text = sections(PAGES[hook])["Default"]
    assert text.startswith("There is none") == (not hasattr(plugin_defaults, hook))
    if hook in hookspecs.REQUIRED:
        assert text == "There is none; the hook is required."


@hook_names
def test_what_a_default_says_is_quoted_word_for_word(hook: str) -> None:
    if not hasattr(plugin_defaults, hook):
        return
    source = inspect.getsource(getattr(plugin_defaults, hook)).replace("{buffer.memory}", "device")
    quoted = [text for text in re.findall(r"`([^`]+)`", flat(sections(PAGES[hook])["Default"])) if text.count(" ") > 3]
    assert [text for text in quoted if text not in source] == []


@pytest.mark.parametrize("hook", sorted(SHARED_HOOKS))
def test_a_plugin_that_is_no_backend_may_implement_what_its_page_says(hook: str) -> None:
    plugin(hook, lambda: None)


@pytest.mark.parametrize("hook", sorted(set(SPECS) - SHARED_HOOKS))
def test_a_plugin_that_is_no_backend_may_not_implement_a_backends_hook(hook: str) -> None:
    with pytest.raises(PluginError, match=r"only the job's backend implements it|is a backend"):
        plugin(hook, lambda: None)


@hook_names
def test_a_page_says_whether_the_hook_can_be_wrapped(hook: str) -> None:
    text = flat(sections(PAGES[hook])["Wrapping"])
    if "cannot be wrapped" in text:
        with pytest.raises(PluginError, match="can be implemented, not wrapped"):
            plugin(hook, passing, wrapper=True)
        return
    plugin(hook, passing, wrapper=True)
    assert ("nothing calls one" in text) == (hook in SHARED_HOOKS)


def passing() -> Generator[None, Any, Any]:
    return (yield)


def test_the_index_lists_every_hook_with_its_thread_and_a_line() -> None:
    found = rows(sections(INDEX)["All hooks"])
    assert sorted(row[0] for row in found) == sorted(f"[{hook}]({hook}.md)" for hook in SPECS)
    assert [row for row in found if not all(row)] == []
    for link, thread, _, line in found:
        hook = link[1 : link.index("]")]
        assert rows(sections(PAGES[hook])[""])[0][2] == thread
        assert ("required" in line.split("; ")) == (hook in hookspecs.REQUIRED), line


class Sound:
    """A backend that breaks no rule."""

    gdsfw_open_file = staticmethod(noop.gdsfw_open_file)
    gdsfw_alloc = staticmethod(noop.gdsfw_alloc)
    gdsfw_io = staticmethod(noop.gdsfw_io)

    @hookimpl
    def gdsfw_free(self, buffer: Any) -> None: ...

    @hookimpl
    def gdsfw_backend(self) -> BackendInfo:
        return BackendInfo("mine", "Sound", "1", (IOPathInfo("noop", native=True),), namespace="own")


def broken(name: str) -> object:
    """A plugin that breaks the rule that a row of the index names."""
    marked: dict[str, dict[str, Any]] = {
        "its functions are marked": {"gdsfw_open": lambda options: None},
        "it has a hook": {},
        "the hook exists": {"gdsfw_opn": hookimpl(lambda: None)},
        "arguments are those of the hook": {"gdsfw_open": hookimpl(lambda option: None)},
        "arguments have no defaults": {"gdsfw_open": hookimpl(lambda options=None: None)},
        "arguments are named": {"gdsfw_open": hookimpl(lambda *a: None)},
        "a hook is implemented once": {
            "gdsfw_open": hookimpl(lambda: None),
            "second": hookimpl(specname="gdsfw_open")(lambda: None),
        },
        "a wrapper is a generator": {"gdsfw_open": hookimpl(wrapper=True)(lambda: None)},
        "`optionalhook` is not used": {"gdsfw_open": hookimpl(optionalhook=True)(lambda: None)},
        "a backend is complete": {"gdsfw_free": None},
        "only the job's backend implements its hooks": {"gdsfw_open": hookimpl(lambda: None)},
    }
    functions = marked[name]
    whole = name not in ("it has a hook", "only the job's backend implements its hooks")
    made = Sound() if whole else ModuleType("nothing")
    for attribute, value in functions.items():
        setattr(made, attribute, value)
    return made


RULES = rows(sections(INDEX)["What the loader refuses"])


@pytest.mark.parametrize(("rule", "message"), [row for row in RULES if row[0] != "its name is its own"])
def test_the_loader_refuses_in_the_words_of_the_index(rule: str, message: str) -> None:
    with pytest.raises(PluginError) as caught:
        PluginManager().register(broken(rule), "mine")
    said = caught.value.message
    assert message in (said, f"{said} ({caught.value.hint})")


def test_two_distributions_with_one_plugin_name_are_refused_in_the_words_of_the_index() -> None:
    (message,) = [row[1] for row in RULES if row[0] == "its name is its own"]
    point: Any = None
    _, (failure,) = split_clashes([Offer("mine", f"{letter}-mine", "1.0", point) for letter in "ab"])
    assert failure.reason == message


def test_a_sound_backend_is_not_refused() -> None:
    PluginManager().register(Sound(), "mine")


def test_a_result_of_the_wrong_type_is_told_in_the_words_of_the_index(tmp_path: Path) -> None:
    class Wrong(Sound):
        @hookimpl
        def gdsfw_alloc(self) -> None: ...  # type: ignore[override]

    manager = PluginManager()
    manager.register(Wrong(), "mine")
    result = run(manager, tmp_path, backend="mine")
    assert result.exit_code == 3
    assert f"`{result.jobs[0].errors[0].message}`" in flat(sections(INDEX)["What to raise"])


@pytest.mark.parametrize("page", ["index", *PAGES])
def test_the_links_of_a_page_lead_somewhere(page: str) -> None:
    text = INDEX if page == "index" else PAGES[page]
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert links
    for link in links:
        name, _, anchor = link.partition("#")
        target = FOLDER / (name or f"{page}.md")
        assert target.is_file(), link
        headings = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), re.MULTILINE)
        assert not anchor or anchor in [heading.lower().replace(" ", "-") for heading in headings], link
