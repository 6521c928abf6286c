"""The blocks of code in the documentation, and the markers before them.

A marker is an HTML comment on the line before a block:

    <!-- not run: REASON -->        it cannot be run here
    <!-- file: PATH -->             it is that file's text
    <!-- append: PATH -->           it is what comes behind the text of that file, after two empty lines
    <!-- output of: COMMAND -->     it is what the command prints
    <!-- exit code: N -->           the commands end with N, not with 0
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
MARKERS = ("not run", "file", "append", "output of", "exit code")
_COMMENT = re.compile(r"<!--\s*(.*?)\s*-->\s*\Z", re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A block of code.

    Args:
        line: number of its first line of code.
        language: as the fence says, or empty; `indented` for a block without a fence.
        marker, said: the word and the text of the marker before it, or empty.
    """

    page: str
    line: int
    language: str
    text: str
    marker: str = ""
    said: str = ""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[str]:
    """The Markdown files that the tests read, as paths in the repository."""
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    found += sorted((ROOT / "docs").rglob("*.md"))
    found += sorted((ROOT / "examples").rglob("README.md"))
    return [str(path.relative_to(ROOT)) for path in found]


def blocks(page: str) -> list[Block]:
    """Those of one page, in order."""
    return list(_blocks(page, (ROOT / page).read_text(encoding="utf-8")))


def _blocks(page: str, text: str) -> Iterator[Block]:
    before: Token | None = None
    for token in MarkdownIt("commonmark").parse(text):
        if token.type in ("fence", "code_block"):
            assert token.map is not None
            fenced = token.type == "fence"
            language = token.info.strip().partition(" ")[0] if fenced else "indented"
            marker, said = _marker(before, f"{page}:{token.map[0] + 1}")
            yield Block(page, token.map[0] + 1 + fenced, language, token.content, marker, said)
        before = token


def _marker(before: Token | None, place: str) -> tuple[str, str]:
    comment = _COMMENT.search(before.content) if before is not None and before.type == "html_block" else None
    if comment is None:
        return "", ""
    word, colon, said = comment[1].partition(":")
    if word not in MARKERS or not colon or not said.strip():
        raise ValueError(
            f"{place}: {comment[0].strip()} is no marker: one of {', '.join(MARKERS)}, a colon, and what it says"
        )
    return word, said.strip()
