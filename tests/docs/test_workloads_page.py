"""docs/guide/workloads.md has every key of the JSON Schema, with the schema's own description."""

from __future__ import annotations

import re
from typing import Any

import pytest
from docs.pages import ROOT
from gdsfw.workload.names import ALIASES
from gdsfw.workload.schema import workload_schema

TEXT = (ROOT / "docs" / "guide" / "workloads.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `(\w+)` \| (.*?) \| (.*?) \| (.*) \|$", TEXT, re.MULTILINE)
DEFINITIONS: dict[str, Any] = workload_schema()["$defs"]


def described(definition: str) -> list[tuple[str, str]]:
    """Keys of an object of the schema, other spellings aside, with what it says of each."""
    keys = DEFINITIONS[definition]["properties"]
    return [(key, found["description"]) for key, found in keys.items() if key not in ALIASES]


@pytest.mark.parametrize("definition", ["job", "Random", "Verify"])
def test_every_key_has_a_row_with_the_description_of_the_schema(definition: str) -> None:
    rows = {(key, meaning.replace("\\|", "|")) for key, _, _, meaning in ROWS}
    assert [pair for pair in described(definition) if pair not in rows] == []


def test_no_row_is_about_a_key_that_does_not_exist() -> None:
    known = {key for definition in ("job", "Random", "Verify") for key, _ in described(definition)}
    assert [key for key, *_ in ROWS if key not in known] == []


def test_every_other_spelling_is_on_the_page() -> None:
    shown = set(re.findall(r"^\| `(\w+)` \| `(\w+)` \|$", TEXT, re.MULTILINE))
    assert shown == set(ALIASES.items())


def test_the_top_of_a_workload_is_on_the_page() -> None:
    assert [key for key in workload_schema()["properties"] if f"{key}:" not in TEXT] == []
