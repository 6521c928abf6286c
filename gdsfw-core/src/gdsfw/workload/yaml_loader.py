"""From the bytes of a file to nodes with places: YAML 1.2's core rules on PyYAML's safe parser, with limits.

The tree is built from the parser's events without recursion, so that neither depth nor aliases can exhaust anything.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

import yaml

from gdsfw.errors import Problem, WorkloadError
from gdsfw.workload.node import Node, Where
from gdsfw.workload.scalars import resolve, resolve_tagged
from gdsfw.workload.units import shown

MAX_FILE_BYTES = 256 * 1024
MAX_SCALAR_CHARS = 8 * 1024
MAX_DEPTH = 24
#: Values in a file with its aliases written out.
MAX_NODES = 50_000

# What YAML calls printable, without the byte order mark, which is taken off the beginning only.
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
# Possible in a file only as escapes.
_UNUSABLE = re.compile("[\0\ud800-\udfff]")


def read_text(path: str | Path) -> str:
    """The text of a workload file; "-" is standard input.

    Raises:
        WorkloadError: it cannot be read, is too large, or is no UTF-8 text.
    """
    name = str(path)
    try:
        if name == "-":
            content = sys.stdin.buffer.read(MAX_FILE_BYTES + 1)
        else:
            with Path(path).open("rb") as file:
                content = file.read(MAX_FILE_BYTES + 1)
    except IsADirectoryError:
        raise _error(Where(name), "is a directory, not a workload file") from None
    except (OSError, ValueError) as error:
        reason = (error.strerror or str(error)).lower() if isinstance(error, OSError) else str(error)
        raise _error(Where(name), f"cannot be read: {reason}") from None
    if len(content) > MAX_FILE_BYTES:
        raise _error(Where(name), f"is larger than {MAX_FILE_BYTES // 1024} KiB, which no workload file is")
    return _decode(content, name)


def _decode(content: bytes, name: str) -> str:
    try:
        text = content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8")
        hint = (
            "it looks like UTF-16; save it as UTF-8"
            if content[:2] in (b"\xff\xfe", b"\xfe\xff")
            else "save it as UTF-8"
        )
        raise _error(_place(before, name), f"byte 0x{content[error.start]:02x} is no UTF-8 text", hint) from None
    found = _UNPRINTABLE.search(text)
    if found:
        what = "a NUL byte" if found[0] == "\0" else f"the character U+{ord(found[0]):04X}, which YAML does not allow"
        raise _error(_place(text[: found.start()], name), f"contains {what}")
    return text


def _place(before: str, name: str) -> Where:
    """The place that follows `before`."""
    return Where(name, before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)


def _error(where: Where, message: str, hint: str | None = None) -> WorkloadError:
    return WorkloadError([Problem(str(where), message, hint)])


def parse(text: str, name: str) -> tuple[Node, list[Problem]]:
    """The one document in `text` as nodes, and the repeated keys found on the way.

    Raises:
        WorkloadError: the text is no YAML, holds no or several documents, or exceeds a limit.
    """
    builder = _Builder(name)
    try:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(error, text, name) from None
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a %YAML directive with a number of thousands of digits
        raise _error(Where(name), shown(str(error))) from None
    if builder.root is None:
        raise _error(Where(name), "is empty; `gdsfw init` writes a workload to start from")
    return builder.root, builder.problems


@dataclass
class _Frame:
    """A list or mapping that is not closed yet."""

    where: Where
    entries: dict[str, Node] | list[Node]
    key_where: Where | None
    anchor: str | None
    nodes_before: int
    pending: tuple[str, Where] | None = None
    skip: bool = field(default=False)


class _Builder:
    """Turns parser events into nodes: `take` each event, then read `root` and `problems`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.root: Node | None = None
        self.problems: list[Problem] = []
        self._stack: list[_Frame] = []
        self._anchors: dict[str, tuple[Node, int] | None] = {}
        self._nodes = 0
        self._documents = 0

    def take(self, event: yaml.Event) -> None:
        mark = event.start_mark
        where = Where(self.name, mark.line + 1, mark.column + 1) if mark else Where(self.name)
        if isinstance(event, yaml.ScalarEvent):
            self._scalar(event, where)
        elif isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            self._open(event, where)
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            self._close()
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event, where)
        elif isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise _error(where, "a second document begins here; a workload file holds one")

    def _count(self, nodes: int, where: Where) -> None:
        self._nodes += nodes
        if self._nodes > MAX_NODES:
            raise _error(where, f"more than {MAX_NODES} values with all aliases written out")

    def _scalar(self, event: yaml.ScalarEvent, where: Where) -> None:
        self._count(1, where)
        if len(event.value) > MAX_SCALAR_CHARS:
            raise _error(where, f"a value of {len(event.value)} characters; the most is {MAX_SCALAR_CHARS}")
        if _UNUSABLE.search(event.value):
            raise _error(where, "a value with a NUL or half a surrogate pair, which no name can have")
        frame = self._stack[-1] if self._stack else None
        if frame is not None and isinstance(frame.entries, dict) and frame.pending is None:
            self._key(frame, event, where)
            return
        plain = event.implicit[0] and event.tag is None
        try:
            value = (
                resolve_tagged(event.value, event.tag) if event.tag else resolve(event.value) if plain else event.value
            )
        except ValueError as error:
            raise _error(where, str(error)) from None
        self._add(Node(value, where, where, plain=plain), event.anchor, 1)

    def _key(self, frame: _Frame, event: yaml.ScalarEvent, where: Where) -> None:
        if event.anchor:
            raise _error(where, "an anchor on a key is not supported")
        if event.value == "<<" and event.implicit[0]:
            raise _error(where, "merge keys (<<) are no part of YAML 1.2", "put what jobs share under `defaults`")
        if event.value == "" and event.implicit[0]:
            raise _error(where, "a key is missing before the colon")
        frame.pending = (event.value, where)
        first = frame.entries[event.value] if isinstance(frame.entries, dict) and event.value in frame.entries else None
        frame.skip = first is not None
        if first is not None:
            message = f"key {event.value!r} is given twice: here and on line {first.key_where.line}"
            self.problems.append(Problem(str(where), message))

    def _open(self, event: yaml.MappingStartEvent | yaml.SequenceStartEvent, where: Where) -> None:
        self._count(1, where)
        if len(self._stack) >= MAX_DEPTH:
            raise _error(where, f"lists and mappings nested more than {MAX_DEPTH} deep")
        if event.tag not in (None, "!", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"):
            raise _error(where, f"the tag {shown(event.tag)} is not known here")
        parent = self._stack[-1] if self._stack else None
        if parent is not None and isinstance(parent.entries, dict) and parent.pending is None:
            raise _error(
                where,
                "a list or mapping cannot be a key",
                "if this is a variable, quote it" if isinstance(event, yaml.MappingStartEvent) else None,
            )
        entries: dict[str, Node] | list[Node] = {} if isinstance(event, yaml.MappingStartEvent) else []
        if event.anchor:
            self._anchors[event.anchor] = None
        self._stack.append(_Frame(where, entries, None, event.anchor, self._nodes))

    def _close(self) -> None:
        frame = self._stack.pop()
        self._add(Node(frame.entries, frame.where, frame.where), frame.anchor, self._nodes - frame.nodes_before + 1)

    def _alias(self, event: yaml.AliasEvent, where: Where) -> None:
        frame = self._stack[-1] if self._stack else None
        if frame is not None and isinstance(frame.entries, dict) and frame.pending is None:
            raise _error(where, "an alias cannot be a key")
        if event.anchor not in self._anchors:
            raise _error(where, f"alias *{event.anchor} has no anchor &{event.anchor} before it")
        target = self._anchors[event.anchor]
        if target is None:
            raise _error(where, f"alias *{event.anchor} stands inside what it names")
        node, size = target
        self._count(size, where)
        self._add(replace(node, where=where, key_where=where), None, size)

    def _add(self, node: Node, anchor: str | None, size: int) -> None:
        if anchor:
            self._anchors[anchor] = (node, size)
        if not self._stack:
            self.root = node
            return
        frame = self._stack[-1]
        if isinstance(frame.entries, list):
            frame.entries.append(node)
            return
        assert frame.pending is not None
        key, key_where = frame.pending
        if not frame.skip:
            frame.entries[key] = replace(node, key_where=key_where)
        frame.pending = None


def _syntax_error(error: yaml.MarkedYAMLError, text: str, name: str) -> WorkloadError:
    mark = error.problem_mark or error.context_mark
    where = Where(name, mark.line + 1, mark.column + 1) if mark else Where(name)
    problem = str(error.problem or error.context or "is no YAML")
    if mark is not None and text[max(0, mark.index - 1) : mark.index + 1] == "${":
        line = text.splitlines()[mark.line]
        variable = re.search(r"\$\{[^}\n]*\}?", line[mark.column - 1 :])
        quoted = f'"{variable[0] if variable else "${NAME}"}"'
        return _error(where, "`${` inside [...] or {...} begins a mapping in YAML", f"quote it: {quoted}")
    if "'\\t'" in problem:
        return _error(where, "a tab where YAML wants spaces")
    if problem == "mapping values are not allowed here":
        return _error(where, "a second `: ` on one line", "quote a value that contains it, or check the indentation")
    context = f" {error.context}" if error.context and error.problem else ""
    return _error(where, f"{problem}{context}", _HINTS.get(problem))


_HINTS = {
    "could not find expected ':'": "a key is followed by a colon and a space",
    "expected <block end>, but found '<block mapping start>'": "this line is indented further than its neighbours",
    "expected <block end>, but found '-'": "keys and list items at one level cannot be mixed",
    "found unexpected end of stream": "a quote is not closed",
}
