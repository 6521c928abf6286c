"""What cannot be done, or may cost the user data, is refused before anything is touched, and the message says why."""

from __future__ import annotations

import errno
import os
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import fsspec
import pytest
from gdsfw.errors import BackendError, Domain, ExitCode
from helpers import Open, Run, Server, serving

WRITE = {"name": "ingest", "rw": "write", "size": "128KiB"}


def refusal(jobs: Any) -> tuple[int, str]:
    """Exit code and text of the one error of the one job."""
    (job,) = jobs
    (error,) = job.errors
    return job.exit_code, f"{error.message}; {error.hint}"


@pytest.mark.parametrize("base", ["s3://bucket/prefix", "gs://bucket", "http://127.0.0.1:9/x", "simplecache::s3://b/x"])
def test_writing_where_no_range_can_be_written(run: Run, base: str) -> None:
    """It needs neither the store nor its package to say so."""
    code, text = refusal(run(WRITE, base=base))
    assert code == ExitCode.UNAVAILABLE
    assert f"{base}/ingest.0.0" in text
    assert "cannot change a part of a file" in text


def test_writing_into_an_archive(tmp_path: Path, run: Run) -> None:
    archive = tmp_path / "archive.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("ingest.0.0", b"the user's")
    before = archive.read_bytes()
    code, text = refusal(run(WRITE, base=f"zip://::{archive.as_uri()}"))
    assert code == ExitCode.UNAVAILABLE
    assert "zip://" in text
    assert archive.read_bytes() == before


def test_the_users_file_is_not_written(tmp_path: Path, run: Run) -> None:
    mine = tmp_path / "ingest.0.0"
    mine.write_bytes(b"the user's")
    code, text = refusal(run(WRITE, base=tmp_path.as_uri()))
    assert code == ExitCode.REFUSED
    assert "this run did not make it" in text
    assert "allow_overwrite: true" in text
    assert mine.read_bytes() == b"the user's"


def test_the_users_object_in_memory_is_not_written(run: Run) -> None:
    memory = fsspec.filesystem("memory")
    memory.pipe_file("/gdsfw/ingest.0.0", b"the user's")
    assert refusal(run(WRITE))[0] == ExitCode.REFUSED
    assert memory.cat_file("/gdsfw/ingest.0.0") == b"the user's"


def test_what_a_run_made_and_the_user_changed_is_the_users(tmp_path: Path, run: Run) -> None:
    assert run(WRITE, base=tmp_path.as_uri())[0].exit_code == 0
    assert run(WRITE, base=tmp_path.as_uri())[0].exit_code == 0
    mine = tmp_path / "ingest.0.0"
    mine.write_bytes(b"mine now")
    assert refusal(run(WRITE, base=tmp_path.as_uri()))[0] == ExitCode.REFUSED
    assert mine.read_bytes() == b"mine now"


def test_with_the_users_word_a_file_is_written(tmp_path: Path, run: Run) -> None:
    mine = tmp_path / "mine"
    mine.write_bytes(b"the user's")
    (job,) = run(WRITE | {"filename": "mine", "allow_overwrite": True}, base=tmp_path.as_uri())
    assert (job.exit_code, job.errors) == (0, [])
    assert mine.stat().st_size == 128 << 10


@pytest.mark.parametrize("link", ["symbolic", "hard"])
def test_links_are_not_written_through(tmp_path: Path, run: Run, link: str) -> None:
    mine = tmp_path / "mine"
    mine.write_bytes(b"the user's")
    (tmp_path / "link").symlink_to(mine) if link == "symbolic" else os.link(mine, tmp_path / "link")
    job = WRITE | {"filename": "link", "allow_overwrite": True}
    code, text = refusal(run(job, base=tmp_path.as_uri()))
    assert code == ExitCode.REFUSED
    assert "link" in text
    assert mine.read_bytes() == b"the user's"


def test_what_is_no_regular_file_is_not_opened(tmp_path: Path, run: Run) -> None:
    os.mkfifo(tmp_path / "fifo")
    code, text = refusal(
        run({"name": "scan", "rw": "read", "filename": "fifo", "size": "64KiB"}, base=tmp_path.as_uri())
    )
    assert code == ExitCode.REFUSED
    assert "no regular file" in text


def test_a_folder_is_no_file(tmp_path: Path, run: Run) -> None:
    (tmp_path / "folder").mkdir()
    job = {"name": "scan", "rw": "read", "filename": "folder", "size": "64KiB"}
    code, text = refusal(run(job, base=tmp_path.as_uri()))
    assert code == ExitCode.USAGE
    assert "folder" in text


@pytest.mark.parametrize(
    ("key", "value", "says"), [("direct", "true", "no O_DIRECT"), ("sync", "dsync", "no file with O_SYNC")]
)
def test_what_fsspec_cannot_do_is_not_pretended(run: Run, key: str, value: str, says: str) -> None:
    code, text = refusal(run(WRITE | {key: value}))
    assert code == ExitCode.UNAVAILABLE
    assert says in text
    assert fsspec.filesystem("memory").ls("/", detail=False) == []


@pytest.mark.parametrize("chain", ["simplecache::", "filecache::", "zip://::blockcache::", "cached::"])
def test_a_copy_on_this_machine_is_not_measured_as_a_server(server: Server, run: Run, chain: str) -> None:
    code, text = refusal(run({"name": "scan", "rw": "read", "filename": "data"}, base=f"{chain}{server.url}"))
    assert code == ExitCode.UNAVAILABLE
    assert "keeps a copy on this machine's disk" in text
    assert server.ranges == []


def test_a_wrong_storage_option_is_not_a_missing_file(server: Server, run: Run) -> None:
    options = {"base": server.url, "storage_options": {"bogus": 1}}
    code, text = refusal(run({"name": "scan", "rw": "read", "filename": "data"}, **options))
    assert code == ExitCode.UNAVAILABLE
    assert "bogus" in text


@pytest.mark.skipif(find_spec("s3fs") is not None, reason="s3fs is installed")
@pytest.mark.parametrize("base", ["s3://bucket", "zip://::s3://bucket/archive.zip"])
def test_a_missing_package_is_named(run: Run, base: str) -> None:
    code, text = refusal(run({"name": "scan", "rw": "read", "filename": "data"}, base=base))
    assert code == ExitCode.UNAVAILABLE
    assert "pip install s3fs" in text


def test_a_protocol_that_nobody_knows(run: Run) -> None:
    code, text = refusal(run({"name": "scan", "rw": "read", "filename": "floppy://a/data"}))
    assert code == ExitCode.USAGE
    assert "no protocol 'floppy'" in text
    assert "memory" in text


@pytest.mark.parametrize("name", ["missing", "forbidden", "endless-data", "plain-data", "refuses-data"])
def test_what_a_web_server_does_not_give(server: Server, run: Run, name: str) -> None:
    says = {
        "missing": "there is no http://",
        "forbidden": "HTTP_403 (the server answered 403 Forbidden)",
        "endless-data": "does not say how long it is",
        "plain-data": "does not answer requests for a range",
        "refuses-data": "does not answer requests for a range",
    }
    code, text = refusal(run({"name": "scan", "rw": "read", "filename": name}, base=server.url))
    assert code == ExitCode.UNAVAILABLE
    assert says[name] in text
    assert name in text


def test_a_server_that_is_not_there(run: Run) -> None:
    with serving({}) as gone:
        pass
    code, text = refusal(run({"name": "scan", "rw": "read", "filename": "data"}, base=gone.url))
    assert code == ExitCode.UNAVAILABLE
    assert "ECONNREFUSED" in text


@pytest.mark.parametrize("io_path", ["fsspec", "threads"])
def test_a_failure_while_measuring_has_its_status(server: Server, run: Run, io_path: str) -> None:
    job = {"name": "scan", "rw": "read", "filename": "broken-data", "io_path": io_path, "iodepth": 4}
    (result,) = run(job, base=server.url)
    assert result.exit_code == ExitCode.FAILED
    error = result.errors[0]
    assert (error.operation, error.domain, error.code, error.name) == ("read", "file", 503, "HTTP_503")
    assert any("first failure: read of" in line and "503" in line for line in result.transport.evidence)


def test_an_object_that_became_shorter(server: Server, opened: Open) -> None:
    with opened(server.url, "data") as rig:
        server.objects["data"] = b"short"
        with pytest.raises(BackendError) as caught:
            rig.read(65536, 4096)
    assert (caught.value.domain, caught.value.code) == (Domain.FILE, 416)


def test_a_server_that_forgets_ranges(server: Server, opened: Open) -> None:
    """It did answer one when the file was opened."""
    with opened(server.url, "data") as rig:
        server.whole.add("data")
        with pytest.raises(OSError, match="ignores ranges") as caught:
            rig.read(65536, 4096)
    assert caught.value.errno == errno.EPROTO


def test_a_damaged_archive_is_an_error_and_no_defect(tmp_path: Path, contents: bytes, run: Run) -> None:
    archive = tmp_path / "archive.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("data", contents)
    damaged = bytearray(archive.read_bytes())
    damaged[1000] ^= 1
    archive.write_bytes(damaged)
    (job,) = run({"name": "scan", "rw": "read", "filename": "data"}, base=f"zip://::{archive.as_uri()}")
    assert job.exit_code == ExitCode.FAILED
    assert job.errors[0].name == "EIO"
    archive.write_bytes(b"no archive at all")
    code, text = refusal(run({"name": "scan", "rw": "read", "filename": "data"}, base=f"zip://::{archive.as_uri()}"))
    assert code == ExitCode.UNAVAILABLE
    assert "BadZipFile" in text


def test_a_base_that_is_no_url(run: Run) -> None:
    with pytest.raises(Exception, match="is no URL; for instance"):
        run(WRITE, base="/mnt/data")
