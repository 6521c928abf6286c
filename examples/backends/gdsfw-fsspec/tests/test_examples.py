"""The workloads of examples/ run on every storage, and the README knows every option."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest
from helpers import Server, run_example

from gdsfw_fsspec.options import FsspecOptions


@pytest.mark.parametrize("storage", ["memory", "file"])
def test_what_is_written_is_read_back_and_compared(tmp_path: Path, storage: str) -> None:
    base = "memory://gdsfw" if storage == "memory" else tmp_path.as_uri()
    jobs = run_example("write-and-read", "defaults.size=2MiB", BASE=base)
    assert [job.name for job in jobs] == ["ingest", "scan", "lookup"]
    assert all(job.verify.checked_bytes == job.total_bytes > 0 for job in jobs[1:])
    assert [job.verify.bad_blocks for job in jobs[1:]] == [0, 0]


@pytest.mark.parametrize("storage", ["file", "zip", "http", "zip on http"])
def test_one_workload_reads_every_storage(tmp_path: Path, server: Server, contents: bytes, storage: str) -> None:
    (tmp_path / "data").write_bytes(contents)
    with zipfile.ZipFile(tmp_path / "data.zip", "w") as archive:
        archive.writestr("data", contents)
    server.objects["data.zip"] = (tmp_path / "data.zip").read_bytes()
    base = {
        "file": tmp_path.as_uri(),
        "zip": f"zip://::{tmp_path.as_uri()}/data.zip",
        "http": server.url,
        "zip on http": f"zip://::{server.url}/data.zip",
    }[storage]
    jobs = run_example("read-object", BASE=base)
    assert [job.total_bytes >= len(contents) for job in jobs] == [True] * 3
    assert {job.transport.cache for job in jobs} == {"unknown"}


def test_the_readme_has_every_option_with_its_default() -> None:
    text = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| `(.*?)` \|", text, re.MULTILINE))
    defaults = FsspecOptions()
    assert rows == {name: str(getattr(defaults, name)) for name in FsspecOptions.model_fields}
