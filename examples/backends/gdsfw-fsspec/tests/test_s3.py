"""Objects of S3, by s3fs from a real server of moto on the loopback interface."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from gdsfw.errors import ExitCode
from helpers import Open, Run, run_example

pytest.importorskip("s3fs", reason="s3fs is not installed: pip install 'gdsfw-fsspec[test-s3]'")
moto_server = pytest.importorskip("moto.server", reason="moto is not installed: pip install 'gdsfw-fsspec[test-s3]'")

DATA = random.Random(6).randbytes((256 << 10) + 100)
BLOCK = 65536


@dataclass
class Store:
    """A store with one bucket, and the ranges that it was asked for."""

    url: str
    ranges: list[str] = field(default_factory=list)

    @property
    def options(self) -> dict[str, Any]:
        """What a workload says of it."""
        return {"base": "s3://bucket/prefix", "storage_options": {"endpoint_url": self.url}}


@pytest.fixture(scope="module")
def running() -> Iterator[Store]:
    """moto's application behind a thread for each connection."""
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        def log(self, type: str, message: str, *args: Any) -> None:
            pass

    store = Store("")
    answer = moto_server.DomainDispatcherApplication(moto_server.create_backend_app)

    def recorded(environ: Any, start_response: Any) -> Any:
        if "HTTP_RANGE" in environ:
            store.ranges.append(environ["HTTP_RANGE"])
        return answer(environ, start_response)

    server = make_server("127.0.0.1", 0, recorded, threaded=True, request_handler=Quiet)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    store.url = f"http://127.0.0.1:{server.server_port}"
    yield store
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def store(running: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    """The store with prefix/data in its bucket, and credentials for it in the environment."""
    import s3fs

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    client = s3fs.S3FileSystem(endpoint_url=running.url)
    if not client.exists("bucket"):
        client.mkdir("bucket")
    client.pipe_file("bucket/prefix/data", DATA)
    running.ranges.clear()
    return running


def test_an_object_is_read_by_one_request_for_each_block(store: Store, opened: Open) -> None:
    with opened(store.options["base"], "data", storage_options=store.options["storage_options"]) as rig:
        assert rig.file.target.nbytes == len(DATA)
        starts = range(0, len(DATA), BLOCK)
        found = b"".join(rig.read(start, min(BLOCK, len(DATA) - start)) for start in starts)
        told = rig.hooks.gdsfw_transport(worker=rig.worker, path=rig.path, before=None)
    same = found == DATA
    assert same
    assert store.ranges == [f"bytes={start}-{min(start + BLOCK, len(DATA)) - 1}" for start in starts]
    assert told.cache == "unknown"
    assert "s3:// by S3FileSystem: every read is a request" in told.evidence[0]


def test_many_requests_are_on_their_way_together(store: Store, run: Run) -> None:
    job = {"name": "scan", "rw": "randread", "filename": "data", "io_path": "threads", "iodepth": 8, "numjobs": 2}
    (result,) = run(job | {"block_size": "4KiB"}, **store.options)
    assert (result.exit_code, result.errors) == (0, [])
    assert result.total_bytes == 2 * len(DATA)
    assert result.depth.achieved > 1


def test_the_workload_for_every_storage_runs(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", store.url)
    assert all(job.total_bytes >= len(DATA) for job in run_example("read-object", BASE="s3://bucket/prefix"))


@pytest.mark.parametrize("name", ["missing", "s3://no-such-bucket/data"])
def test_what_is_not_there_is_named(store: Store, run: Run, name: str) -> None:
    (result,) = run({"name": "scan", "rw": "read", "filename": name}, **store.options)
    (error,) = result.errors
    assert result.exit_code == ExitCode.UNAVAILABLE
    assert "there is no s3://" in error.message
    assert name in error.message


def test_an_object_that_was_deleted_under_a_run_is_an_error_of_the_read(store: Store, opened: Open) -> None:
    import s3fs

    with opened(store.options["base"], "data", storage_options=store.options["storage_options"]) as rig:
        s3fs.S3FileSystem(endpoint_url=store.url).rm_file("bucket/prefix/data")
        with pytest.raises(FileNotFoundError):
            rig.read(0, 4096)


def test_half_of_the_credentials_is_refused_with_the_librarys_words(store: Store, run: Run) -> None:
    options = store.options
    options["storage_options"]["key"] = "testing"
    (result,) = run({"name": "scan", "rw": "read", "filename": "data"}, **options)
    assert result.exit_code == ExitCode.UNAVAILABLE
    assert "PartialCredentialsError" in result.errors[0].message
