"""`${NAME}` and `${NAME:-default}` in the values of a workload, after it was parsed, so that no value can add keys."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from gdsfw.errors import Problem
from gdsfw.workload.scalars import resolve

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gdsfw.workload.node import Node

_REFERENCE = re.compile(r"\$(\$)?\{([^}]*)(\})?")
_INSIDE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.ASCII | re.DOTALL)
VALID = "valid: ${NAME}, ${NAME:-default}, and $${ for a plain ${"


class _BadReferenceError(ValueError):
    """A reference that cannot be expanded."""


def expand(node: Node, environ: Mapping[str, str], problems: list[Problem]) -> Node:
    """`node` with every variable replaced. What cannot be is added to `problems` and left as it is."""
    if isinstance(node.value, dict):
        return node.with_entries({key: expand(child, environ, problems) for key, child in node.value.items()})
    if isinstance(node.value, list):
        return replace(node, value=[expand(child, environ, problems) for child in node.value])
    if not isinstance(node.value, str) or "${" not in node.value:
        return node
    try:
        text = _REFERENCE.sub(lambda match: _replacement(match, environ), node.value)
    except _BadReferenceError as error:
        problems.append(Problem(str(node.where), str(error)))
        return node
    # An empty variable stays empty text: as a null it would quietly mean "the default".
    value = resolve(text) if node.plain and text else text
    return replace(node, value=value, expanded_from=node.value)


def escape(text: str) -> str:
    """`text` written so that expanding it gives `text`."""
    return text.replace("${", "$${")


def _replacement(match: re.Match[str], environ: Mapping[str, str]) -> str:
    escaped, inside, closed = match.groups()
    if escaped:
        return match[0][1:]
    if not closed:
        raise _BadReferenceError(f"`{match[0]}` is not closed ({VALID})")
    parsed = _INSIDE.fullmatch(inside)
    if parsed is None:
        raise _BadReferenceError(f"`{match[0]}` names no variable ({VALID})")
    name, default = parsed.groups()
    value = environ.get(name)
    if default is not None:
        return value or default
    if value is None:
        raise _BadReferenceError(f"variable {name} is not set (set it, or write ${{{name}:-default}})")
    return value
