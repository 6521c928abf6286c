"""From what pydantic says about a value to what a user reads: where, what is wrong, what is valid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import BaseModel

from gdsfw.errors import Problem
from gdsfw.workload.names import did_you_mean, unknown_key_hint
from gdsfw.workload.units import shown
from gdsfw.workload.values import InvalidValueError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

    from gdsfw.workload.node import Node

_SWITCH_WORDS = {"on", "off", "yes", "no", "y", "n", "0", "1", "true", "false"}


class Explained(NamedTuple):
    """One mistake: the keys that lead to it, what is wrong, how to fix it, and whether it is about the key itself."""

    path: tuple[str | int, ...]
    message: str
    hint: str | None
    about_key: bool = False

    @property
    def text(self) -> str:
        """The message with the dotted name of what it is about."""
        name = dotted(self.path[:-1] if self.about_key else self.path)
        return f"{name}: {self.message}" if name else self.message


def problems_of(error: ValidationError, node: Node, model: type[BaseModel]) -> list[Problem]:
    """One problem for each mistake that `error` found in `node`.

    Args:
        node: what was validated, with places.
        model: what it was validated as, for the names of valid keys.
    """
    return [_placed(explained, node) for explained in explain(error, model)]


def explain(error: ValidationError, model: type[BaseModel]) -> list[Explained]:
    """One explanation for each mistake."""
    found: list[Explained] = []
    for detail in error.errors(include_url=False):
        cause = detail.get("ctx", {}).get("error")
        if isinstance(cause, InvalidValueError):
            found += [Explained((*detail["loc"], *path), message, None) for path, message in cause.mistakes]
        else:
            message, hint = _explain(detail, model)
            found.append(Explained(detail["loc"], message, hint, detail["type"] == "extra_forbidden"))
    return found


def _placed(explained: Explained, node: Node) -> Problem:
    place = node.find(explained.path)
    if place.expanded_from and not explained.about_key:
        message = f"{explained.message} (`{place.expanded_from}` is {shown(place.value)})"
        explained = explained._replace(message=message)
    where = place.key_where if explained.about_key else place.where
    return Problem(str(where), explained.text, explained.hint)


def dotted(path: tuple[str | int, ...]) -> str:
    """The path as people write it: `random.theta`, `cpus[0]`."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def _explain(detail: ErrorDetails, model: type[BaseModel]) -> tuple[str, str | None]:
    """The message and the hint for one of pydantic's errors."""
    kind, value, context = detail["type"], detail["input"], detail.get("ctx", {})
    if kind == "extra_forbidden":
        key = str(detail["loc"][-1])
        return f"unknown key {key!r}", unknown_key_hint(key, _keys_at(model, detail["loc"][:-1]))
    if kind == "missing":
        return f"{detail['loc'][-1]!r} is missing", None
    if value is None:
        return "has no value", "give one or leave the key out"
    if kind == "value_error":
        return str(context["error"]), None
    if kind == "literal_error":
        return _not_one_of(value, _choices(context))
    if kind in _WANTED:
        return _wrong_type(kind, value)
    if kind in _LIMITS:
        return f"{shown(value)} is outside its range", f"valid: {_LIMITS[kind].format(**context)}"
    if kind == "string_too_short":
        return "is empty text", "give it a value or leave the key out"
    if kind == "too_short":
        return f"has {context['actual_length']} entries", f"valid: at least {context['min_length']}"
    return f"{shown(value)}: {detail['msg'].lower()}", None


_WANTED = {
    "bool_type": ("no truth value", "valid: true, false"),
    "int_type": ("no whole number", None),
    "float_type": ("no number", None),
    "string_type": ("no text", None),
    "dict_type": ("no mapping", "valid: {key: value}"),
    "model_type": ("no mapping", "valid: {key: value}"),
    "list_type": ("no list", "valid: [a, b]"),
}
_LIMITS = {
    "greater_than_equal": "at least {ge}",
    "greater_than": "more than {gt}",
    "less_than_equal": "at most {le}",
    "less_than": "less than {lt}",
}


def _wrong_type(kind: str, value: object) -> tuple[str, str | None]:
    what, hint = _WANTED[kind]
    if kind == "string_type" and isinstance(value, (bool, int, float)):
        hint = f'quote it: "{shown(value)}"'
    elif kind in ("int_type", "float_type") and isinstance(value, str):
        hint = _number_hint(value)
    elif kind == "bool_type" and isinstance(value, str) and value.lower() in _SWITCH_WORDS:
        hint = "valid: true, false, without quotes"
    return f"{shown(value)} is {what}", hint


def _number_hint(text: str) -> str | None:
    digits = text.strip().lstrip("+-")
    if digits.isascii() and digits.isdigit():
        return "write it without a leading zero" if digits.startswith("0") and len(digits) > 1 else "remove the quotes"
    return None


def _choices(context: Mapping[str, Any]) -> list[str]:
    """The words of a Literal, which pydantic gives as one text: `'a', 'b' or 'c'`."""
    return [part.strip("' ") for part in str(context["expected"]).replace(" or ", ",").split(",")]


def _not_one_of(value: object, choices: list[str]) -> tuple[str, str]:
    near = did_you_mean(value, choices) if isinstance(value, str) else None
    valid = f"valid: {', '.join(choices)}"
    return f"{shown(value)} is not known", f"{near} {valid}" if near else valid


def _keys_at(model: type[BaseModel], path: tuple[str | int, ...]) -> list[str]:
    """Keys that are valid at `path` below `model`."""
    for step in path:
        field = model.model_fields.get(str(step))
        if field is None:
            break
        inner = _model_in(field.annotation)
        if inner is None:
            break
        model = inner
    return list(model.model_fields)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model class inside an annotation such as `Verify | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    inside = (_model_in(part) for part in getattr(annotation, "__args__", ()))
    return next((model for model in inside if model is not None), None)
