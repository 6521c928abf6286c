"""Bytes come from every kind of storage as they are there: web server, archive, file, memory."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import fsspec
import pytest
from helpers import Open, Run, Server

BLOCK = 65536


def read_all(rig: Any, size: int) -> bytes:
    """A file in blocks, the last one first, so that no order is taken for granted."""
    starts = range(0, size, BLOCK)
    return b"".join(reversed([rig.read(start, min(BLOCK, size - start)) for start in reversed(starts)]))


@pytest.fixture
def archive(tmp_path: Path, contents: bytes) -> Path:
    """A zip file with a stored and a compressed member."""
    path = tmp_path / "archive.zip"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("folder/stored", contents)
        file.writestr("folder/deflated", contents, compress_type=zipfile.ZIP_DEFLATED)
    return path


@pytest.mark.parametrize("io_path", ["fsspec", "threads"])
@pytest.mark.parametrize("member", ["stored", "deflated"])
def test_members_of_an_archive(archive: Path, contents: bytes, opened: Open, member: str, io_path: str) -> None:
    with opened(f"zip://folder::{archive.as_uri()}", member, io_path=io_path, iodepth=4) as rig:
        found = read_all(rig, len(contents))
        assert rig.file.target.nbytes == len(contents)
        assert rig.read(len(contents), 4096) == b""
        assert any("wait for each other" in note for note in rig.path.notes) == (io_path == "threads")
    same = found == contents
    assert same


def test_an_archive_on_a_web_server(archive: Path, server: Server, contents: bytes, opened: Open) -> None:
    server.objects["archive.zip"] = archive.read_bytes()
    with opened(f"zip://folder::{server.url}/archive.zip", "stored") as rig:
        same = read_all(rig, len(contents)) == contents
        told = rig.hooks.gdsfw_transport(worker=rig.worker, path=rig.path, before=None)
    assert same
    assert "an archive that fsspec reads with cache bytes" in told.evidence[0]


def test_objects_of_a_web_server(server: Server, contents: bytes, opened: Open) -> None:
    with opened(server.url, "data") as rig:
        server.ranges.clear()
        same = read_all(rig, len(contents)) == contents
        told = rig.hooks.gdsfw_transport(worker=rig.worker, path=rig.path, before=None)
    assert same
    assert (told.kind, told.cache) == ("host", "unknown")
    assert "every read is a request" in told.evidence[0]


def test_without_a_cache_every_read_is_a_request(server: Server, opened: Open) -> None:
    with opened(server.url, "data") as rig:
        server.ranges.clear()
        for _ in range(3):
            rig.read(8192, 4096)
    assert server.ranges == ["8192-12287"] * 3


def test_with_a_cache_they_are_fewer(server: Server, contents: bytes, opened: Open) -> None:
    with opened(server.url, "data", cache="readahead") as rig:
        server.ranges.clear()
        found = b"".join(rig.read(start, 4096) for start in range(0, 65536, 4096))
        told = rig.hooks.gdsfw_transport(worker=rig.worker, path=rig.path, before=None)
    same = found == contents[:65536]
    assert same
    assert len(server.ranges) < 16
    assert "cache readahead" in told.evidence[0]


@pytest.mark.parametrize("cache", ["readahead", "bytes", "blockcache", "all"])
def test_every_cache_gives_the_bytes_and_is_named(server: Server, contents: bytes, opened: Open, cache: str) -> None:
    with opened(server.url, "data", cache=cache) as rig:
        same = read_all(rig, len(contents)) == contents
        told = rig.hooks.gdsfw_transport(worker=rig.worker, path=rig.path, before=None)
    assert same
    assert f"a file object with cache {cache}," in told.evidence[0]


def test_a_folder_of_archives_has_one_read_at_a_time(archive: Path, contents: bytes, opened: Open) -> None:
    """`dir` says of itself that it is asynchronous; what it stands for is not."""
    options = {"storage_options": {"path": "folder"}}
    with opened(f"dir://::zip://::{archive.as_uri()}", "stored", **options) as rig:
        same = read_all(rig, len(contents)) == contents
        told = rig.hooks.gdsfw_transport(worker=rig.worker, path=rig.path, before=None)
    assert same
    assert "one read at a time" in told.evidence[0]


def test_a_server_without_ranges_can_be_read_through_a_cache_of_all(
    server: Server, contents: bytes, opened: Open
) -> None:
    with opened(server.url, "plain-data", cache="all") as rig:
        same = read_all(rig, len(contents)) == contents
    assert same


def test_a_file_of_this_machine(tmp_path: Path, contents: bytes, opened: Open) -> None:
    (tmp_path / "data").write_bytes(contents)
    with opened(tmp_path.as_uri(), "data") as rig:
        same = read_all(rig, len(contents)) == contents
    assert same


def test_holes_of_files_in_memory_read_as_zeros(opened: Open) -> None:
    with opened("memory://gdsfw", "data", rw="readwrite") as rig:
        rig.write(100_000, b"end")
        assert rig.read(50_000, 100) == bytes(100)
    assert fsspec.filesystem("memory").size("/gdsfw/data") == 100_003


def test_many_requests_are_on_their_way_together(server: Server, run: Run) -> None:
    (job,) = run(
        {"name": "scan", "rw": "randread", "filename": "data", "io_path": "threads", "iodepth": 8, "numjobs": 2}
        | {"block_size": "4KiB", "loops": 4},
        base=server.url,
    )
    assert (job.exit_code, job.errors) == (0, [])
    assert job.total_bytes == 2 * 4 * len(server.objects["data"])
    assert job.depth.achieved > 1


def test_a_whole_url_needs_no_base(server: Server, run: Run) -> None:
    (job,) = run({"name": "scan", "rw": "read", "filename": f"{server.url}/data"})
    assert (job.exit_code, job.errors) == (0, [])
    assert job.total_bytes == len(server.objects["data"])
    assert job.transport.kind == "host"


def test_a_workload_in_memory_is_verified(run: Run) -> None:
    jobs = run(
        {"name": "ingest", "rw": "write", "size": "256KiB", "numjobs": 2, "verify": True},
        {
            "name": "lookup",
            "rw": "randread",
            "files_from": "ingest",
            "io_path": "threads",
            "iodepth": 4,
            "verify": True,
        },
    )
    assert [(job.exit_code, job.errors) for job in jobs] == [(0, [])] * 2
    assert jobs[1].verify.bad_blocks == 0
    assert jobs[1].verify.checked_bytes == jobs[1].total_bytes > 0
    assert jobs[1].transport.cache == "warm"
    assert sorted(fsspec.filesystem("memory").ls("/gdsfw", detail=False)) == ["/gdsfw/ingest.0.0", "/gdsfw/ingest.1.0"]
