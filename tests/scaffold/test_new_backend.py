"""`gdsfw new-backend`: what it refuses, and that a refusal or a failure leaves nothing behind."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from gdsfw.cli.new_backend import LONGEST
from gdsfw.scaffold import render
from helpers.sandbox import bound_by_permissions, files_of_at_most
from helpers.site import Site


def new_backend(*arguments: str, cwd: Path, limit: Callable[[], None] | None = None) -> tuple[int, str]:
    """Exit code and stderr."""
    command = [sys.executable, "-m", "gdsfw", "new-backend", *arguments]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, preexec_fn=limit)
    return done.returncode, done.stderr


def tree(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def files(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("native", [False, True], ids=["python", "native"])
@pytest.mark.parametrize("name", ["a", "my-own-disk2", "x" * LONGEST])
def test_a_good_name_gets_its_distribution_and_the_next_steps(tmp_path: Path, name: str, native: bool) -> None:
    command = [sys.executable, "-m", "gdsfw", "new-backend", name, *(["--native"] if native else [])]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert [path.name for path in tmp_path.iterdir()] == [f"gdsfw-{name}"]
    assert files(tmp_path / f"gdsfw-{name}") == render(name, native)
    assert f"src/gdsfw_{name.replace('-', '_')}/__init__.py" in render(name, native)
    assert f"cd gdsfw-{name} && pip install -e '.[test]'" in done.stdout
    assert done.stderr == ""


def test_the_folder_and_its_files_have_the_modes_that_the_users_umask_gives(tmp_path: Path) -> None:
    """It is made in a scratch folder, which nobody else can enter."""
    assert new_backend("kv", cwd=tmp_path)[0] == 0
    (tmp_path / "mine").mkdir()
    assert (tmp_path / "gdsfw-kv").stat().st_mode == (tmp_path / "mine").stat().st_mode


def test_an_empty_folder_of_the_name_is_filled(tmp_path: Path) -> None:
    (tmp_path / "gdsfw-kv").mkdir()
    assert new_backend("kv", cwd=tmp_path) == (0, "")
    assert files(tmp_path / "gdsfw-kv") == render("kv", native=False)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("", ""),
        ("..", ""),
        ("9p", ""),
        ("é", ""),
        ("x" * (LONGEST + 1), ""),
        ("../kv", "kv"),
        ("kv-", "kv"),
        ("my--disk", "my-disk"),
        ("my_disk", "my-disk"),
        ("My Disk", "my-disk"),
        ("a\nb", "a-b"),
    ],
)
def test_what_is_no_name_is_refused_with_what_is_valid_and_what_may_be_meant(
    tmp_path: Path, name: str, near: str
) -> None:
    code, text = new_backend("--", name, cwd=tmp_path)
    meant = f"did you mean '{near}'? " if near else ""
    assert code == 2
    assert text == (
        f"error: {name!r} is no name for a backend\n  hint: {meant}valid: lower-case letters, digits and single "
        f"hyphens, a letter first, at most {LONGEST} characters: my-disk\n"
    )
    assert tree(tmp_path) == []


@pytest.mark.parametrize("name", ["auto", "core", "noop", "null", "true", "class", "lambda"])
def test_a_name_that_means_something_else_is_refused(tmp_path: Path, name: str) -> None:
    code, text = new_backend(name, cwd=tmp_path)
    assert code == 2
    assert text == (
        f"error: {name!r} has a meaning already and is no name for a backend\n  hint: choose another name\n"
    )
    assert tree(tmp_path) == []


@pytest.mark.parametrize(("name", "rest"), [("gdsfw-kv", "kv"), ("gdsfw", "my-disk")])
def test_the_name_of_a_distribution_is_refused_with_the_name_to_give(tmp_path: Path, name: str, rest: str) -> None:
    code, text = new_backend(name, cwd=tmp_path)
    assert code == 2
    assert text == (
        f"error: {name!r} is the name of a distribution, not of a backend\n"
        f"  hint: `gdsfw new-backend {rest}` writes gdsfw-{rest}\n"
    )
    assert tree(tmp_path) == []


def test_the_name_of_an_installed_plugin_is_refused_with_the_distribution_that_has_it(site: Site) -> None:
    site.distribution("somebodys-storage", "", entry_points={"kv": "somebodys_storage"}, version="2.1")
    before = tree(site.folder)
    text = site.run("new-backend", "kv", code=2).stderr
    assert "somebodys-storage 2.1 is installed and has a plugin 'kv'" in text
    assert "uninstall somebodys-storage" in text
    assert tree(site.folder) == before


def test_a_distribution_that_the_new_one_would_replace_is_named(site: Site) -> None:
    site.distribution("gdsfw-kv", "", entry_points={"key-value": "gdsfw_kv"}, version="2.1")
    before = tree(site.folder)
    text = site.run("new-backend", "kv", code=2).stderr
    assert "gdsfw-kv 2.1 is installed: to install a new gdsfw-kv would replace it" in text
    assert tree(site.folder) == before


@pytest.mark.parametrize("kind", ["folder", "file", "link", "dangling link"])
def test_what_is_there_already_is_left_alone(tmp_path: Path, kind: str) -> None:
    place, mine = tmp_path / "gdsfw-kv", tmp_path / "mine"
    mine.mkdir()
    if kind == "folder":
        place.mkdir()
        (place / "README.md").write_text("the user's")
    elif kind == "file":
        place.write_text("the user's")
    else:
        place.symlink_to(mine if kind == "link" else tmp_path / "nowhere")
    before, contents = tree(tmp_path), files(tmp_path)
    code, text = new_backend("kv", cwd=tmp_path)
    assert code == 2
    assert text == ("error: gdsfw-kv exists already\n  hint: remove it, or choose another name or --directory\n")
    assert (tree(tmp_path), files(tmp_path)) == (before, contents)


@pytest.mark.parametrize("directory", ["nowhere", "file"])
def test_a_directory_that_is_none_is_refused(tmp_path: Path, directory: str) -> None:
    (tmp_path / "file").write_text("")
    code, text = new_backend("kv", "--directory", directory, cwd=tmp_path)
    assert code == 2
    assert text == f"error: {directory} is no folder\n  hint: --directory names a folder that exists\n"
    assert tree(tmp_path) == ["file"]


def test_a_folder_that_may_not_be_written_in_is_told(tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o555)
    code, text = new_backend("kv", "--directory", "locked", cwd=tmp_path, limit=bound_by_permissions)
    assert code == 3
    assert text == (
        "error: locked/gdsfw-kv cannot be written: permission denied\n"
        "  hint: --directory names a folder that you may write in\n"
    )
    assert tree(tmp_path) == ["locked"]


@pytest.mark.parametrize("native", [False, True], ids=["python", "native"])
def test_a_disk_that_fills_up_leaves_nothing_behind(tmp_path: Path, native: bool) -> None:
    """The first files are written, a larger one is not."""
    sizes = sorted(len(text.encode()) for text in render("kv", native).values())
    assert sizes[0] < 1000 < sizes[-1]
    arguments = ["kv", *(["--native"] if native else [])]
    code, text = new_backend(*arguments, cwd=tmp_path, limit=files_of_at_most(1000))
    assert code == 3
    assert re.match(r"error: gdsfw-kv cannot be written: file too large\n  hint: ", text)
    assert tree(tmp_path) == []
