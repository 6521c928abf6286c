"""docs/reference/cli.md is what docs/_tools/cli_page.py makes of the commands."""

from __future__ import annotations

import importlib.util
from types import ModuleType

import pytest
from docs.pages import ROOT
from gdsfw.cli.group import COMMANDS


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    path = ROOT / "docs" / "_tools" / "cli_page.py"
    spec = importlib.util.spec_from_file_location("cli_page", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_up_to_date(generator: ModuleType) -> None:
    page = generator.PAGE.read_text(encoding="utf-8")
    assert page == generator.text(), "stale: python docs/_tools/cli_page.py writes it anew"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_of_the_help_text_is_on_the_page(command: str, generator: ModuleType) -> None:
    """The help text comes from another part of the command line's library."""
    import re

    from gdsfw.cli import app
    from typer.testing import CliRunner

    shown = CliRunner().invoke(app, [command, "--help"])
    assert shown.exit_code == 0
    section = generator.text().split(f"\n## gdsfw {command}\n")[1].split("\n## ")[0]
    options = re.findall(r"^  (?:-\w, )?(--[\w-]+)", shown.output, re.MULTILINE)
    assert [option for option in options if option != "--help" and f"`{option}" not in section] == []
    assert "--help" in options
