"""A hook of MkDocs: what the pages link to outside docs/ becomes a part of the site.

On a code host a link such as ../../benchmarks/GPU.md works as it is, and nobody reads these pages only there. Here the
target is rendered below repository/: Markdown as a page, any other text as a page that shows it, a folder as a list.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
FOLDER = "repository"
_LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#|/)([^)\s#]+)(#[^)\s]*)?(?=\))")
_FENCE = re.compile(r"^( *)(```+|~~~+).*?^\1\2", re.MULTILINE | re.DOTALL)
_LANGUAGES = {".c": "c", ".h": "c", ".cpp": "cpp", ".py": "python", ".sh": "sh", ".toml": "toml", ".yaml": "yaml"}
_HIDDEN = {"__pycache__", "build", "dist", "gdsfw-data", "gdsfw-results"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each target outside docs/, and for the targets of those pages."""
    waiting = [f"docs/{file.src_uri}" for file in files.documentation_pages()]
    seen: set[str] = set()
    while waiting:
        place = waiting.pop()
        for target in _targets(place, _text(place)):
            if target in seen or not _is_ours(target):
                continue
            seen.add(target)
            files.append(File.generated(config, _source(target), content=_text(target)))
            waiting.append(target)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links that leave docs/ into links to the pages made here."""
    source = page.file.src_uri
    here = f"docs/{source}"
    if source.startswith(f"{FOLDER}/"):
        here = next(target for target in _origins(source) if (ROOT / target).exists())
    elif not (ROOT / here).exists():
        return markdown  # a list of a folder, whose links fit

    def moved(link: re.Match[str]) -> str:
        target = _resolve(here, link[1])
        if not (ROOT / target).exists():
            return link[0]
        return posixpath.relpath(_source(target), posixpath.dirname(source) or ".") + (link[2] or "")

    return "".join(part if code else _LINK.sub(moved, part) for part, code in _parts(markdown))


def _is_ours(target: str) -> bool:
    """Whether this makes the page. MkDocs has those of docs/ but for folders, and complains about what is not there."""
    path = ROOT / target
    return path.is_dir() if target.startswith("docs/") else path.exists()


def _parts(markdown: str) -> Iterator[tuple[str, bool]]:
    """The text in pieces, and whether each is a block of code."""
    end = 0
    for fence in _FENCE.finditer(markdown):
        yield markdown[end : fence.start()], False
        yield fence[0], True
        end = fence.end()
    yield markdown[end:], False


def _targets(place: str, text: str) -> Iterator[str]:
    """Paths in the repository that a Markdown file links to."""
    if place.endswith(".md"):
        for part, code in _parts(text):
            if not code:
                yield from (_resolve(place, link[1]) for link in _LINK.finditer(part))


def _resolve(place: str, link: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(place), link))


def _source(target: str) -> str:
    """Where in the site's sources a path of the repository lies."""
    inside = target.startswith("docs/")
    place = target.removeprefix("docs/") if inside else f"{FOLDER}/{target}"
    if (ROOT / target).is_dir():
        return f"{place}/index.md"
    return place if inside or target.endswith(".md") else f"{place}.md"


def _origins(source: str) -> tuple[str, ...]:
    """What a page made here may have been made from, the likeliest first."""
    target = source.removeprefix(f"{FOLDER}/")
    return target, target.removesuffix("/index.md"), target.removesuffix(".md")


def _text(target: str) -> str:
    """The Markdown that shows a file or folder."""
    path = ROOT / target
    if target.endswith(".md"):
        return path.read_text(encoding="utf-8")
    if path.is_dir():
        names = sorted(
            f"{entry.name}/" if entry.is_dir() else entry.name
            for entry in path.iterdir()
            if not entry.name.startswith(".") and entry.name not in _HIDDEN
        )
        linked = target.startswith("docs/")  # files there are part of the site in any case
        lines = (f"- [{name}]({name})\n" if linked else f"- `{name}`\n" for name in names)
        return f"# {path.name}/\n\n" + "".join(lines)
    text = path.read_text(encoding="utf-8")
    return f"# {path.name}\n\n`{target}`\n\n~~~~~{_LANGUAGES.get(path.suffix, 'text')}\n{text}~~~~~\n"
