"""The types of a workload's keys: a parser, a JSON Schema of what it accepts, and how it is written back."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, PlainValidator, WithJsonSchema

from gdsfw.workload import units, values
from gdsfw.workload.json_types import ref
from gdsfw.workload.units import Percent


def _schema(name: str) -> WithJsonSchema:
    """The definition called `name` in json_types.py."""
    return WithJsonSchema(ref(name))


def _as_written(function: Any) -> PlainSerializer:
    """Serialise with `function` for YAML and JSON; Python code keeps the value itself."""
    return PlainSerializer(function, when_used="json")


def _dump_size(value: int | Percent) -> int | str:
    return str(value) if isinstance(value, Percent) else value


def _word_or_list(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


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
    return {key: list(items) for key, items in value.items()}


Size = Annotated[int, PlainValidator(units.parse_size), _schema("size")]
PositiveSize = Annotated[int, PlainValidator(partial(units.parse_size, minimum=1)), _schema("size_above_0")]
SizeOrPercent = Annotated[
    int | Percent,
    PlainValidator(lambda value: value if isinstance(value, Percent) else units.parse_size_or_percent(value)),
    _schema("share"),
    _as_written(_dump_size),
]
PositiveSizeOrPercent = Annotated[
    int | Percent,
    PlainValidator(
        lambda value: value if isinstance(value, Percent) else units.parse_size_or_percent(value, minimum=1)
    ),
    _schema("share_above_0"),
    _as_written(_dump_size),
]
Duration = Annotated[int, PlainValidator(units.parse_duration), _schema("duration"), _as_written(units.format_duration)]
PositiveDuration = Annotated[
    int,
    PlainValidator(partial(units.parse_duration, minimum=1)),
    _schema("duration_above_0"),
    _as_written(units.format_duration),
]
BlockSize = Annotated[
    values.BlockSizeSpec,
    PlainValidator(values.parse_block_size),
    _schema("block_size"),
    _as_written(values.dump_block_size),
]
ByteRates = Annotated[
    values.Rates, PlainValidator(values.parse_byte_rates), _schema("byte_rates"), _as_written(values.dump_rates)
]
IopsRates = Annotated[
    values.Rates, PlainValidator(values.parse_iops_rates), _schema("iops_rates"), _as_written(values.dump_rates)
]
Cpus = Annotated[
    tuple[int, ...] | Literal["auto"], PlainValidator(values.parse_cpus), _schema("cpus"), _as_written(_word_or_list)
]
Devices = Annotated[
    tuple[int, ...] | Literal["all"],
    PlainValidator(values.parse_devices),
    _schema("devices"),
    _as_written(_word_or_list),
]
Percentiles = Annotated[
    tuple[float, ...] | Literal["none"],
    PlainValidator(values.parse_percentiles),
    _schema("percentiles"),
    _as_written(_word_or_list),
]
Timeline = Annotated[
    int | None,
    PlainValidator(lambda value: None if value in ("none", None) else units.parse_duration(value, minimum=1_000_000)),
    _schema("timeline"),
    _as_written(lambda value: "none" if value is None else units.format_duration(value)),
]
Access = Annotated[
    Literal["read", "write", "randread", "randwrite", "readwrite", "randrw"],
    BeforeValidator(_spell_readwrite),
    _schema("access"),
]
Direct = Annotated[
    Literal["auto", "true", "false"],
    BeforeValidator(_name_of_boolean),
    _schema("direct"),
    _as_written(_boolean_of_name),
]
VerifySwitch = BeforeValidator(_verify_switch)
SweepValues = Annotated[dict[str, list[Any]], PlainValidator(_sweep_values), _schema("sweep")]
PercentNumber = Annotated[int, Field(ge=0, le=100)]
Name = Annotated[str, PlainValidator(values.parse_name), _schema("name")]
