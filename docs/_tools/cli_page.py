"""The page docs/reference/cli.md, made from the commands' functions.

python docs/_tools/cli_page.py          writes it
"""

from __future__ import annotations

import inspect
import re
import typing
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any

from gdsfw.cli.group import COMMANDS
from typer.models import ArgumentInfo, OptionInfo, ParamMeta
from typer.utils import get_params_from_function

PAGE = Path(__file__).parents[1] / "reference" / "cli.md"
HEADING = """\
# Command line

Made by `docs/_tools/cli_page.py` from the commands themselves; a test compares. Plugins may add commands, which
`gdsfw --help` lists behind these. `--debug`, which may stand anywhere, shows the traceback of an error.
[Exit codes](exit-codes.md) has the codes of all commands.

| command | what |
| --- | --- |
"""


def text() -> str:
    """The whole page."""
    rows = "".join(f"| [`gdsfw {name}`](#gdsfw-{name}) | {entry.summary} |\n" for name, entry in COMMANDS.items())
    sections = [_section(name, import_module(entry.module).command) for name, entry in COMMANDS.items()]
    return HEADING + rows + "\n" + "\n".join(sections)


def _section(name: str, command: Any) -> str:
    parameters = get_params_from_function(command).values()
    arguments = [found for found in parameters if isinstance(found.default, ArgumentInfo)]
    options = [found for found in parameters if isinstance(found.default, OptionInfo)]
    usage = " ".join(["gdsfw", name, *(["[OPTIONS]"] if options else []), *map(_usage, arguments)])
    told = re.sub(r"<(?=[a-zA-Z])", r"\\<", inspect.getdoc(command) or "")
    parts = [f"## gdsfw {name}\n", f"`{usage}`\n", f"{told}\n"]
    parts.append(_table("argument", [_row(f"`{_name(found)}`", found) for found in arguments]))
    parts.append(_table("option", [_row(_spellings(found), found) for found in options]))
    return "\n".join(part for part in parts if part)


def _name(argument: ParamMeta) -> str:
    return str(argument.default.metavar or argument.name).upper()


def _usage(argument: ParamMeta) -> str:
    """One that may be left out in brackets, one that may be repeated with dots."""
    name = _name(argument) + ("..." if _is(argument, list) else "")
    return name if argument.default.default is ... else f"[{name}]"


def _spellings(option: ParamMeta) -> str:
    """The ways to write an option, the long one first, with what follows it."""
    names = option.default.param_decls or [f"--{option.name.replace('_', '-')}"]
    value = "" if _is(option, bool) else f" {_value(option)}"
    return ", ".join(f"`{name}{value}`" for name in sorted(names, key=lambda name: not name.startswith("--")))


def _value(option: ParamMeta) -> str:
    """What stands for the value of an option that has no word of its own for it."""
    if option.default.metavar:
        return str(option.default.metavar)
    kind = _kinds(option)[0]
    return "FORM" if issubclass(kind, Enum) else {str: "NAME", Path: "PATH", int: "NUMBER"}[kind]


def _is(parameter: ParamMeta, kind: type) -> bool:
    return kind in (*_kinds(parameter), typing.get_origin(_kinds(parameter)[0]))


def _kinds(parameter: ParamMeta) -> list[Any]:
    """The types of an annotation, without None."""
    members = typing.get_args(parameter.annotation)
    if typing.get_origin(parameter.annotation) is list or not members:
        return [parameter.annotation]
    return [member for member in members if member is not type(None)]


def _row(name: str, parameter: ParamMeta) -> str:
    told = re.sub(r"\s+", " ", parameter.default.help or "").strip()
    notes = [told if told.endswith((".", "?")) else f"{told}."]
    choices = next((kind for kind in _kinds(parameter) if isinstance(kind, type) and issubclass(kind, Enum)), None)
    if choices is not None:
        notes.append(f"One of {', '.join(f'`{choice.value}`' for choice in choices)}.")
    if _is(parameter, list) and isinstance(parameter.default, OptionInfo) and "repeat" not in told:
        notes.append("May be repeated.")
    default = parameter.default.default
    if isinstance(default, Enum):
        notes.append(f"Default: `{default.value}`.")
    elif isinstance(parameter.default.show_default, str):
        notes.append(f"Default: {parameter.default.show_default}.")
    return f"| {name} | {' '.join(notes)} |\n".replace("*", r"\*")


def _table(what: str, rows: list[str]) -> str:
    return f"| {what} | meaning |\n| --- | --- |\n{''.join(rows)}" if rows else ""


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
