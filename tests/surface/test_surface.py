"""Nothing that others build on changes unnoticed: the surface against the recorded one, and the changelog."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from surface.promise import broken, unreleased_part
from surface.surface import surface

RECORD = Path(__file__).parent / "recorded.json"
CHANGELOG = Path(__file__).parents[2] / "CHANGELOG.md"


def test_every_change_of_the_surface_is_in_the_changelog_and_within_the_promise() -> None:
    recorded = json.loads(RECORD.read_text(encoding="utf-8"))
    assert broken(recorded, surface(), unreleased_part(CHANGELOG.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    "name",
    [
        "hook gdsfw_io(request)",
        "python gdsfw.run",
        "python gdsfw.backend.BackendInfo.hook_version",
        "c gdsfw_io.read",
        "c gdsfw_psync",
        "symbol gdsfw_psync",
        "command run --backend",
        "workload job.block_size",
        "result DirectionResult.iops",
        "exit code 3",
    ],
)
def test_the_surface_has_each_kind_of_thing(name: str) -> None:
    assert name in surface()


BEFORE = {
    "hook gdsfw_x": "Any, first result",
    "hook gdsfw_x(session)": "Any",
    "python gdsfw.backend.HOOK_VERSION": "1",
    "python gdsfw.backend.Thing": "class()",
    "python gdsfw.backend.Thing.size": "int",
    "c GDSFW_ABI": "1u",
    "c gdsfw_io.read": "6: gdsfw_io_fn read",
    "command run --quick": "bool",
}


def test_what_is_unchanged_needs_no_word() -> None:
    assert broken(BEFORE, dict(BEFORE), "") == []


def test_a_new_option_must_be_named_in_the_changelog() -> None:
    now = {**BEFORE, "command run --slow": "bool"}
    (line,) = broken(BEFORE, now, "- `gdsfw run --quick` is quick, and --slow is slow.")
    assert line == "command run --slow: is new; say so in CHANGELOG.md under Unreleased, with `--slow`"
    assert broken(BEFORE, now, "- `gdsfw run --slow` is slow.") == []


def test_a_word_within_another_does_not_count() -> None:
    now = {**BEFORE, "command run --slow": "bool"}
    assert broken(BEFORE, now, "- `--slow-start`, `-x--slow`") != []


def test_members_of_a_new_thing_need_no_words_of_their_own() -> None:
    now = {**BEFORE, "c struct gdsfw_new": "struct", "c gdsfw_new.member": "0: int member"}
    (line,) = broken(BEFORE, now, "")
    assert line.startswith("c struct gdsfw_new: is new")


def test_an_option_that_went_must_be_named() -> None:
    now = {name: what for name, what in BEFORE.items() if name != "command run --quick"}
    assert broken(BEFORE, now, "")[0].startswith("command run --quick: is gone; say so")
    assert broken(BEFORE, now, "### Removed\n- `--quick`") == []


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("hook gdsfw_x", "int, first result"),
        ("hook gdsfw_x(session)", None),
        ("python gdsfw.backend.Thing.size", "str"),
        ("c gdsfw_io.read", "7: gdsfw_io_fn read"),
    ],
)
def test_a_change_of_an_interface_needs_a_new_number_however_well_told(name: str, what: str | None) -> None:
    now = {**BEFORE, name: what} if what else {key: value for key, value in BEFORE.items() if key != name}
    told = "`gdsfw_x` `size` `read`"
    (line,) = broken(BEFORE, now, told)
    assert "breaks what was built for interface 1" in line
    number = "c GDSFW_ABI" if name.startswith("c ") else "python gdsfw.backend.HOOK_VERSION"
    raised = {**now, number: "2"}
    assert broken(BEFORE, raised, f"{told} `HOOK_VERSION` `GDSFW_ABI`") == []


@pytest.mark.parametrize(
    ("name", "what", "allowed"),
    [
        ("hook gdsfw_x(worker)", "b.Worker", True),
        ("python gdsfw.backend.Thing.more", "int = 0", True),
        ("python gdsfw.backend.Thing.must", "int", False),
        ("python gdsfw.backend.Thing.method", "(self) -> int", True),
        ("c gdsfw_io.more", "16: uint64_t more", True),
    ],
)
def test_what_an_interface_may_gain(name: str, what: str, allowed: bool) -> None:
    told = "`gdsfw_x` `more` `must` `method`"
    assert (broken(BEFORE, {**BEFORE, name: what}, told) == []) is allowed


def test_only_the_unreleased_section_counts() -> None:
    text = "# Changelog\n\n## Unreleased\n\n- `new`\n\n## 0.1.0\n\n- `old`\n"
    assert "`new`" in unreleased_part(text)
    assert "`old`" not in unreleased_part(text)
