"""A value of a workload together with where it was written, so that every message can say where."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

Scalar: TypeAlias = "str | int | float | bool | None"


class Where(NamedTuple):
    """A place in a file (counted from 1), or a `--set` by its text when `line` is 0."""

    source: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        """`source:line:column`, or the text of the --set."""
        return f"{self.source}:{self.line}:{self.column}" if self.line else self.source


@dataclass(frozen=True)
class Node:
    """A value and its place.

    Args:
        value: a scalar, a list of nodes or a mapping from key to node.
        where: where the value begins.
        key_where: where its key begins; the same as `where` for an item of a list.
        plain: a scalar without quotes, whose type follows from its text.
        expanded_from: the text with variables that this one came from.
    """

    value: Scalar | list[Node] | dict[str, Node]
    where: Where
    key_where: Where
    plain: bool = False
    expanded_from: str = ""

    @property
    def mapping(self) -> dict[str, Node]:
        """Its entries; none when it is no mapping."""
        return self.value if isinstance(self.value, dict) else {}

    @property
    def items(self) -> list[Node]:
        """Its items; none when it is no list."""
        return self.value if isinstance(self.value, list) else []

    def with_entries(self, entries: dict[str, Node]) -> Node:
        """The same place with other entries."""
        return replace(self, value=entries)

    def data(self) -> Any:
        """The value without places."""
        if isinstance(self.value, dict):
            return {key: node.data() for key, node in self.value.items()}
        if isinstance(self.value, list):
            return [node.data() for node in self.value]
        return self.value

    def find(self, path: tuple[str | int, ...]) -> Node:
        """The node at the end of `path`, or the last one on the way that exists."""
        node = self
        for step in path:
            if isinstance(node.value, dict) and step in node.value:
                node = node.value[str(step)]
            elif isinstance(node.value, list) and isinstance(step, int) and step < len(node.value):
                node = node.value[step]
        return node


def node_of(data: object, where: Where) -> Node:
    """A node from plain data, every part of it at one place."""
    if isinstance(data, dict):
        return Node({str(key): node_of(value, where) for key, value in data.items()}, where, where)
    if isinstance(data, (list, tuple)):
        return Node([node_of(value, where) for value in data], where, where)
    if isinstance(data, (str, int, float, bool)) or data is None:
        return Node(data, where, where)
    raise TypeError(f"{where}: {type(data).__name__} cannot be part of a workload")
