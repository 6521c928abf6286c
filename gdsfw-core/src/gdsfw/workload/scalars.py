"""Which type an unquoted scalar has: YAML 1.2's core rules, which know neither `on` nor `1:30` nor octal `0100`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gdsfw.workload.units import shown

if TYPE_CHECKING:
    from gdsfw.workload.node import Scalar

_NULLS = {"", "~", "null", "Null", "NULL"}
_BOOLEANS = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
# 0100 stays text, though core would read 100: what the reader of the file means by it is not known.
_DECIMAL = re.compile(r"[-+]?(?:0|[1-9][0-9]*)", re.ASCII)
_OTHER_BASE = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+", re.ASCII)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_SPECIAL_FLOAT = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", re.ASCII)
#: No number of a workload is longer; reading a longer one takes time that grows with its square.
MAX_NUMBER_LENGTH = 40


def resolve(text: str) -> Scalar:
    """The value of an unquoted scalar."""
    if text in _NULLS:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if len(text) > MAX_NUMBER_LENGTH:
        return text
    if _DECIMAL.fullmatch(text):
        return int(text)
    if _OTHER_BASE.fullmatch(text):
        return int(text, 0)
    if _FLOAT.fullmatch(text):
        return float(text)
    if _SPECIAL_FLOAT.fullmatch(text):
        return float(text.replace(".", "", 1))
    return text


def resolve_tagged(text: str, tag: str) -> Scalar:
    """The value of a scalar with an explicit tag such as `!!str`.

    Raises:
        ValueError: the tag is not one of YAML's own, or the text does not fit it.
    """
    name = tag.removeprefix("tag:yaml.org,2002:")
    if name == tag and tag != "!":
        raise ValueError(f"the tag {shown(tag)} is not known here (valid: !!str, !!int, !!float, !!bool, !!null)")
    if name in ("str", "!"):
        return text
    value = resolve(text)
    kinds: dict[str, tuple[type, ...]] = {
        "int": (int,),
        "float": (float, int),
        "bool": (bool,),
        "null": (type(None),),
    }
    if name not in kinds:
        raise ValueError(f"the tag !!{name} is not known here (valid: !!str, !!int, !!float, !!bool, !!null)")
    fits = isinstance(value, kinds[name]) and (name == "bool" or not isinstance(value, bool))
    if not fits:
        raise ValueError(f"{shown(text)} does not fit its tag !!{name}")
    return float(value) if name == "float" and isinstance(value, int) else value
