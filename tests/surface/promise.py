"""The promise of docs/explanation/compatibility.md, as far as a program can hold somebody to it."""

from __future__ import annotations

import re
from collections.abc import Mapping

#: Things of an interface, by the first words of their names, and the name that holds its number.
INTERFACES = {
    "hook ": "python gdsfw.backend.HOOK_VERSION",
    "python gdsfw.backend.": "python gdsfw.backend.HOOK_VERSION",
    "c ": "c GDSFW_ABI",
}


def broken(recorded: Mapping[str, str], now: Mapping[str, str], unreleased: str) -> list[str]:
    """What keeps `now` from being published, a line for each.

    Args:
        recorded: the surface when a version was last published.
        unreleased: the changelog's section about what has changed since.
    """
    return [*_untold(recorded, now, unreleased), *_against_the_number(recorded, now)]


def unreleased_part(changelog: str) -> str:
    """The section `## Unreleased`."""
    match = re.search(r"^## Unreleased$(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    assert match is not None, "CHANGELOG.md has no section Unreleased"
    return match[1]


def _changed(recorded: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    return sorted(name for name in recorded.keys() | now.keys() if recorded.get(name) != now.get(name))


def word(name: str) -> str:
    """What a changelog must say, between backticks, to have told of a thing."""
    if argument := re.fullmatch(r"hook (\w+)\(\w+\)", name):
        return argument[1]
    return re.split(r"[ .]", name)[-1]


def _untold(recorded: Mapping[str, str], now: Mapping[str, str], unreleased: str) -> list[str]:
    told = " ".join(re.findall(r"`([^`]+)`", unreleased))
    return [
        f"{name}: {_how(recorded.get(name), now.get(name))}; "
        f"say so in CHANGELOG.md under Unreleased, with `{word(name)}`"
        for name in _changed(recorded, now)
        if name in recorded or not _within_something_new(name, recorded, now)
        if not re.search(rf"(?<![\w-]){re.escape(word(name))}(?![\w-])", told)
    ]


def _within_something_new(name: str, recorded: Mapping[str, str], now: Mapping[str, str]) -> bool:
    """Whether this is a member of a thing that is new itself, and told of as such."""
    owner = name.rpartition(".")[0]
    owners = (owner, re.sub("^c ", "c struct ", owner), re.sub("^c ", "c enum ", owner))
    return any(one in now and one not in recorded for one in owners)


def _against_the_number(recorded: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    found = []
    for name in _changed(recorded, now):
        number = next((number for start, number in INTERFACES.items() if name.startswith(start)), None)
        if number is None or name == number or recorded.get(number) != now.get(number):
            continue
        if name in recorded or _must_be_given(name, recorded, now):
            found.append(
                f"{name}: {_how(recorded.get(name), now.get(name))}, which breaks what was built for interface "
                f"{now[number]}; keep it, or raise {word(number)}"
            )
    return found


def _must_be_given(name: str, recorded: Mapping[str, str], now: Mapping[str, str]) -> bool:
    """Whether a new thing is a field without a default of a class that backends make already."""
    owner = name.rpartition(".")[0]
    is_field = not now[name].startswith("(") and now[name] not in ("property", "classmethod", "staticmethod")
    return owner in recorded and recorded[owner].startswith("class(") and is_field and " = " not in now[name]


def _how(before: str | None, after: str | None) -> str:
    if before is None:
        return "is new"
    return "is gone" if after is None else f"was {before!r}, is {after!r}"
