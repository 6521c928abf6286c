"""The site as `make docs` builds it: no warning, every page in the navigation, no dead link, nothing from outside."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
import yaml
from docs.pages import ROOT, pages
from markdown_it import MarkdownIt

DOCS = ROOT / "docs"
#: Elements that make a browser fetch something at once, and the attribute that says what.
FETCHING = {"script": "src", "img": "src", "link": "href", "iframe": "src"}


@dataclass
class Page(HTMLParser):
    """What a page of the site links to, fetches, and can be linked to at."""

    text: str
    links: list[str] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.anchors |= {value for name, value in attrs if name in ("id", "name") and value}
        if tag == "a" and found.get("href"):
            self.links.append(str(found["href"]))
        if tag in FETCHING and found.get(FETCHING[tag]):
            self.fetched.append(str(found[FETCHING[tag]]))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environ = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return folder


@pytest.fixture(scope="module")
def site(built: Path) -> dict[Path, Page]:
    """Every page by its place."""
    return {path: Page(path.read_text(encoding="utf-8")) for path in built.rglob("*.html") if path.name != "404.html"}


def test_the_navigation_names_every_page_once() -> None:
    navigation = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    named = Counter(places(navigation))
    assert [page for page, times in named.items() if times > 1] == []
    assert set(named) == {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}


def places(navigation: Any) -> Iterator[str]:
    if isinstance(navigation, str):
        yield navigation
    for entry in navigation.values() if isinstance(navigation, dict) else navigation:
        if not isinstance(navigation, str):
            yield from places(entry)


def test_every_link_leads_to_something_in_the_site(site: dict[Path, Page]) -> None:
    dead = []
    for place, page in site.items():
        for link in page.links + page.fetched:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (place.parent / unquote(parts.path)).resolve() if parts.path else place
            if not target.is_file():
                dead.append(f"{place.name}: {link}")
            elif parts.fragment and target in site and unquote(parts.fragment) not in site[target].anchors:
                dead.append(f"{place.name}: {link} (no such place on the page)")
    assert dead == []


def test_every_page_is_reached_from_the_first_one(built: Path, site: dict[Path, Page]) -> None:
    waiting, reached = [built / "index.html"], {built / "index.html"}
    while waiting:
        place = waiting.pop()
        for link in site[place].links:
            parts = urlsplit(link)
            target = (place.parent / unquote(parts.path)).resolve()
            if not parts.scheme and parts.path and target in site and target not in reached:
                reached.add(target)
                waiting.append(target)
    assert sorted(set(site) - reached) == []


def test_nothing_is_fetched_from_elsewhere(built: Path, site: dict[Path, Page]) -> None:
    outside = {link for page in site.values() for link in page.fetched if urlsplit(link).netloc}
    assert outside == set()
    for sheet in built.rglob("*.css"):
        assert "url(http" not in sheet.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", pages())
def test_the_links_of_a_source_lead_somewhere_on_a_code_host_too(page: str) -> None:
    """There nothing is built, and a link is a path beside the file."""
    found = [
        str(child.attrs["href"])
        for token in MarkdownIt("commonmark").enable("table").parse((ROOT / page).read_text(encoding="utf-8"))
        for child in token.children or ()
        if child.type == "link_open"
    ]
    near = [urlsplit(link).path for link in found if not urlsplit(link).scheme]
    assert [link for link in near if link and not ((ROOT / page).parent / unquote(link)).exists()] == []
