"""`gdsfw clean` deletes gdsfw's own files and nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from gdsfw.backend import Target
from gdsfw.storage.cleaning import clean
from gdsfw.storage.manifest import NAME, Manifest
from gdsfw.storage.safe_open import close_file, open_target


@pytest.fixture
def made(target: Callable[..., Target], tmp_path: Path) -> Path:
    """A file that gdsfw created, beside one of the user's."""
    close_file(open_target(target("made", create=True), "rw"))
    (tmp_path / "mine").write_text("precious")
    return tmp_path / "made"


def test_own_files_go_and_the_rest_stays(made: Path, tmp_path: Path) -> None:
    (row,), distrust = clean(tmp_path)
    assert (row.path, row.kept, distrust) == (str(made), None, None)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_dry_run_deletes_nothing(made: Path, tmp_path: Path) -> None:
    (row,), _ = clean(tmp_path, dry_run=True)
    assert row.kept is None
    assert made.exists()
    assert (tmp_path / NAME).exists()


def test_a_file_in_place_of_ours_stays(made: Path, tmp_path: Path) -> None:
    made.unlink()
    made.write_text("precious")
    (row,), _ = clean(tmp_path)
    assert row.kept == "another file has taken its place, or it has grown"
    assert made.read_text() == "precious"


def test_a_file_with_a_second_name_stays(made: Path, tmp_path: Path) -> None:
    os.link(made, tmp_path / "other")
    (row,), _ = clean(tmp_path)
    assert row.kept == "it has 2 hard links"
    assert made.exists()


def test_a_file_that_gdsfw_only_wrote_into_stays(target: Callable[..., Target], tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    close_file(open_target(target("mine", allow_overwrite=True), "rw"))
    (row,), _ = clean(tmp_path)
    assert row.kept == "gdsfw wrote into it, but did not create it"
    assert (tmp_path / "mine").read_text() == "precious"


def test_a_manifest_that_others_may_write_is_not_acted_on(made: Path, tmp_path: Path) -> None:
    (tmp_path / NAME).chmod(0o666)
    rows, distrust = clean(tmp_path)
    assert rows == []
    assert distrust is not None
    assert "others may write it" in distrust
    assert made.exists()


def test_a_file_that_is_gone_is_forgotten(made: Path, tmp_path: Path) -> None:
    made.unlink()
    (row,), _ = clean(tmp_path)
    assert row.kept == "it is gone already"
    assert Manifest.load(tmp_path).entries == {}
