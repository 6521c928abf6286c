"""Direct I/O is judged by what happens, not by an open that succeeds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from gdsfw.backend import Alignment, Target
from gdsfw.errors import UnavailableError
from gdsfw.storage import filesystems
from gdsfw.storage.alignment import PAGE, file_alignment, misalignment
from gdsfw.storage.residency import cache_state, drop_cache, resident_bytes
from gdsfw.storage.safe_open import close_file, open_target
from gdsfw.storage.statx import dioalign


@pytest.fixture
def ram_file() -> Iterator[Path]:
    folder = Path("/dev/shm")
    if not folder.is_dir():
        pytest.skip("there is no /dev/shm")
    fd = os.open(folder, os.O_PATH)
    kind = filesystems.kind(fd)
    os.close(fd)
    if kind != "tmpfs":
        pytest.skip(f"/dev/shm is {kind}, not tmpfs")
    path = folder / f"gdsfw-test-{os.getpid()}"
    path.write_bytes(b"x" * 8192)
    yield path
    path.unlink()


@pytest.fixture
def disk_file(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    path.write_bytes(os.urandom(1 << 20))
    fd = os.open(path, os.O_RDONLY)
    kind = filesystems.kind(fd)
    os.close(fd)
    if kind in filesystems.RAM_BACKED or kind == "overlayfs":
        pytest.skip(f"temporary files lie on {kind}")
    return path


def test_tmpfs_takes_the_flag_and_is_not_direct_all_the_same(ram_file: Path) -> None:
    handle = open_target(Target(str(ram_file), 1, 8192), "r")
    try:
        assert not handle.direct
        assert handle.tail_fd == -1
        assert "tmpfs is RAM-backed: the direct flag has no effect" in handle.direct_reason
    finally:
        close_file(handle)


def test_direct_true_on_tmpfs_is_refused_with_the_reason(ram_file: Path) -> None:
    with pytest.raises(UnavailableError, match="direct: true, but tmpfs is RAM-backed"):
        open_target(Target(str(ram_file), 1, 8192, direct="true"), "r")


def test_direct_on_a_disk_bypasses_the_page_cache(disk_file: Path) -> None:
    handle = open_target(Target(str(disk_file), 1, 1 << 20), "r")
    try:
        if not handle.direct:
            pytest.skip(f"no direct I/O here: {handle.direct_reason}")
        assert handle.tail_fd >= 0
        assert handle.alignment.offset >= 512
        drop_cache(handle.tail_fd)
        import mmap

        with mmap.mmap(-1, 1 << 20) as memory:
            assert os.preadv(handle.fd, [memory], 0) == 1 << 20
            expected = memory[:]
        assert resident_bytes(handle.fd) == 0
        assert disk_file.read_bytes() == expected
    finally:
        close_file(handle)


def test_direct_false_is_not_direct(disk_file: Path) -> None:
    handle = open_target(Target(str(disk_file), 1, 1 << 20, direct="false"), "r")
    try:
        assert not handle.direct
        assert handle.direct_reason == "not asked for"
        assert handle.alignment == Alignment()
    finally:
        close_file(handle)


def test_alignment_names_its_source(disk_file: Path) -> None:
    found = file_alignment(disk_file)
    fd = os.open(disk_file, os.O_RDONLY)
    stated = dioalign(fd)
    os.close(fd)
    assert found.source == ("statx" if stated and all(stated) else found.source)
    assert found.offset in (512, 1024, 2048, 4096, PAGE)


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ({"size": 4096, "offset": 8192}, None),
        ({"size": 100, "offset": 0}, "length 100 is not a multiple of 4096 (from the statx)"),
        ({"size": 4096, "offset": 1}, "offset 1 is not a multiple of 4096 (from the statx)"),
        ({"size": 4096, "offset": 0, "address": 8}, "buffer address 8 is not a multiple of 512 (from the statx)"),
    ],
)
def test_misalignment_names_the_number_and_the_multiple(numbers: dict[str, int], expected: str | None) -> None:
    assert misalignment(Alignment(offset=4096, memory=512, source="statx"), **numbers) == expected


def test_residency_follows_the_page_cache(disk_file: Path) -> None:
    fd = os.open(disk_file, os.O_RDWR)
    try:
        drop_cache(fd)
        assert resident_bytes(fd) == 0
        os.pread(fd, 1 << 20, 0)
        assert resident_bytes(fd) == 1 << 20
        assert resident_bytes(fd, 4096) == 4096
    finally:
        os.close(fd)


@pytest.mark.parametrize(
    ("direct", "ram", "before", "state"),
    [
        (True, False, None, "bypassed"),
        (False, True, 0, "warm"),
        (False, False, 100, "warm"),
        (False, False, 0, "cold"),
        (False, False, 50, "unknown"),
        (False, False, None, "unknown"),
    ],
)
def test_cache_state_is_only_said_when_known(direct: bool, ram: bool, before: int | None, state: str) -> None:
    assert cache_state(direct, ram, before, 100) == state


def test_mounts_with_odd_names_are_read() -> None:
    line = r"36 35 98:0 /mnt1 /mnt/my\040disk\134x rw,noatime master:1 - ext4 /dev/root rw,data=journal"
    (mount,) = filesystems.mounts(line)
    assert mount.point == "/mnt/my disk\\x"
    assert (mount.filesystem, mount.source, mount.device) == ("ext4", "/dev/root", "98:0")
    assert filesystems.journals_data(mount)
