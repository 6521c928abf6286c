"""GPU paths on a real GPU: every path moves the right bytes and says which way they took."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gdsfw import open_session
from helpers.running import Gdsfw

pytestmark = pytest.mark.gpu

#: Backend by the file that its driver makes.
DRIVERS = {"cufile": Path("/proc/driver/nvidia/gpus"), "hipfile": Path("/dev/kfd")}
PRESENT = [name for name, path in DRIVERS.items() if path.exists()]
if not PRESENT:
    pytest.skip(f"this machine has no GPU ({' or '.join(map(str, DRIVERS.values()))})", allow_module_level=True)
BACKEND = PRESENT[0]

PATHS = [("sync", 1), ("batch", 16), ("stream", 8), ("staged", 1), ("staged", 64), ("auto", 8)]
SIZES = [4096, 65536, 1 << 20]


@pytest.fixture
def gdsfw(tmp_path: Path) -> Iterator[Gdsfw]:
    """Data lies on the disk that GDSFW_GPU_DIRECTORY names: cuFile refuses tmpfs."""
    driver = Gdsfw(tmp_path)
    yield driver
    driver.close()


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[str]:
    base = os.environ.get("GDSFW_GPU_DIRECTORY")
    folder = Path(base) / f"gdsfw-test-{os.getpid()}" if base else tmp_path / "data"
    folder.mkdir(parents=True)
    yield str(folder)
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()


def job(name: str, path: str, depth: int, **more: Any) -> dict[str, Any]:
    return {"name": name, "io_path": path, "iodepth": depth, "verify": True, "numjobs": 2, "io_timeout": "10s", **more}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("path", "depth"), PATHS)
def test_what_one_path_writes_another_reads(gdsfw: Gdsfw, directory: str, path: str, depth: int, size: int) -> None:
    """Written by this path, read by this path and by the CPU: the same bytes."""
    ended = gdsfw.run(
        job("w", path, depth, rw="write", size="8MiB", block_size=size),
        job("r", path, depth, rw="randread", files_from="w", share="split", block_size=size),
        {**job("cpu", "auto", 1, rw="read", files_from="w", share="split", block_size="1MiB"), "backend": "posix"},
        backend=BACKEND,
        directory=directory,
    )
    for result in ended.jobs[1:]:
        assert result["verify"]["checked_bytes"] == 16 << 20
        assert result["verify"]["bad_blocks"] == 0
    assert ended.jobs[2]["transport"]["kind"] == "host"


@pytest.mark.parametrize(("path", "depth"), PATHS)
def test_a_flipped_bit_is_found_in_gpu_memory(gdsfw: Gdsfw, directory: str, path: str, depth: int) -> None:
    gdsfw.run(job("w", path, depth, rw="write", size="1MiB", numjobs=1), backend=BACKEND, directory=directory)
    file = Path(directory) / "w.0.0"
    data = bytearray(file.read_bytes())
    data[777_777] ^= 0x10
    with file.open("r+b") as stream:
        stream.write(data)
    read = job("r", path, depth, rw="read", filename=str(file), numjobs=1)
    ended = gdsfw.run(read, backend=BACKEND, directory=directory, code=1)
    (mismatch,) = ended.jobs[0]["verify"]["mismatches"]
    assert mismatch["file_offset"] == 777_777
    assert mismatch["bad_bytes"] == 1


@pytest.mark.parametrize("path", ["sync", "staged"])
@pytest.mark.parametrize("nbytes", [1, 4097, (1 << 20) + 511])
def test_files_of_any_size(gdsfw: Gdsfw, directory: str, path: str, nbytes: int) -> None:
    ended = gdsfw.run(
        job("w", path, 2, rw="write", size=nbytes, block_size=min(nbytes, 65536), numjobs=1),
        job("r", path, 2, rw="read", files_from="w", block_size=min(nbytes, 4096), numjobs=1),
        backend=BACKEND,
        directory=directory,
    )
    assert (Path(directory) / "w.0.0").stat().st_size == nbytes
    assert ended.jobs[1]["verify"]["checked_bytes"] == nbytes


def test_staged_works_on_tmpfs(gdsfw: Gdsfw) -> None:
    folder = Path(f"/dev/shm/gdsfw-test-{os.getpid()}")
    folder.mkdir()
    try:
        ended = gdsfw.run(
            job("w", "staged", 8, rw="write", size="4MiB"),
            job("r", "staged", 8, rw="read", files_from="w", share="split"),
            backend=BACKEND,
            directory=str(folder),
        )
    finally:
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
    assert ended.jobs[1]["transport"]["kind"] == "staged"
    assert ended.jobs[1]["verify"]["bad_blocks"] == 0


def test_a_transport_that_is_not_there_fails_before_measuring(gdsfw: Gdsfw, directory: str) -> None:
    if Path("/proc/driver/nvidia-fs/stats").exists():
        pytest.skip("nvidia-fs is loaded: peer-to-peer may be possible here")
    read = job("r", "sync", 1, rw="read", size="1MiB", require_transport="p2p", verify=False)
    ended = gdsfw.run(read, backend=BACKEND, directory=directory, code=3)
    assert "require_transport is p2p, but a test read went by compat" in ended.stdout + ended.stderr
    assert ended.jobs[0]["read"]["ios"] == 0


def test_a_device_that_is_not_there_is_a_mistake(gdsfw: Gdsfw, directory: str) -> None:
    read = job("r", "staged", 1, rw="read", size="1MiB", devices=[7])
    ended = gdsfw.run(read, backend=BACKEND, directory=directory, code=2)
    assert "7" in ended.stderr
    assert "0" in ended.stderr


def test_a_batch_deeper_than_the_library_holds_is_refused(gdsfw: Gdsfw, directory: str) -> None:
    read = job("r", "batch", 256, rw="read", size="8MiB")
    ended = gdsfw.run(read, backend=BACKEND, directory=directory, code=2)
    assert "iodepth 256 exceeds the batch maximum" in ended.stdout + ended.stderr


def test_no_log_is_left_in_the_working_directory(gdsfw: Gdsfw, directory: str) -> None:
    gdsfw.run(job("r", "sync", 1, rw="read", size="1MiB"), backend=BACKEND, directory=directory)
    assert {path.name for path in gdsfw.folder.iterdir()} <= {"workload.yaml", "result.json", "data"}


def test_torch_reads_a_mapped_file_and_one_read_in_blocks(directory: str) -> None:
    """The page cache as a tensor by both interfaces, and read_many into a tensor's memory; lifetimes are kept."""
    torch: Any = pytest.importorskip("torch")
    path = Path(directory) / "weights"
    data = random.Random(7).randbytes(8 << 20)
    path.write_bytes(data)
    expected = torch.frombuffer(bytearray(data), dtype=torch.uint8).cuda()
    with open_session(BACKEND) as session:
        view = session.map(path)
        tensor = torch.from_dlpack(view)
        assert tensor.device.type == "cuda"
        assert bool(torch.equal(tensor, expected))
        with pytest.raises(BufferError):
            view.close()
        del tensor
        with pytest.raises(TypeError, match="read only"):  # torch's own: only DLPack can hand it read-only memory
            torch.as_tensor(view, device="cuda")
        view.close()
        out = torch.empty(256 * 4096, dtype=torch.uint8, device="cuda")
        offsets = [random.Random(8).randrange(2000) * 4096 for _ in range(256)]
        for io_path in ("mapped", "staged", "auto"):
            out.zero_()
            torch.cuda.synchronize()
            assert session.read_many(path, offsets, 4096, out, io_path=io_path, iodepth=64) == out.numel()
            wanted = torch.cat([expected[at : at + 4096] for at in offsets])
            assert bool(torch.equal(out, wanted)), io_path
