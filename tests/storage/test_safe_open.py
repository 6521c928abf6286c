"""What a job may open. Every refusal leaves the file as it was."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from gdsfw.backend import Target
from gdsfw.errors import ExitCode, RefusedError, UnavailableError, UsageError
from gdsfw.storage.identity import identify
from gdsfw.storage.manifest import NAME, Manifest
from gdsfw.storage.safe_open import close_file, open_target

Make = Callable[..., Target]
Unchanged = Callable[[Path], Callable[[], None]]


@pytest.fixture
def users_file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(b"the user's own words")
    return path


def refused(target: Target, mode: str = "rw", match: str = "") -> RefusedError:
    with pytest.raises(RefusedError, match=match) as caught:
        open_target(target, mode)
    assert caught.value.exit_code == ExitCode.REFUSED
    assert target.name in caught.value.message
    return caught.value


def test_a_users_file_is_not_written(target: Make, users_file: Path, unchanged: Unchanged) -> None:
    check = unchanged(users_file)
    error = refused(target(create=True), match="gdsfw did not create it")
    assert "allow_overwrite: true" in (error.hint or "")
    check()
    assert not (users_file.parent / NAME).exists()


def test_a_users_file_is_written_when_the_job_says_so_and_stays_the_users(target: Make, users_file: Path) -> None:
    handle = open_target(target(allow_overwrite=True, direct="false"), "rw")
    try:
        assert handle.writable
        os.pwrite(handle.fd, b"THE", 0)
    finally:
        close_file(handle)
    assert users_file.read_bytes() == b"THE user's own words"
    entry = Manifest.load(users_file.parent).entry("file")
    assert entry is not None
    assert not entry.created


def test_opening_for_writing_does_not_truncate(target: Make) -> None:
    close_file(open_target(target(create=True), "rw"))
    Path(target().name).write_bytes(b"x" * 4096)
    close_file(open_target(target(create=True), "rw"))
    assert Path(target().name).read_bytes() == b"x" * 4096


def test_a_symbolic_link_is_not_written_through(
    target: Make, users_file: Path, tmp_path: Path, unchanged: Unchanged
) -> None:
    (tmp_path / "link").symlink_to(users_file)
    check = unchanged(users_file)
    refused(target("link", allow_overwrite=True), match="symbolic link to .*file")
    check()


def test_a_dangling_link_is_not_created_through(target: Make, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    refused(target("link", create=True), match="symbolic link")
    assert not (tmp_path / "elsewhere").exists()


def test_a_symbolic_link_may_be_read_through(target: Make, users_file: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(users_file)
    handle = open_target(target("link", direct="false"), "r")
    try:
        assert os.pread(handle.fd, 3, 0) == b"the"
    finally:
        close_file(handle)


def test_a_hard_link_is_not_written(target: Make, users_file: Path, tmp_path: Path, unchanged: Unchanged) -> None:
    os.link(users_file, tmp_path / "other")
    check = unchanged(users_file)
    refused(target("other", allow_overwrite=True), match="2 hard links")
    check()


def test_a_hard_link_to_gdsfws_own_file_is_not_written(target: Make, tmp_path: Path) -> None:
    close_file(open_target(target(create=True), "rw"))
    os.link(tmp_path / "file", tmp_path / "other")
    refused(target(), match="2 hard links")


@pytest.mark.parametrize("mode", ["r", "rw"])
def test_a_fifo_is_refused_and_nobody_waits_for_it(target: Make, tmp_path: Path, mode: str) -> None:
    os.mkfifo(tmp_path / "fifo")
    refused(target("fifo", allow_overwrite=True), mode, match="FIFO")


@pytest.mark.parametrize("mode", ["r", "rw"])
def test_a_socket_is_refused(target: Make, tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # socket names are short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("sock")
        refused(target("sock", allow_overwrite=True), mode, match="socket")


@pytest.mark.parametrize("mode", ["r", "rw"])
@pytest.mark.parametrize("name", ["/dev/null", "/dev/zero", "/dev/full"])
def test_a_character_device_is_refused(name: str, mode: str) -> None:
    refused(Target(name, 1, 4096, allow_overwrite=True), mode, match="character device")


@pytest.mark.parametrize("mode", ["r", "rw"])
def test_a_directory_is_a_mistake_with_a_suggestion(target: Make, tmp_path: Path, mode: str) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(UsageError, match="is a directory, did you mean directory:"):
        open_target(target("folder", allow_overwrite=True), mode)


@pytest.mark.parametrize("name", ["/proc/self/mem", "/proc/version", "/sys/kernel/notes"])
def test_files_of_the_kernel_are_refused(name: str) -> None:
    if not Path(name).exists():
        pytest.skip(f"{name} does not exist here")
    refused(Target(name, 1, 4096, allow_overwrite=True), match="no place for data")


@pytest.mark.parametrize("name", ["/dev/gdsfw-test-file", "/proc/gdsfw-test-file", "/sys/gdsfw-test-file"])
def test_no_file_is_created_among_devices_or_kernel_files(name: str) -> None:
    with pytest.raises(RefusedError, match="no place for data"):
        open_target(Target(name, 1, 4096, create=True), "rw")
    assert not Path(name).exists()


def test_no_file_is_created_in_the_root_directory() -> None:
    with pytest.raises(RefusedError, match="root directory"):
        open_target(Target("/gdsfw-test-file", 1, 4096, create=True), "rw")
    assert not Path("/gdsfw-test-file").exists()


def test_another_users_file_is_not_written(target: Make, users_file: Path, unchanged: Unchanged) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file to another user")
    os.chown(users_file, 12345, 12345)
    check = unchanged(users_file)
    refused(target(allow_overwrite=True), match="another user")
    check()


def test_a_planted_manifest_is_not_believed(target: Make, users_file: Path, unchanged: Unchanged) -> None:
    """Somebody else writes into a shared folder that the user's file is gdsfw's own."""
    status = users_file.stat()
    close_file(open_target(target("bait", create=True), "rw"))
    manifest = users_file.parent / NAME
    text = manifest.read_text().replace('"bait"', '"file"')
    text = text.replace(str(Manifest.load(users_file.parent).entries["bait"].inode), str(status.st_ino))
    manifest.write_text(text)
    manifest.chmod(0o666)
    check = unchanged(users_file)
    refused(target(), match="others may write it")
    check()


def test_a_manifest_of_another_user_is_not_believed(target: Make, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file to another user")
    close_file(open_target(target(create=True), "rw"))
    os.chown(tmp_path / NAME, 12345, 12345)
    refused(target(), match="belongs to another user")


def test_a_file_that_took_the_place_of_gdsfws_own_is_the_users(target: Make, tmp_path: Path) -> None:
    close_file(open_target(target(create=True), "rw"))
    (tmp_path / "new").write_bytes(b"precious")
    (tmp_path / "new").rename(tmp_path / "file")
    refused(target(), match="gdsfw did not create it")
    assert (tmp_path / "file").read_bytes() == b"precious"


def test_a_file_that_was_deleted_and_made_anew_is_the_users(target: Make, tmp_path: Path) -> None:
    """The new file often has the old one's inode number; its time of birth tells them apart."""
    close_file(open_target(target(create=True), "rw"))
    (tmp_path / "file").unlink()
    (tmp_path / "file").write_bytes(b"precious")
    refused(target(), match="gdsfw did not create it")
    assert (tmp_path / "file").read_bytes() == b"precious"


def test_a_file_that_grew_beyond_what_gdsfw_made_is_the_users(target: Make, tmp_path: Path) -> None:
    close_file(open_target(target(create=True), "rw"))
    with (tmp_path / "file").open("ab") as file:
        file.write(b"more")
    refused(target(), match="gdsfw did not create it")


def test_a_block_device_is_never_written_in_this_version() -> None:
    disk = next((path for path in sorted(Path("/sys/block").glob("*")) if Path("/dev", path.name).exists()), None)
    if disk is None:
        pytest.skip("this machine shows no block device")
    refused(Target(f"/dev/{disk.name}", 1, 4096, allow_overwrite=True), match="block device.*mounted")


@pytest.mark.parametrize("mode", ["r", "rw"])
def test_a_missing_file_is_not_created_unless_the_job_creates_it(target: Make, tmp_path: Path, mode: str) -> None:
    with pytest.raises(UnavailableError, match="no such file"):
        open_target(target("absent"), mode)
    assert list(tmp_path.iterdir()) == []


def test_a_read_never_creates_even_when_told(target: Make, tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="no such file"):
        open_target(target("absent", create=True), "r")
    assert list(tmp_path.iterdir()) == []


def test_a_new_file_has_its_size_and_is_recorded(target: Make, tmp_path: Path) -> None:
    handle = open_target(target("deep/er/new", nbytes=12345, create=True), "rw")
    close_file(handle)
    path = tmp_path / "deep/er/new"
    assert path.stat().st_size == 12345
    assert Manifest.load(path.parent).owns("new", identify(path))
    assert stat.S_IMODE((path.parent / NAME).stat().st_mode) == 0o600


def test_a_file_without_permission_is_named_with_its_errno(target: Make, users_file: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    users_file.chmod(0)
    with pytest.raises(UnavailableError, match="EACCES"):
        open_target(target(), "r")


def test_no_descriptor_is_left_open(target: Make, users_file: Path, tmp_path: Path) -> None:
    os.link(users_file, tmp_path / "linked")
    before = os.listdir("/proc/self/fd")  # noqa: PTH208
    for name, changes in (("file", {}), ("linked", {"allow_overwrite": True}), ("absent", {}), (".", {})):
        with pytest.raises((RefusedError, UnavailableError, UsageError)):
            open_target(target(name, **changes), "rw")
    handle = open_target(target("mine", create=True), "rw")
    close_file(handle)
    close_file(handle)
    assert os.listdir("/proc/self/fd") == before  # noqa: PTH208


def test_descriptors_do_not_show_nofollow_or_path(target: Make) -> None:
    """File libraries refuse descriptors that were opened with O_NOFOLLOW."""
    import fcntl

    handle = open_target(target("mine", create=True), "rw")
    try:
        flags = fcntl.fcntl(handle.fd, fcntl.F_GETFL)
        assert not flags & (os.O_NOFOLLOW | os.O_PATH | os.O_APPEND)
        assert flags & os.O_ACCMODE == os.O_RDWR
    finally:
        close_file(handle)


@pytest.mark.parametrize(("sync", "flag"), [("sync", os.O_SYNC), ("dsync", os.O_DSYNC), ("none", 0)])
def test_sync_flags_are_set(target: Make, sync: str, flag: int) -> None:
    import fcntl

    handle = open_target(target("mine", create=True, sync=sync, direct="false"), "rw")
    try:
        assert fcntl.fcntl(handle.fd, fcntl.F_GETFL) & os.O_SYNC == flag
    finally:
        close_file(handle)
