"""The manifest: what is believed of it, what survives, and two processes at once."""

from __future__ import annotations

import json
import multiprocessing
import os
from pathlib import Path

import pytest
from gdsfw.storage.identity import identify
from gdsfw.storage.manifest import NAME, Entry, Manifest, merge_ranges, subtract_ranges


def _entry(path: Path, **changes: object) -> Entry:
    found = identify(path)
    facts = {
        "name": path.name,
        "device": found.status.st_dev,
        "inode": found.status.st_ino,
        "size": found.status.st_size,
        "job": "test",
        "file_id": 3,
        "created": True,
        "born": found.born,
    }
    return Entry(**{**facts, **changes})  # type: ignore[arg-type]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A file that the tests record as gdsfw's own."""
    path = tmp_path / "data"
    path.write_bytes(b"x" * 5000)
    return path


def test_an_entry_comes_back_as_it_was_recorded(data: Path, tmp_path: Path) -> None:
    entry = _entry(data, complete=True, pattern_seed=2**64 - 1, written=((0, 4096),), unknown=((4096, 904),))
    Manifest.load(tmp_path).record(entry)
    manifest = Manifest.load(tmp_path)
    assert manifest.distrust is None
    assert manifest.entry("data") == entry
    assert manifest.owns("data", identify(data))


def test_only_the_user_may_read_and_write_it_and_nothing_else_is_left_over(data: Path, tmp_path: Path) -> None:
    Manifest.load(tmp_path).record(_entry(data))
    assert (tmp_path / NAME).stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.glob(f"{NAME}.*")) == []


def test_an_update_changes_the_named_fields_only(data: Path, tmp_path: Path) -> None:
    Manifest.load(tmp_path).record(_entry(data, pattern_seed=9))
    Manifest.load(tmp_path).update("data", written=((0, 10),))
    entry = Manifest.load(tmp_path).entry("data")
    assert entry == _entry(data, pattern_seed=9, written=((0, 10),))


def test_an_update_of_an_unknown_name_adds_nothing(data: Path, tmp_path: Path) -> None:
    Manifest.load(tmp_path).record(_entry(data))
    Manifest.load(tmp_path).update("other", complete=True)
    assert list(Manifest.load(tmp_path).entries) == ["data"]


def test_the_last_entry_takes_the_manifest_with_it(data: Path, tmp_path: Path) -> None:
    Manifest.load(tmp_path).record(_entry(data))
    Manifest.load(tmp_path).forget("data")
    assert not (tmp_path / NAME).exists()


def test_a_file_that_gdsfw_only_wrote_into_is_not_its_own(data: Path, tmp_path: Path) -> None:
    Manifest.load(tmp_path).record(_entry(data, created=False))
    assert not Manifest.load(tmp_path).owns("data", identify(data))


@pytest.mark.parametrize("changes", [{"device": 1}, {"inode": 1}, {"born": 1}, {"size": 4999}])
def test_a_file_with_another_identity_is_not_its_own(data: Path, tmp_path: Path, changes: dict[str, int]) -> None:
    Manifest.load(tmp_path).record(_entry(data, **changes))
    assert not Manifest.load(tmp_path).owns("data", identify(data))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "{}",
        '{"version": 99, "files": []}',
        '{"version": 1, "files": [{"name": "data"}]}',
        '{"version": 1, "files": 5}',
    ],
)
def test_a_damaged_manifest_is_empty_says_so_and_stays(data: Path, tmp_path: Path, text: str) -> None:
    (tmp_path / NAME).write_text(text)
    (tmp_path / NAME).chmod(0o600)
    manifest = Manifest.load(tmp_path)
    assert manifest.entries == {}
    assert manifest.distrust is not None
    assert str(tmp_path / NAME) in manifest.distrust
    manifest.record(_entry(data))
    assert (tmp_path / NAME).read_text() == text
    assert data.exists()


def test_an_entry_that_leaves_the_directory_is_not_believed(data: Path, tmp_path: Path) -> None:
    Manifest.load(tmp_path).record(_entry(data))
    document = json.loads((tmp_path / NAME).read_text())
    document["files"][0]["name"] = "../data"
    (tmp_path / NAME).write_text(json.dumps(document))
    assert Manifest.load(tmp_path).distrust is not None


def test_a_link_in_place_of_the_manifest_is_not_followed(data: Path, tmp_path: Path) -> None:
    Manifest.load(tmp_path).record(_entry(data))
    (tmp_path / NAME).rename(tmp_path / "planted")
    (tmp_path / NAME).symlink_to("planted")
    manifest = Manifest.load(tmp_path)
    assert manifest.entries == {}
    assert manifest.distrust is not None


def test_a_fifo_in_place_of_the_manifest_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / NAME, 0o600)
    assert Manifest.load(tmp_path).distrust is not None


def _record_many(directory: Path, first: int) -> None:
    for index in range(first, first + 20):
        path = directory / f"file{index}"
        path.write_bytes(b"")
        Manifest.load(directory).record(_entry(path))


def test_processes_that_record_at_once_lose_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_record_many, args=(tmp_path, first)) for first in (0, 20)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0]
    assert set(Manifest.load(tmp_path).entries) == {f"file{index}" for index in range(40)}


def test_ranges_merge_and_subtract_as_sets_of_bytes() -> None:
    assert merge_ranges([(20, 5), (0, 10), (10, 2), (5, 3)]) == ((0, 12), (20, 5))
    left = subtract_ranges(((0, 12), (20, 5)), ((2, 3), (11, 10)))
    assert left == ((0, 2), (5, 6), (21, 4))


def test_a_range_is_held_only_when_all_of_it_was_written(data: Path) -> None:
    entry = _entry(data, written=((0, 100), (200, 100)))
    assert entry.holds_pattern(0, 100)
    assert entry.holds_pattern(250, 50)
    assert not entry.holds_pattern(50, 100)
    assert not entry.holds_pattern(50, 200)


@pytest.mark.parametrize(
    "text",
    [
        '{"version": 1, "files": ["x"]}',
        "[null]",
        "[" * 100_000,
        '{"version": 1, "files": [{"name": 1, "device": 1, "inode": 2, "size": 3, "job": "j", "created": true}]}',
    ],
)
def test_a_document_of_the_wrong_shape_is_not_believed_and_raises_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / NAME).write_text(text)
    (tmp_path / NAME).chmod(0o600)
    manifest = Manifest.load(tmp_path)
    assert manifest.entries == {}
    assert manifest.distrust


def test_the_lock_goes_with_the_last_entry(tmp_path: Path) -> None:
    manifest = Manifest.load(tmp_path)
    manifest.record(Entry("f", 1, 2, 3, "j", 4, created=True))
    manifest.forget("f")
    assert list(tmp_path.iterdir()) == []
