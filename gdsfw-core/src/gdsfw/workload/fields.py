"""The types of a workload's keys: a parser, a JSON Schema of what it accepts, and how it is written back."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, PlainValidator, WithJsonSchema

from gdsfw.workload import units, values
from gdsfw.workload.units import Percent

_SIZE_TEXT: dict[str, Any] = {"type": "string", "pattern": units.SIZE_PATTERN, "examples": ["4KiB", "1MiB", "10GiB"]}
_PERCENT_TEXT: dict[str, Any] = {"type": "string", "pattern": units.PERCENT_PATTERN}
_DURATION_TEXT: dict[str, Any] = {"type": "string", "pattern": units.DURATION_PATTERN, "examples": ["500ms", "5s"]}
_RATE_TEXT: dict[str, Any] = {"type": "string", "pattern": units.SIZE_PATTERN.removesuffix("$") + "(/s)?$"}


def _integer(minimum: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": minimum, "maximum": units.MAX_BYTES}


def _size_schema(minimum: int) -> dict[str, Any]:
    return {"anyOf": [_integer(minimum), _SIZE_TEXT]}


def _as_written(function: Any) -> PlainSerializer:
    """Serialise with `function` for YAML and JSON; Python code keeps the value itself."""
    return PlainSerializer(function, when_used="json")


def _dump_size(value: int | Percent) -> int | str:
    return str(value) if isinstance(value, Percent) else value


def _name_of_boolean(value: object) -> object:
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else value


def _boolean_of_name(value: str) -> object:
    return {"true": True, "false": False}.get(value, value)


def _spell_readwrite(value: object) -> object:
    return "readwrite" if value == "rw" else value


def _verify_switch(value: object) -> object:
    if value is True:
        return {}
    return None if value is False else value


def _sweep_values(value: object) -> object:
    """Lists of at least one value; what the values mean is checked with the keys they are of."""
    if not isinstance(value, dict):
        raise ValueError(f"{units.shown(value)} is no mapping (valid: {{block_size: [4KiB, 1MiB], iodepth: [1, 8]}})")
    mistakes = [
        values.Mistake((key,), f"a sweep needs a list of values for {key!r}, such as [1, 8]")
        for key, items in value.items()
        if not isinstance(items, (list, tuple)) or not items
    ]
    if mistakes:
        raise values.InvalidValueError(mistakes)
    return {key: tuple(items) for key, items in value.items()}


Size = Annotated[int, PlainValidator(units.parse_size), WithJsonSchema(_size_schema(0))]
PositiveSize = Annotated[int, PlainValidator(partial(units.parse_size, minimum=1)), WithJsonSchema(_size_schema(1))]
SizeOrPercent = Annotated[
    int | Percent,
    PlainValidator(lambda value: value if isinstance(value, Percent) else units.parse_size_or_percent(value)),
    WithJsonSchema({"anyOf": [_integer(0), _SIZE_TEXT, _PERCENT_TEXT]}),
    _as_written(_dump_size),
]
PositiveSizeOrPercent = Annotated[
    int | Percent,
    PlainValidator(
        lambda value: value if isinstance(value, Percent) else units.parse_size_or_percent(value, minimum=1)
    ),
    WithJsonSchema({"anyOf": [_integer(1), _SIZE_TEXT, _PERCENT_TEXT]}),
    _as_written(_dump_size),
]
Duration = Annotated[
    int,
    PlainValidator(units.parse_duration),
    WithJsonSchema({"anyOf": [_DURATION_TEXT, {"const": 0}]}),
    _as_written(units.format_duration),
]
PositiveDuration = Annotated[
    int,
    PlainValidator(partial(units.parse_duration, minimum=1)),
    WithJsonSchema(_DURATION_TEXT),
    _as_written(units.format_duration),
]


def _with_pair(single: dict[str, Any]) -> dict[str, Any]:
    pair = {
        "type": "object",
        "properties": {"read": single, "write": single},
        "additionalProperties": False,
        "minProperties": 1,
    }
    return {"anyOf": [*single.get("anyOf", [single]), pair]}


def _block_schema() -> dict[str, Any]:
    size = _size_schema(1)
    edge = {"description": "bytes", **size}
    range_ = {
        "type": "object",
        "properties": {"min": edge, "max": edge, "step": edge},
        "required": ["min", "max"],
        "additionalProperties": False,
    }
    weight = {"anyOf": [_integer(1) | {"maximum": 1_000_000}, {"type": "string", "pattern": "^[0-9]+$"}]}
    split = {
        "type": "object",
        "patternProperties": {units.SIZE_PATTERN: weight},
        "additionalProperties": False,
        "minProperties": 1,
    }
    one_size = units.SIZE_PATTERN.strip("^$")
    text = {"type": "string", "pattern": f"^({one_size} ?- ?{one_size}|{one_size}/[0-9]+(:{one_size}/[0-9]+)*)$"}
    forms = [*size["anyOf"], text, range_, split]
    pair = {
        "type": "object",
        "properties": {"read": {"anyOf": forms}, "write": {"anyOf": forms}},
        "required": ["read", "write"],
        "additionalProperties": False,
    }
    return {"anyOf": [*forms, pair]}


BlockSize = Annotated[
    values.BlockSizeSpec,
    PlainValidator(values.parse_block_size),
    WithJsonSchema(_block_schema()),
    _as_written(values.dump_block_size),
]
ByteRates = Annotated[
    values.Rates,
    PlainValidator(values.parse_byte_rates),
    WithJsonSchema(_with_pair({"anyOf": [_integer(1), _RATE_TEXT]})),
    _as_written(values.dump_rates),
]
IopsRates = Annotated[
    values.Rates,
    PlainValidator(values.parse_iops_rates),
    WithJsonSchema(_with_pair(_integer(1))),
    _as_written(values.dump_rates),
]
Cpus = Annotated[
    tuple[int, ...] | Literal["auto"],
    PlainValidator(values.parse_cpus),
    WithJsonSchema(
        {
            "anyOf": [
                {"const": "auto"},
                {"type": "integer", "minimum": 0, "maximum": values.MAX_CPU},
                {"type": "string", "pattern": "^[0-9]{1,5}(-[0-9]{1,5})?(,[0-9]{1,5}(-[0-9]{1,5})?)*$"},
                {
                    "type": "array",
                    "items": {"type": "integer", "minimum": 0, "maximum": values.MAX_CPU},
                    "minItems": 1,
                    "uniqueItems": True,
                },
            ]
        }
    ),
]
Devices = Annotated[
    tuple[int, ...] | Literal["all"],
    PlainValidator(values.parse_devices),
    WithJsonSchema(
        {
            "anyOf": [
                {"const": "all"},
                {"type": "integer", "minimum": 0, "maximum": 1023},
                {
                    "type": "array",
                    "items": {"type": "integer", "minimum": 0, "maximum": 1023},
                    "minItems": 1,
                    "uniqueItems": True,
                },
            ]
        }
    ),
]
Percentiles = Annotated[
    tuple[float, ...] | Literal["none"],
    PlainValidator(values.parse_percentiles),
    WithJsonSchema(
        {
            "anyOf": [
                {"const": "none"},
                {"type": "array", "items": {"type": "number", "exclusiveMinimum": 0, "maximum": 100}, "minItems": 1},
            ]
        }
    ),
]
Timeline = Annotated[
    int | None,
    PlainValidator(lambda value: None if value in ("none", None) else units.parse_duration(value, minimum=1_000_000)),
    WithJsonSchema({"anyOf": [{"const": "none"}, {"type": "null"}, _DURATION_TEXT]}),
    _as_written(lambda value: "none" if value is None else units.format_duration(value)),
]
Access = Annotated[
    Literal["read", "write", "randread", "randwrite", "readwrite", "randrw"],
    BeforeValidator(_spell_readwrite),
    WithJsonSchema({"enum": ["read", "write", "randread", "randwrite", "readwrite", "rw", "randrw"]}),
]
Direct = Annotated[
    Literal["auto", "true", "false"],
    BeforeValidator(_name_of_boolean),
    WithJsonSchema({"enum": ["auto", True, False, "true", "false"]}),
    _as_written(_boolean_of_name),
]
VerifySwitch = BeforeValidator(_verify_switch)
SweepValues = Annotated[
    dict[str, tuple[Any, ...]],
    PlainValidator(_sweep_values),
    WithJsonSchema({"type": "object", "additionalProperties": {"type": "array", "minItems": 1}}),
]
PercentNumber = Annotated[int, Field(ge=0, le=100)]
Name = Annotated[
    str, PlainValidator(values.parse_name), WithJsonSchema({"type": "string", "pattern": values.NAME_PATTERN})
]
