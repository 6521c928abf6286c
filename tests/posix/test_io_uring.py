"""Data through io_uring as users run it: every depth, direct and buffered, odd sizes, stops."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from helpers.running import Gdsfw

KIB, MIB = 1 << 10, 1 << 20
pytestmark = pytest.mark.usefixtures("_io_uring_works")


def _direct(folder: Path, wanted: bool) -> bool:
    try:
        os.close(os.open(folder / "probe", os.O_RDWR | os.O_CREAT | os.O_DIRECT, 0o600))
    except OSError:
        if wanted:
            pytest.skip("no direct I/O on the temporary folder's file system")
    finally:
        (folder / "probe").unlink(missing_ok=True)
    return wanted


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("depth", [1, 2, 16, 128])
@pytest.mark.parametrize("registered", ["once", "none"])
def test_what_is_written_at_a_depth_is_read_back(gdsfw: Gdsfw, depth: int, direct: bool, registered: str) -> None:
    nbytes = MIB + 513
    job: dict[str, Any] = {
        "io_path": "io_uring", "iodepth": depth, "block_size": "8KiB", "direct": _direct(gdsfw.folder, direct),
        "verify": True, "register_buffers": registered,
    }  # fmt: skip
    ended = gdsfw.run(
        {**job, "name": "w", "rw": "randwrite", "size": nbytes},
        {**job, "name": "r", "rw": "randread", "files_from": "w", "block_size": "4KiB"},
        {**job, "name": "p", "rw": "read", "files_from": "w", "io_path": "psync", "iodepth": 1, "invalidate": False},
    )
    write, read, plain = ended.jobs
    assert (write["io_path"], read["io_path"], plain["io_path"]) == ("io_uring", "io_uring", "psync")
    assert write["write"]["bytes"] == nbytes
    assert read["verify"]["checked_bytes"] == plain["verify"]["checked_bytes"] == nbytes
    assert read["verify"]["bad_blocks"] == plain["verify"]["bad_blocks"] == 0
    assert read["transport"]["details"]["io_uring"]["fixed_buffers"] == (registered == "once")


def test_mixed_overwrites_keep_their_generations(gdsfw: Gdsfw) -> None:
    ended = gdsfw.run(
        {
            "name": "m", "rw": "randrw", "size": "1MiB", "iodepth": 32, "block_size": "4KiB", "io_path": "io_uring",
            "verify": {"generations": True}, "loops": 4, "random": {"once_per_block": False},
        }
    )  # fmt: skip
    (job,) = ended.jobs
    assert job["verify"]["bad_blocks"] == 0
    assert job["verify"]["checked_bytes"] > 0


def test_a_flipped_bit_is_found_at_depth(gdsfw: Gdsfw) -> None:
    write = {"name": "w", "rw": "write", "size": "1MiB", "iodepth": 16, "block_size": "16KiB", "verify": True}
    gdsfw.run(write)
    path = gdsfw.folder / "data/w.0.0"
    data = bytearray(path.read_bytes())
    data[777_777] ^= 4
    with path.open("r+b") as file:  # the file that is known as gdsfw's, not another one of its name
        file.write(data)
    read = {**write, "name": "r", "rw": "read", "filename": str(path)}
    ended = gdsfw.run(read, code=1)
    (mismatch,) = ended.jobs[0]["verify"]["mismatches"]
    assert mismatch["file_offset"] == 777_777


def test_a_users_short_file_is_read_to_its_last_byte(gdsfw: Gdsfw) -> None:
    path = gdsfw.folder / "mine"
    path.write_bytes(os.urandom(100_003))
    job = {"name": "r", "rw": "read", "filename": str(path), "block_size": "64KiB", "iodepth": 8, "numjobs": 2}
    ended = gdsfw.run(job)
    assert ended.jobs[0]["io_path"] == "io_uring"
    assert ended.jobs[0]["read"]["bytes"] == 200_006


def test_a_file_truncated_under_a_deep_job_is_an_error_with_its_place(gdsfw: Gdsfw) -> None:
    job = {"name": "r", "rw": "randread", "size": "8MiB", "runtime": "30s", "direct": False, "iodepth": 32}
    process = gdsfw.start_measuring(job)
    os.truncate(gdsfw.folder / "data/r.0.0", 4096)
    ended = gdsfw.ended(process)
    assert ended.code == 1, ended.stderr
    assert ended.jobs[0]["errors"][0]["name"] == "ENODATA"


@pytest.mark.parametrize("rw", ["randread", "randwrite"])
def test_a_stop_with_requests_in_flight_keeps_partial_results(gdsfw: Gdsfw, rw: str) -> None:
    job = {
        "name": "s", "rw": rw, "size": "16MiB", "runtime": "60s", "iodepth": 64, "block_size": "64KiB", "numjobs": 2,
    }  # fmt: skip
    process = gdsfw.start_measuring(job)
    process.send_signal(signal.SIGINT)
    ended = gdsfw.ended(process)
    assert ended.code == 130, ended.stderr
    (result,) = ended.jobs
    assert result["ended_by"] == "stop"
    assert result["error_count"] == 0
    assert result["read" if rw == "randread" else "write"]["ios"] > 0


def test_flushes_between_writes_in_flight_are_counted(gdsfw: Gdsfw) -> None:
    job = {"name": "w", "rw": "write", "size": "1MiB", "iodepth": 8, "block_size": "16KiB", "fdatasync": 16}
    (result,) = gdsfw.run(job).jobs
    assert result["flushes"] >= 4
    assert (gdsfw.folder / "data/w.0.0").stat().st_size == MIB


@pytest.mark.parametrize("batch", [1, 16])
def test_result_shows_the_depth_asked_for_and_kept(gdsfw: Gdsfw, batch: int) -> None:
    job = {
        "name": "r", "rw": "randread", "size": "16MiB", "iodepth": 32, "iodepth_batch": batch, "direct": False,
        "loops": 4,
    }  # fmt: skip
    (result,) = gdsfw.run(job).jobs
    assert result["depth"]["asked"] == 32
    assert result["depth"]["achieved"] > 28
    assert not [line for line in result["warnings"] if "iodepth" in line]


def test_a_kernel_thread_may_submit(gdsfw: Gdsfw) -> None:
    job = {
        "name": "r", "rw": "randread", "size": "1MiB", "iodepth": 8, "io_path": "io_uring",
        "backend_options": {"posix": {"sqpoll": True, "sqpoll_idle_ms": 50}},
    }  # fmt: skip
    (result,) = gdsfw.run(job).jobs
    assert result["read"]["bytes"] == MIB
    assert result["transport"]["details"]["io_uring"] == {
        "fixed_buffers": True, "fixed_files": True, "sqpoll": True, "iopoll": False,
    }  # fmt: skip
