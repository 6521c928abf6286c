"""JSON Schema of values with more than one spelling, named so that the schema says each of them once."""

from __future__ import annotations

from typing import Any

from gdsfw.workload import units
from gdsfw.workload.values import MAX_CPU, NAME_PATTERN

#: How a model refers to a definition below: pydantic looks up every other reference among its own models.
PREFIX = "https://gdsfw/"


def ref(name: str) -> dict[str, Any]:
    """A reference to the definition called `name`."""
    return {"$ref": f"{PREFIX}{name}"}


def integer(minimum: int, maximum: int = units.MAX_BYTES) -> dict[str, Any]:
    """A whole number in a range."""
    return {"type": "integer", "minimum": minimum, "maximum": maximum}


def _text(pattern: str, *examples: str) -> dict[str, Any]:
    return {"type": "string", "pattern": pattern, "examples": list(examples)}


def _above_0(pattern: str) -> str:
    """`pattern` without texts that say zero in some unit."""
    return "^(?!0(\\.0+)? ?[A-Za-z]*$)" + pattern.removeprefix("^")


def _pair(single: dict[str, Any], **extra: Any) -> dict[str, Any]:
    return _closed({"read": single, "write": single}, **extra)


def _closed(properties: dict[str, Any], **extra: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False, **extra}


def _numbers(maximum: int) -> dict[str, Any]:
    return {"type": "array", "items": integer(0, maximum), "minItems": 1, "uniqueItems": True}


_ONE_SIZE = units.SIZE_PATTERN.strip("^$")
_SIZE = _text(units.SIZE_PATTERN, "4KiB", "1MiB", "10GiB")
_SIZE_ABOVE_0 = _text(_above_0(units.SIZE_PATTERN), "4KiB", "1MiB", "10GiB")
_PERCENT = _text(units.PERCENT_PATTERN, "10%")
_DURATION = _text(units.DURATION_PATTERN, "500ms", "5s", "2m")
_DURATION_ABOVE_0 = _text(_above_0(units.DURATION_PATTERN), "500ms", "5s", "2m")
_RATE = _text(units.SIZE_PATTERN.removesuffix("$") + "(/s)?$", "100MiB", "1GB/s")
_RANGE = _closed({key: ref("size_above_0") for key in ("min", "max", "step")}, required=["min", "max"])
_SPLIT = {
    "type": "object",
    "patternProperties": {units.SIZE_PATTERN: {"anyOf": [integer(1, 1_000_000), _text("^[0-9]+$", "60")]}},
    "additionalProperties": False,
    "minProperties": 1,
}
_BLOCKS_TEXT = _text(
    f"^({_ONE_SIZE} ?- ?{_ONE_SIZE}|{_ONE_SIZE}/[0-9]+(:{_ONE_SIZE}/[0-9]+)*)$", "4KiB-64KiB", "4k/60:64k/40"
)

DEFINITIONS: dict[str, dict[str, Any]] = {
    "name": {"type": "string", "pattern": NAME_PATTERN},
    "size": {"description": "Bytes: a number, 4KiB (1024s) or 4kB (1000s).", "anyOf": [integer(0), _SIZE]},
    "size_above_0": {
        "description": "Bytes: a number, 4KiB (1024s) or 4kB (1000s).",
        "anyOf": [integer(1), _SIZE_ABOVE_0],
    },
    "share": {"description": "Bytes, or percent of the file.", "anyOf": [ref("size"), _PERCENT]},
    "share_above_0": {"description": "Bytes, or percent of the file.", "anyOf": [ref("size_above_0"), _PERCENT]},
    "duration": {"description": "A number with its unit: ns us ms s m h d.", "anyOf": [{"const": 0}, _DURATION]},
    "duration_above_0": {"description": "A number with its unit: ns us ms s m h d.", **_DURATION_ABOVE_0},
    "blocks": {
        "description": "Block sizes of one direction: a size, a range, or sizes with weights.",
        "anyOf": [ref("size_above_0"), _BLOCKS_TEXT, _RANGE, _SPLIT],
    },
    "block_size": {"anyOf": [ref("blocks"), _pair(ref("blocks"), required=["read", "write"])]},
    "byte_rate": {"description": "Bytes per second.", "anyOf": [integer(1), _RATE]},
    "byte_rates": {"anyOf": [ref("byte_rate"), _pair(ref("byte_rate"), minProperties=1)]},
    "iops_rates": {"anyOf": [integer(1), _pair(integer(1), minProperties=1)]},
    "cpus": {
        "anyOf": [
            {"const": "auto"},
            integer(0, MAX_CPU),
            _text("^[0-9]{1,5}(-[0-9]{1,5})?(,[0-9]{1,5}(-[0-9]{1,5})?)*$", "0-3,8"),
            _numbers(MAX_CPU),
        ]
    },
    "devices": {"anyOf": [{"const": "all"}, integer(0, 1023), _numbers(1023)]},
    "percentiles": {
        "anyOf": [
            {"const": "none"},
            {"type": "array", "items": {"type": "number", "exclusiveMinimum": 0, "maximum": 100}, "minItems": 1},
        ]
    },
    "timeline": {"anyOf": [{"const": "none"}, {"type": "null"}, ref("duration_above_0")]},
    "access": {"enum": ["read", "write", "randread", "randwrite", "readwrite", "rw", "randrw"]},
    "direct": {"enum": ["auto", True, False, "true", "false"]},
    "sweep": {"type": "object", "additionalProperties": {"type": "array", "minItems": 1}},
}
