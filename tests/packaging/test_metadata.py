"""What the distributions say of themselves: one version, one licence, no dependency but core."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
BACKENDS = ("gdsfw-posix", "gdsfw-cufile", "gdsfw-hipfile")
MEMBERS = ("gdsfw-core", *BACKENDS)


def project(folder: Path) -> dict[str, Any]:
    with (folder / "pyproject.toml").open("rb") as file:
        found: dict[str, Any] = tomllib.load(file)["project"]
    return found


def module_of(member: str) -> str:
    return "gdsfw" if member == "gdsfw-core" else member.replace("-", "_")


def test_every_distribution_has_the_same_version() -> None:
    versions = {member: project(ROOT / member)["version"] for member in MEMBERS}
    versions["gdsfw"] = project(ROOT)["version"]
    assert len(set(versions.values())) == 1, versions
    wanted = project(ROOT)["version"]
    groups = [project(ROOT)["dependencies"], *project(ROOT)["optional-dependencies"].values()]
    ours = [requirement for group in groups for requirement in group if requirement.startswith("gdsfw")]
    assert all(requirement.endswith(f"=={wanted}") for requirement in ours), ours


@pytest.mark.parametrize("member", MEMBERS)
def test_the_module_states_the_version_of_its_distribution(member: str) -> None:
    assert import_module(module_of(member)).__version__ == project(ROOT / member)["version"]


@pytest.mark.parametrize("member", MEMBERS)
def test_a_distribution_is_complete(member: str) -> None:
    folder = ROOT / member
    about = project(folder)
    assert (folder / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert len((folder / "README.md").read_text().splitlines()) > 5
    assert (folder / "src" / module_of(member) / "py.typed").exists()
    assert about["requires-python"] == ">=3.10"
    assert list(about["entry-points"]) == ["gdsfw"]


@pytest.mark.parametrize("member", BACKENDS)
def test_a_backend_depends_on_core_only(member: str) -> None:
    about = project(ROOT / member)
    assert about["dependencies"] == [f"gdsfw-core=={about['version']}"]


def test_core_depends_on_five_libraries() -> None:
    names = {re.split(r"[<>=]", requirement)[0] for requirement in project(ROOT / "gdsfw-core")["dependencies"]}
    assert names == {"pluggy", "typer", "pyyaml", "pydantic", "rich"}
