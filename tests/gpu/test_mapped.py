"""The mapped path: a file's own pages registered with the device, on the stand-in and on a real GPU."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes import kernels
from fakes.build import Builder
from fakes.standins import Standin
from helpers.running import Gdsfw

TMPFS = Path("/dev/shm")


@pytest.fixture(params=["cuda", pytest.param("gpu", marks=pytest.mark.gpu)])
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """Name of a backend that has a device, real or not."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    if request.param == "gpu":
        if not Path("/proc/driver/nvidia/gpus").is_dir():
            pytest.skip("this machine has no NVIDIA GPU (/proc/driver/nvidia/gpus)")
        return "cufile"
    builder: Builder = request.getfixturevalue("standin_builder")
    standin = Standin.build(builder, request.param)
    if lacking := standin.lacking():
        pytest.skip(lacking)
    for name, value in standin.environ().items():
        monkeypatch.setenv(name, value)
    return standin.backend


@pytest.fixture
def gdsfw(tmp_path: Path) -> Iterator[Gdsfw]:
    driver = Gdsfw(tmp_path)
    yield driver
    driver.close()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[str]:
    base = os.environ.get("GDSFW_GPU_DIRECTORY")
    yield from folder(Path(base) if base else tmp_path)


@pytest.fixture
def tmpfs() -> Iterator[str]:
    if not TMPFS.is_dir():
        pytest.skip("no /dev/shm")
    yield from folder(TMPFS)


def folder(base: Path) -> Iterator[str]:
    found = base / f"gdsfw-mapped-{os.getpid()}"
    found.mkdir()
    yield str(found)
    for path in found.iterdir():
        path.unlink()
    found.rmdir()


@pytest.fixture
def hugetlbfs(tmp_path: Path) -> Iterator[str]:
    """A folder on hugetlbfs with 8 MiB to spare."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    usable = [words[1] for words in mounts if words[2] == "hugetlbfs" and os.access(words[1], os.W_OK)]
    if not usable:
        pytest.skip("no hugetlbfs is mounted where this user can write")
    meminfo = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    if int(meminfo["HugePages_Free"]) * int(meminfo["Hugepagesize"].split()[0]) < 8 << 10:
        pytest.skip("no 8 MiB of huge pages are reserved and free (vm.nr_hugepages)")
    found = Path(usable[0]) / tmp_path.parent.name
    found.mkdir()
    yield str(found)
    shutil.rmtree(found)


def job(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "io_path": "mapped", "verify": True, "invalidate": False, "io_timeout": "10s", **more}


SHAPES: list[dict[str, Any]] = [
    {"rw": "read", "block_size": "256KiB", "iodepth": 4},
    {"rw": "randread", "block_size": 4096, "iodepth": 32},
    {"rw": "randread", "block_size": 1000, "iodepth": 7, "numjobs": 2},
    {"rw": "read", "block_size": 512, "iodepth": 1, "size": "128KiB"},
    {"rw": "randread", "block_size": "1MiB", "iodepth": 1},
]


@pytest.mark.parametrize("window", [None, "2MiB"])
def test_huge_pages_of_a_file_are_written_and_read(
    gdsfw: Gdsfw, backend: str, hugetlbfs: str, window: str | None
) -> None:
    more = {"backend_options": {backend: {"window_bytes": window, "map_share": 1e-4}}} if window else {}
    ended = gdsfw.run(
        job("w", rw="randwrite", size="6MiB", block_size="64KiB", iodepth=16, **more),
        job("r", rw="randread", files_from="w", block_size=4096, iodepth=16, **more),
        backend=backend,
        directory=hugetlbfs,
    )
    assert [result["transport"]["kind"] for result in ended.jobs] == ["mapped"] * 2
    assert ended.jobs[1]["verify"]["checked_bytes"] == 6 << 20


def test_a_file_of_huge_pages_is_laid_out_and_its_size_must_be_whole_pages(
    gdsfw: Gdsfw, backend: str, hugetlbfs: str
) -> None:
    ended = gdsfw.run(job("r", rw="read", size="4MiB", block_size="64KiB"), backend=backend, directory=hugetlbfs)
    assert ended.jobs[0]["verify"]["checked_bytes"] == 4 << 20
    ended = gdsfw.run(job("w", rw="write", size="1MiB"), backend=backend, directory=hugetlbfs, code=3)
    assert "1048576 bytes are no whole number of huge pages of 2097152 bytes" in ended.stderr
    plain = {"name": "p", "rw": "write", "size": "2MiB", "backend": "posix"}
    ended = gdsfw.run(plain, directory=hugetlbfs, code=1)
    assert "hugetlbfs takes no write, only a mapping" in ended.stderr


@pytest.mark.parametrize("window", [None, 1 << 16])
def test_reads_of_any_shape_verify(gdsfw: Gdsfw, backend: str, disk: str, window: int | None) -> None:
    options: dict[str, Any] = {"window_bytes": window, "map_share": 1e-4} if window else {}
    reads = [
        {**job(f"r{i}", size="4MiB", filename="f", stage=f"s{i}", backend_options={backend: options}), **shape}
        for i, shape in enumerate(SHAPES)
    ]
    write = {**job("w", rw="write", size="4MiB", filename="f"), "io_path": "staged", "iodepth": 4}
    ended = gdsfw.run(write, *reads, backend=backend, directory=disk)
    for result, shape in zip(ended.jobs[1:], SHAPES, strict=True):
        size = (128 << 10) if "size" in shape else 4 << 20
        assert result["verify"]["checked_bytes"] == size * int(shape.get("numjobs", 1))
        assert result["transport"]["kind"] == "mapped"
        assert result["transport"]["details"]["registered_bytes"] >= size


def test_bandwidth_is_given_with_registration_too_and_files_of_all_workers_count(
    gdsfw: Gdsfw, backend: str, disk: str
) -> None:
    write = {**job("w", rw="write", size="2MiB", numjobs=2), "io_path": "staged"}
    ended = gdsfw.run(write, job("r", rw="read", files_from="w", numjobs=2), backend=backend, directory=disk)
    written, read = ended.jobs
    transport = read["transport"]
    assert transport["details"]["registered_bytes"] == 2 * (2 << 20)
    assert transport["setup_seconds"] == transport["details"]["registration_seconds"] > 0
    seconds = transport["setup_seconds"] + read["read"]["runtime_ns"] / 1e9
    assert transport["bw_bytes_with_setup"] == pytest.approx(read["read"]["bytes"] / seconds)
    assert written["transport"]["bw_bytes_with_setup"] is None
    assert "of registration included" in ended.stdout


def test_windows_are_registered_within_the_measured_time(gdsfw: Gdsfw, backend: str, disk: str) -> None:
    options = {backend: {"window_bytes": "64KiB", "map_share": 1e-4}}
    write = {**job("w", rw="write", size="2MiB"), "io_path": "staged"}
    read = job("r", rw="read", files_from="w", backend_options=options)
    ended = gdsfw.run(write, read, backend=backend, directory=disk)
    transport = ended.jobs[1]["transport"]
    assert transport["details"]["registrations"] >= 32
    assert transport["setup_seconds"] == 0
    assert transport["bw_bytes_with_setup"] is None


@pytest.mark.parametrize("block", [4096, 3000, 1 << 18])
def test_what_mapped_writes_on_tmpfs_the_cpu_reads(gdsfw: Gdsfw, backend: str, tmpfs: str, block: int) -> None:
    ended = gdsfw.run(
        job("w", rw="randwrite", size="3MiB", block_size=block, iodepth=16),
        job("r", rw="randread", files_from="w", block_size=4096, iodepth=16),
        {**job("cpu", rw="read", files_from="w"), "backend": "posix", "io_path": "auto"},
        backend=backend,
        directory=tmpfs,
    )
    assert (Path(tmpfs) / "w.0.0").stat().st_size == 3 << 20
    assert [result["verify"]["checked_bytes"] for result in ended.jobs[1:]] == [3 << 20] * 2
    assert ended.jobs[0]["transport"]["kind"] == "mapped"


def test_writing_a_disks_file_is_refused_with_what_works(gdsfw: Gdsfw, backend: str, disk: str) -> None:
    ended = gdsfw.run(job("w", rw="write", size="1MiB"), backend=backend, directory=disk, code=3)
    assert "cannot be registered with the device" in ended.stderr
    assert "use io_path staged for writes" in ended.stderr


def test_direct_is_refused_before_anything_runs(gdsfw: Gdsfw, backend: str, disk: str) -> None:
    ended = gdsfw.run(job("r", rw="read", size="1MiB", direct=True), backend=backend, directory=disk, code=2)
    assert "direct: true, but io_path mapped works on the file's pages" in ended.stderr


@pytest.mark.parametrize("block", [4096, 1 << 18])
def test_a_flipped_bit_is_found_in_device_memory(gdsfw: Gdsfw, backend: str, disk: str, block: int) -> None:
    write = {**job("w", rw="write", size="1MiB"), "io_path": "staged"}
    gdsfw.run(write, backend=backend, directory=disk)
    file = Path(disk) / "w.0.0"
    content = bytearray(file.read_bytes())
    content[777_777] ^= 0x10
    with file.open("r+b") as stream:
        stream.write(content)
    read = job("r", rw="read", filename=str(file), block_size=block, iodepth=4)
    ended = gdsfw.run(read, backend=backend, directory=disk, code=1)
    (mismatch,) = ended.jobs[0]["verify"]["mismatches"]
    assert (mismatch["file_offset"], mismatch["bad_bytes"]) == (777_777, 1)
    assert int(mismatch["found"][:2], 16) == content[777_777]
    assert int(mismatch["expected"][:2], 16) == content[777_777] ^ 0x10


@pytest.mark.parametrize("how", ["shrunk", "removed"])
def test_a_file_that_changes_while_mapped_fails_the_job(gdsfw: Gdsfw, backend: str, disk: str, how: str) -> None:
    read = job("r", rw="randread", size="4MiB", block_size="256KiB", iodepth=2, runtime="20s", verify=False)
    file = Path(disk) / "r.0.0"

    def change() -> None:
        deadline = time.monotonic() + 15
        while not file.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(1.5)
        if how == "removed":
            file.unlink()
        else:
            os.truncate(file, 4096)

    helper = threading.Thread(target=change)
    helper.start()
    ended = gdsfw.run(read, backend=backend, directory=disk, code=1)
    helper.join()
    assert ended.jobs[0]["errors"][0]["name"] == "ESTALE"


def test_without_a_compiler_the_copy_engine_does_it(
    gdsfw: Gdsfw, backend: str, disk: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.environ.get("CUDA_STANDIN") is None:
        pytest.skip("a real machine's compiler is not to be taken away")
    monkeypatch.setenv("CXX", "/bin/false")
    write = {**job("w", rw="write", size="1MiB"), "io_path": "staged"}
    read = job("r", rw="randread", files_from="w", block_size=4096, iodepth=8)
    repeats = {"name": "d", "rw": "write", "size": "64KiB", "io_path": "staged", "buffer_dedupe": 50}
    ended = gdsfw.run(write, read, repeats, backend=backend, directory=disk)
    assert ended.jobs[1]["verify"]["checked_bytes"] == 1 << 20
    assert any("no device kernels" in note for note in ended.jobs[1]["notes"])
    assert any("buffer_dedupe is not kept" in note for note in ended.jobs[2]["notes"])


def test_auto_maps_what_is_read_again_and_again(gdsfw: Gdsfw, backend: str, disk: str) -> None:
    read = {**job("r", rw="randread", size="1MiB", block_size=4096, direct=False), "io_path": "auto"}
    ended = gdsfw.run({**read, "io_size": "4MiB"}, {**read, "name": "once"}, backend=backend, directory=disk)
    assert [result["transport"]["kind"] for result in ended.jobs] == ["mapped", "staged"]


def test_kernels_are_compiled_once_and_kept(gdsfw: Gdsfw, backend: str, disk: str, tmp_path: Path) -> None:
    if kernels.compiler() is None and "CUDA_STANDIN" in os.environ:
        pytest.skip("no C++ compiler")
    read = job("r", rw="randread", size="64KiB", block_size=4096, iodepth=4)
    gdsfw.run(read, backend=backend, directory=disk)
    (kept,) = (tmp_path / "cache" / "gdsfw" / "kernels").iterdir()
    before = kept.stat().st_mtime_ns
    gdsfw.run(read, backend=backend, directory=disk)
    assert kept.stat().st_mtime_ns == before
    kept.write_bytes(b"\0" * 64)  # not what was kept: compiled again
    gdsfw.run(read, backend=backend, directory=disk)
    assert kept.stat().st_size > 64
