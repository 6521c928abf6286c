"""What probes may look at."""

from __future__ import annotations

import os
from pathlib import Path

from gdsfw.host import Host


def test_a_file_is_read_without_its_last_newline(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "version").write_text("Linux 6.1\n")
    host = Host(tmp_path, live=False)
    assert host.read("/proc/version") == "Linux 6.1"
    assert host.exists("/proc/version")
    assert host.listdir("/proc") == ["version"]


def test_what_cannot_be_read_is_none_and_never_an_error(tmp_path: Path) -> None:
    host = Host(tmp_path, live=False)
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    for path in ("/nothing", "/folder", "/loop", "/nul\0byte", "/folder/file/deeper"):
        assert host.read(path) is None
        assert host.listdir(f"{path}/x") == []
    assert not host.exists("/nul\0byte")


def test_bytes_that_are_no_text_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"a\xffb")
    assert Host(tmp_path, live=False).read("/file") == "a�b"


def test_reading_is_bounded(tmp_path: Path) -> None:
    text = Host().read("/dev/zero")
    assert text is not None
    assert len(text) == 1 << 20


def test_a_fifo_does_not_make_a_probe_wait(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert Host(tmp_path, live=False).read("/fifo") in ("", None)


def test_nothing_leads_out_of_a_recorded_tree(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tmp_path / "secret").write_text("s")
    (tree / "link").symlink_to(tmp_path / "secret")
    (tree / "folder").symlink_to("/")
    host = Host(tree, live=False)
    assert host.read("/../secret") is None
    assert host.read("/link") is None
    assert host.read("/folder/etc/passwd") is None
    assert host.listdir("/folder") == []


def test_this_machine_is_the_default() -> None:
    host = Host()
    assert host.live
    assert (host.read("/proc/version") or "").startswith("Linux")
