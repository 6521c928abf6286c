"""Laying out gdsfw's own files: the pattern is in them, they are reused, and nothing of the user's is touched."""

from __future__ import annotations

import resource
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from gdsfw.backend import Pattern, Target
from gdsfw.engine import pattern as pattern_data
from gdsfw.errors import RefusedError, StoppedError, UnavailableError
from gdsfw.storage.layout import CHUNK, ensure_file
from gdsfw.storage.manifest import Manifest

Make = Callable[..., Target]


def _expected(nbytes: int, seed: int) -> bytes:
    data = bytearray(nbytes)
    pattern_data.fill(memoryview(data), 0, Pattern(seed, 7))
    return bytes(data)


@pytest.mark.parametrize("nbytes", [0, 1, 4095, 4097, CHUNK, CHUNK + 1, 3 * CHUNK + 511])
def test_a_file_of_any_size_holds_the_pattern_from_end_to_end(target: Make, tmp_path: Path, nbytes: int) -> None:
    laid = ensure_file(target(nbytes=nbytes), pattern_seed=5, need_pattern=True)
    assert (laid.created, laid.pattern_seed) == (True, 5)
    assert (tmp_path / "file").read_bytes() == _expected(nbytes, 5)
    entry = Manifest.load(tmp_path).entry("file")
    assert entry is not None
    assert (entry.complete, entry.created, entry.size, entry.pattern_seed) == (True, True, nbytes, 5)


def test_a_laid_out_file_is_reused_with_its_own_seed(target: Make, tmp_path: Path) -> None:
    ensure_file(target(), pattern_seed=5, need_pattern=True)
    before = (tmp_path / "file").stat()
    laid = ensure_file(target(), pattern_seed=6, need_pattern=True)
    assert (laid.created, laid.pattern_seed) == (False, 5)
    assert (tmp_path / "file").stat().st_mtime_ns == before.st_mtime_ns


def test_a_file_that_is_too_short_is_laid_out_anew(target: Make, tmp_path: Path) -> None:
    ensure_file(target(nbytes=4096), pattern_seed=5, need_pattern=True)
    laid = ensure_file(target(nbytes=10000), pattern_seed=6, need_pattern=True)
    assert (laid.created, laid.pattern_seed) == (True, 6)
    assert (tmp_path / "file").read_bytes() == _expected(10000, 6)


def test_a_file_without_the_whole_pattern_serves_a_job_that_does_not_verify(target: Make, tmp_path: Path) -> None:
    ensure_file(target(), pattern_seed=5, need_pattern=True)
    Manifest.load(tmp_path).update("file", written=((0, 100),))
    assert not ensure_file(target(), pattern_seed=6, need_pattern=False).created
    assert ensure_file(target(), pattern_seed=6, need_pattern=True).created
    assert (tmp_path / "file").read_bytes() == _expected(4096, 6)


def test_an_interrupted_layout_is_not_reused(target: Make, tmp_path: Path) -> None:
    ensure_file(target(), pattern_seed=5, need_pattern=True)
    Manifest.load(tmp_path).update("file", complete=False)
    assert ensure_file(target(), pattern_seed=6, need_pattern=False).created


@pytest.mark.parametrize("content", [b"", b"precious", b"p" * 4096])
def test_a_users_file_is_refused_and_stays(target: Make, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(RefusedError, match="gdsfw did not create it"):
        ensure_file(target(), pattern_seed=5, need_pattern=False)
    assert (tmp_path / "file").read_bytes() == content


def test_a_link_to_a_users_file_is_refused_and_stays(target: Make, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    (tmp_path / "file").symlink_to("mine")
    with pytest.raises(RefusedError):
        ensure_file(target(), pattern_seed=5, need_pattern=False)
    assert (tmp_path / "mine").read_text() == "precious"


def test_progress_ends_at_the_whole_file(target: Make) -> None:
    seen: list[tuple[int, int]] = []
    nbytes = 2 * CHUNK + 3
    ensure_file(
        target(nbytes=nbytes),
        pattern_seed=5,
        need_pattern=False,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen[-1] == (nbytes, nbytes)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_a_stopped_layout_removes_its_own_file_and_nothing_else(target: Make, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    seen: list[int] = []
    with pytest.raises(StoppedError):
        ensure_file(
            target(nbytes=8 * CHUNK),
            pattern_seed=5,
            need_pattern=False,
            progress=lambda done, _: seen.append(done),
            stop=lambda: bool(seen),
        )
    assert not (tmp_path / "file").exists()
    assert Manifest.load(tmp_path).entries == {}
    assert (tmp_path / "mine").read_text() == "precious"


@pytest.fixture
def file_size_limit() -> Iterator[int]:
    """No file of this process may become longer than this many bytes."""
    limit = 64 << 10
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, old[1]))
    yield limit
    resource.setrlimit(resource.RLIMIT_FSIZE, old)
    signal.signal(signal.SIGXFSZ, handler)


def test_a_file_that_finds_no_room_is_an_error_with_numbers_and_advice(target: Make, file_size_limit: int) -> None:
    nbytes = 4 * file_size_limit
    with pytest.raises(UnavailableError, match=f"{nbytes} bytes") as caught:
        ensure_file(target(nbytes=nbytes), pattern_seed=5, need_pattern=False)
    assert "lower `size`" in (caught.value.hint or "")
