"""What others build on: every public thing of gdsfw by name, with what it is. Run as a program it prints the record.

A name says the kind of thing first: `hook`, `python`, `c` (header), `symbol` (of the engine), `command`, `workload`
(JSON Schema), `result`, `exit code`.
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import json
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import gdsfw
from gdsfw import backend, errors, hookspecs, host_memory, option_types
from gdsfw.cli import group
from gdsfw.errors import ExitCode
from gdsfw.plugin_rules import hook_arguments
from gdsfw.results import model as results
from gdsfw.workload.schema import workload_schema
from typer.models import OptionInfo

NATIVE = Path(__file__).parents[2] / "gdsfw-core" / "native"
#: What a backend may import (CONTRIBUTING.md).
MODULES: tuple[ModuleType, ...] = (backend, errors, host_memory, option_types)

Items = Iterator[tuple[str, str]]


def surface() -> dict[str, str]:
    """Every public thing by name, sorted."""
    found: dict[str, str] = {}
    for part in (hooks, python_names, header, symbols, commands, workload_keys, result_fields, exit_codes):
        for name, what in part():
            assert name not in found, f"{name} is there twice"
            found[name] = what
    return dict(sorted(found.items()))


def hooks() -> Items:
    """Each hook, and each of its arguments: a plugin names the arguments that it wants."""
    for name in hook_arguments():
        function = getattr(hookspecs, name)
        signature = inspect.signature(function)
        options = getattr(function, f"{hookspecs.PROJECT}_spec")
        how = "first result" if options["firstresult"] else "all results"
        required = ", required" if name in hookspecs.REQUIRED else ""
        yield f"hook {name}", f"{signature.return_annotation}, {how}{required}"
        for argument in signature.parameters.values():
            yield f"hook {name}({argument.name})", str(argument.annotation)


def python_names() -> Items:
    """`gdsfw.__all__`, and what backends import."""
    for name in gdsfw.__all__:
        yield f"python gdsfw.{name}", _value(getattr(gdsfw, name)) if name != "__version__" else "str"
    for module in MODULES:
        public = getattr(module, "__all__", None) or [
            name for name, value in vars(module).items() if _is_own(module, name, value)
        ]
        for name in public:
            yield from _members(f"python {module.__name__}.{name}", getattr(module, name))


def _is_own(module: ModuleType, name: str, value: Any) -> bool:
    return not name.startswith("_") and getattr(value, "__module__", None) == module.__name__


def _members(name: str, value: Any) -> Items:
    yield name, _value(value)
    if not inspect.isclass(value):
        return
    if issubclass(value, enum.Enum):
        yield from ((f"{name}.{member.name}", repr(member.value)) for member in value)
        return
    if dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield f"{name}.{field.name}", _field(field)
    shown = {field.name for field in dataclasses.fields(value)} if dataclasses.is_dataclass(value) else set()
    for attribute, member in vars(value).items():
        if attribute in shown or (attribute.startswith("_") and attribute != "__init__"):
            continue
        if inspect.isfunction(member):
            made = dataclasses.is_dataclass(value) or getattr(value, "_is_protocol", False)
            if attribute != "__init__" or not made:
                yield f"{name}.{attribute}", str(inspect.signature(member))
        elif isinstance(member, (property, classmethod, staticmethod)):
            yield f"{name}.{attribute}", type(member).__name__
    if issubclass(value, tuple):
        for field_name, kind in value.__annotations__.items():
            yield f"{name}.{field_name}", getattr(kind, "__forward_arg__", str(kind))


def _field(field: dataclasses.Field[Any]) -> str:
    if field.default is not dataclasses.MISSING:
        return f"{field.type} = {_plain(field.default)}"
    return f"{field.type}{' = ...' if field.default_factory is not dataclasses.MISSING else ''}"


def _plain(value: Any) -> str:
    return (
        f"{value:d}"
        if isinstance(value, enum.IntEnum)
        else repr(sorted(value) if isinstance(value, frozenset) else value)
    )


def _value(value: Any) -> str:
    if inspect.isclass(value):
        bases = ", ".join(base.__name__ for base in value.__bases__ if base is not object)
        return f"class({bases})"
    if inspect.isroutine(value):
        return str(inspect.signature(value))
    return repr(value) if isinstance(value, (int, str)) else type(value).__name__


def header() -> Items:
    """The constants, structs, functions and tables of the public header."""
    text = (NATIVE / "include" / "gdsfw_backend.h").read_text(encoding="utf-8")
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)
    for name, value in re.findall(r"^#define (\w+)[ \t]+(\S.*)$", text, re.MULTILINE):
        yield f"c {name}", value.strip()
    text = re.sub(r'^#.*$|extern "C" \{', "", text, flags=re.MULTILINE)
    for kind, name, body in re.findall(r"\b(struct|enum) (\w+) \{(.*?)\};", text, re.DOTALL):
        yield f"c {kind} {name}", kind
        members = [_one_line(member) for member in body.split("," if kind == "enum" else ";") if member.strip()]
        for place, member in enumerate(_apart(members) if kind == "struct" else members):
            yield f"c {name}.{_declared(member)}", member if kind == "enum" else f"{place}: {member}"
    rest = re.sub(r"\b(struct|enum) \w+ \{.*?\};", "", text, flags=re.DOTALL)
    for declaration in filter(None, (_one_line(part) for part in rest.replace("}", "").split(";"))):
        yield f"c {_declared(declaration)}", declaration


def _apart(members: list[str]) -> Iterator[str]:
    """`uint32_t abi, struct_size` as two members."""
    for member in members:
        if "(" in member:
            yield member
            continue
        first, *more = member.split(",")
        yield first
        yield from (f"{first.rsplit(' ', 1)[0]} {name.strip()}" for name in more)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _declared(declaration: str) -> str:
    """The name that a C declaration declares."""
    pointer = re.search(r"\(\*(\w+)\)", declaration)
    if pointer:
        return pointer[1]
    match = re.search(r"(\w+)\s*(?:\[\w*\]|\(.*\)|=.*)?$", declaration)
    assert match is not None, declaration
    return match[1]


def symbols() -> Items:
    """What the engine exports."""
    text = (NATIVE / "engine.map").read_text(encoding="utf-8")
    for name in re.findall(r"^\s+(gdsfw\w*\*?);", text, re.MULTILINE):
        yield f"symbol {name}", "exported"


def commands() -> Items:
    """Commands of the command line with their options and arguments; without those of plugins."""
    from gdsfw import cli

    callback = cli.app.registered_callback
    assert callback is not None
    assert callback.callback is not None
    yield from _parameters("command gdsfw", callback.callback)
    for name, entry in group.COMMANDS.items():
        yield f"command {name}", entry.summary
        yield from _parameters(f"command {name}", import_module(entry.module).command)


def _parameters(command: str, function: Callable[..., Any]) -> Items:
    annotated = get_type_hints(function, include_extras=True)
    for parameter in inspect.signature(function).parameters.values():
        hint = annotated[parameter.name]
        if get_origin(hint) is not Annotated:
            continue  # the context, which is the library's
        info = get_args(hint)[1]
        written = re.match(r"Annotated\[(.*?), typer\.", str(parameter.annotation))
        kind = written[1] if written else str(parameter.annotation)
        said = [text for text in (info.default, *(info.param_decls or ())) if str(text).startswith("-")]
        dashed = parameter.name.replace("_", "-")
        usual = f"--{dashed}" if isinstance(info, OptionInfo) else dashed.upper()
        needed = "" if parameter.default is not parameter.empty else ", required"
        yield f"{command} {' '.join(said) or usual}", f"{kind}{needed}"


def workload_keys() -> Items:
    """The workload language, as `gdsfw schema` prints it, without the descriptions."""
    schema = workload_schema()
    for name, part in (("", schema), *schema["$defs"].items()):
        for key, value in part.get("properties", {}).items():
            yield f"workload {name}.{key}".replace(" .", " "), _shape(value)
        if "properties" not in part:
            yield f"workload {name}", _shape(part)


def _shape(value: Any) -> str:
    def bare(part: Any, keys: bool = False) -> Any:
        if isinstance(part, dict):
            dropped = () if keys else ("description", "title", "$defs")
            return {key: bare(item, key == "properties") for key, item in part.items() if key not in dropped}
        return [bare(item) for item in part] if isinstance(part, list) else part

    return json.dumps(bare(value), sort_keys=True)


def result_fields() -> Items:
    """The fields of a result file."""
    yield "result schema", results.SCHEMA
    for name, value in vars(results).items():
        if dataclasses.is_dataclass(value) and _is_own(results, name, value):
            yield from ((f"result {name}.{field.name}", _field(field)) for field in dataclasses.fields(value))


def exit_codes() -> Items:
    """The numbers a command ends with."""
    yield from ((f"exit code {int(code)}", code.name) for code in ExitCode)


if __name__ == "__main__":
    print(json.dumps(surface(), indent=0, ensure_ascii=False))
