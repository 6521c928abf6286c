"""The JSON Schema of a workload file, for editors: what the loader accepts, with descriptions and units."""

from __future__ import annotations

from typing import Any

from gdsfw.workload.json_types import DEFINITIONS, PREFIX, ref
from gdsfw.workload.loader import NOT_IN_DEFAULTS, VERSION
from gdsfw.workload.model import Job
from gdsfw.workload.names import ALIASES
from gdsfw.workload.sweep import NOT_SWEPT

DIALECT = "https://json-schema.org/draft/2020-12/schema"
#: Text with a variable may stand for any scalar: what it expands to is known only when the file is loaded.
_VARIABLE = {"type": "string", "pattern": r"\$\{[A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?\}"}
_MAPPINGS = ("random", "sweep")


def workload_schema() -> dict[str, Any]:
    """The schema as plain data."""
    generated = Job.model_json_schema()
    definitions: dict[str, Any] = {**generated.pop("$defs"), **DEFINITIONS}
    definitions = {name: _variables_inside(schema) for name, schema in definitions.items()}
    definitions["variable"] = {"description": "A value from the environment.", **_VARIABLE}
    keys = _keys(generated["properties"])
    definitions["sweep"] = _sweep(keys)
    definitions["job"] = _closed(
        "One job; sizes, rates and depths are per worker.", {**keys, **_aliases(keys)}, ["name"]
    )
    shared = {key: _key(key) for key in keys if key not in NOT_IN_DEFAULTS}
    definitions["defaults"] = _closed(
        "Keys for all jobs that do not say them themselves.", {**shared, **_aliases(shared)}, []
    )
    top = {
        "version": {"const": VERSION, "description": "Version of the workload language."},
        "defaults": ref("defaults"),
        "jobs": {
            "type": "array",
            "minItems": 1,
            "items": ref("job"),
            "description": "Jobs, run one after another; adjacent jobs of one stage run together.",
        },
    }
    about = "Jobs that move bytes between storage and memory, and are measured."
    schema = {"$schema": DIALECT, "title": "gdsfw workload", **_closed(about, top, ["jobs"]), "$defs": definitions}
    resolved: dict[str, Any] = _with_local_references(schema)
    return resolved


def _closed(description: str, properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "description": description,
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _keys(generated: dict[str, Any]) -> dict[str, Any]:
    """Schema of each key of a job, with its default as a file would write it."""
    defaults = Job(name="any").model_dump(mode="json")
    keys = {}
    for key, schema in generated.items():
        inner = {name: value for name, value in schema.items() if name not in ("title", "default", "description")}
        if key == "verify":  # true and false become other values before the model sees them
            inner["anyOf"] = [{"type": "boolean"}, *inner["anyOf"]]
        default = {} if defaults[key] is None or key == "name" else {"default": defaults[key]}
        keys[key] = {
            "description": Job.model_fields[key].description,
            **default,
            **(inner if key in _MAPPINGS else _or_variable(inner)),
        }
    return keys


def _key(key: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/job/properties/{key}"}


def _aliases(keys: dict[str, Any]) -> dict[str, Any]:
    return {
        alias: {"description": f"fio's name for {key}.", **_key(key)} for alias, key in ALIASES.items() if key in keys
    }


def _sweep(keys: dict[str, Any]) -> dict[str, Any]:
    """One list of values for each key; parts of a mapping by a dotted name."""
    swept = [key for key in keys if key not in NOT_SWEPT]
    names = {**{key: key for key in swept}, **{alias: key for alias, key in ALIASES.items() if key in swept}}
    return {
        "type": "object",
        "properties": {name: {"type": "array", "items": _key(key), "minItems": 1} for name, key in names.items()},
        "patternProperties": {r"^(random|verify|backend_options|plugins)\.": {"type": "array", "minItems": 1}},
        "additionalProperties": False,
    }


def _or_variable(schema: dict[str, Any]) -> dict[str, Any]:
    """`schema` or text with a variable, inside as well."""
    schema = _variables_inside(schema)
    if schema.get("type") == "object":
        return schema
    forms = schema["anyOf"] if set(schema) == {"anyOf"} else [schema]
    return {"anyOf": [*forms, ref("variable")]}


def _variables_inside(schema: dict[str, Any]) -> dict[str, Any]:
    result = {key: value for key, value in schema.items() if key != "title"}
    if isinstance(result.get("items"), dict):
        result["items"] = _or_variable(result["items"])
    for key in ("properties", "patternProperties"):
        if key in result:
            result[key] = {name: _described(inner) for name, inner in result[key].items()}
    if "anyOf" in result:
        result["anyOf"] = [_variables_inside(form) for form in result["anyOf"]]
    return result


def _described(schema: dict[str, Any]) -> dict[str, Any]:
    """`schema` or text with a variable, its description and default kept outside."""
    outer: dict[str, Any] = {key: schema[key] for key in ("description", "default") if key in schema}
    inner = {key: value for key, value in schema.items() if key not in outer}
    return {**outer, **_or_variable(inner)}


def _with_local_references(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {
            key: value.replace(PREFIX, "#/$defs/", 1) if key == "$ref" else _with_local_references(value)
            for key, value in schema.items()
        }
    return [_with_local_references(value) for value in schema] if isinstance(schema, list) else schema
