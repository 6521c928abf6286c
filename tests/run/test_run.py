"""Runs on real files, as a user starts them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.running import Gdsfw

MIB = 1 << 20


def test_a_write_job_leaves_files_of_the_planned_size(gdsfw: Gdsfw) -> None:
    ended = gdsfw.run({"name": "w", "rw": "write", "size": "1MiB", "numjobs": 2, "block_size": "64KiB"})
    (job,) = ended.jobs
    assert job["status"] == "done"
    assert job["write"]["bytes"] == 2 * MIB
    assert job["write"]["ios"] == 32
    assert job["ended_by"] == "io_size"
    assert [path.stat().st_size for path in sorted((gdsfw.folder / "data").glob("w.*"))] == [MIB, MIB]


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("tail", [1, 511, 4097])
def test_files_of_any_size_are_written_and_verified_to_the_last_byte(gdsfw: Gdsfw, tail: int, direct: bool) -> None:
    if direct and _no_direct(gdsfw.folder):
        pytest.skip("no direct I/O on the temporary folder's file system")
    nbytes = MIB + tail
    write = {"name": "w", "rw": "write", "size": nbytes, "block_size": "64KiB", "verify": True, "direct": direct}
    read = {"name": "r", "rw": "read", "files_from": "w", "block_size": "128KiB", "verify": True, "direct": direct}
    ended = gdsfw.run(write, read)
    assert (gdsfw.folder / "data/w.0.0").stat().st_size == nbytes
    assert ended.jobs[0]["write"]["bytes"] == nbytes
    assert ended.jobs[1]["verify"]["checked_bytes"] == nbytes
    assert ended.jobs[1]["verify"]["bad_blocks"] == 0


def test_bytes_equal_what_the_kernel_counted(gdsfw: Gdsfw) -> None:
    """rchar of /proc/self/io counts every read(2) of the process: the runner's own small reads come on top."""
    workload = gdsfw.write(
        {"name": "r", "rw": "randread", "size": "8MiB", "numjobs": 2, "direct": False, "block_size": "16KiB"}
    )
    script = (
        "import sys, gdsfw\n"
        "def rchar(): return int(open('/proc/self/io').readline().split()[1])\n"
        "workload = gdsfw.load(sys.argv[1])\n"
        "gdsfw.run(workload)\n"  # layout and imports
        "before = rchar()\n"
        "result = gdsfw.run(workload)\n"
        "print(rchar() - before, result.jobs[0].read.bytes)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(workload)], cwd=gdsfw.folder, capture_output=True, text=True, check=True
    )
    counted, reported = map(int, done.stdout.split())
    assert reported == 16 * MIB
    assert reported <= counted < reported + MIB


def test_a_read_job_lays_out_its_files_once_and_reuses_them(gdsfw: Gdsfw) -> None:
    job = {"name": "r", "rw": "read", "size": "2MiB", "block_size": "1MiB"}
    first = gdsfw.run(job)
    assert any("laid out" in note for note in first.jobs[0]["notes"])
    inode = (gdsfw.folder / "data/r.0.0").stat().st_ino
    second = gdsfw.run(job)
    assert not any("laid out" in note for note in second.jobs[0]["notes"])
    assert (gdsfw.folder / "data/r.0.0").stat().st_ino == inode


def test_laid_out_data_is_not_compressible(gdsfw: Gdsfw) -> None:
    import zlib

    gdsfw.run({"name": "r", "rw": "read", "size": "1MiB", "block_size": "1MiB"})
    data = (gdsfw.folder / "data/r.0.0").read_bytes()
    assert len(zlib.compress(data)) > 0.99 * len(data)


def test_written_data_is_not_compressible_and_does_not_repeat(gdsfw: Gdsfw) -> None:
    import zlib

    gdsfw.run({"name": "w", "rw": "write", "size": "1MiB", "block_size": "4KiB"})
    data = (gdsfw.folder / "data/w.0.0").read_bytes()
    assert len({data[at : at + 4096] for at in range(0, len(data), 4096)}) == 256
    assert len(zlib.compress(data)) > 0.99 * len(data)


def test_a_mixed_job_keeps_its_shares(gdsfw: Gdsfw) -> None:
    ended = gdsfw.run(
        {"name": "m", "rw": "randrw", "rwmixread": 70, "size": "16MiB", "verify": True, "random": {"seed": 5}}
    )
    (job,) = ended.jobs
    assert job["read"]["ios"] + job["write"]["ios"] == 4096
    assert 0.66 < job["read"]["ios"] / 4096 < 0.74
    assert job["verify"]["checked_bytes"] == job["read"]["bytes"]


def test_a_users_file_is_read_as_it_is(gdsfw: Gdsfw) -> None:
    path = gdsfw.folder / "mine"
    path.write_bytes(os.urandom(300_000))
    before = path.stat()
    ended = gdsfw.run({"name": "r", "rw": "read", "filename": str(path), "block_size": "64KiB", "numjobs": 2})
    assert ended.jobs[0]["read"]["bytes"] == 600_000
    after = path.stat()
    assert (after.st_size, after.st_mtime_ns, after.st_ino) == (before.st_size, before.st_mtime_ns, before.st_ino)


def test_a_file_shorter_than_the_job_is_not_extended(gdsfw: Gdsfw) -> None:
    path = gdsfw.folder / "mine"
    path.write_bytes(b"x" * 1000)
    ended = gdsfw.run({"name": "r", "rw": "read", "filename": str(path), "size": "1MiB"}, code=2)
    assert "1000" in ended.stderr
    assert path.stat().st_size == 1000


def test_a_missing_file_is_named(gdsfw: Gdsfw) -> None:
    ended = gdsfw.run({"name": "r", "rw": "read", "filename": str(gdsfw.folder / "absent"), "size": "4KiB"}, code=3)
    assert "absent" in ended.stderr + ended.stdout
    assert not (gdsfw.folder / "absent").exists()


def test_writing_to_a_users_file_ends_with_4(gdsfw: Gdsfw) -> None:
    path = gdsfw.folder / "mine"
    path.write_bytes(b"precious")
    ended = gdsfw.run({"name": "w", "rw": "write", "filename": str(path), "size": "64KiB"}, code=4)
    assert "allow_overwrite" in ended.stdout + ended.stderr
    assert path.read_bytes() == b"precious"


@pytest.mark.parametrize(
    "damage",
    ["flip one bit", "zero a block", "swap two blocks", "older run", "another file's block"],
)
def test_damage_between_two_runs_is_found(gdsfw: Gdsfw, damage: str) -> None:
    write = {"name": "w", "rw": "write", "size": "1MiB", "block_size": "64KiB", "verify": True, "numjobs": 2}
    read = {**write, "name": "r", "rw": "read", "files_from": "w", "block_size": "16KiB", "share": "split"}
    del read["size"]
    if damage == "older run":
        gdsfw.run(write)
    path = gdsfw.folder / "data/w.0.0"
    old = path.read_bytes() if path.exists() else b""
    gdsfw.run(write)
    data = bytearray(path.read_bytes())
    if damage == "flip one bit":
        data[500_000] ^= 1
    elif damage == "zero a block":
        data[65536:131072] = bytes(65536)
    elif damage == "swap two blocks":
        data[0:4096], data[8192:12288] = data[8192:12288], data[0:4096]
    elif damage == "older run":
        data[0:4096] = old[0:4096]
    else:
        data[0:4096] = (gdsfw.folder / "data/w.1.0").read_bytes()[0:4096]
    with path.open("r+b") as file:
        file.write(data)
    document = json.loads(gdsfw.write(write, read).read_text())
    document["jobs"] = [{**read, "files_from": None, "filename": str(path)}]
    document["jobs"][0].pop("files_from")
    document["jobs"][0]["numjobs"] = 1
    (gdsfw.folder / "workload.yaml").write_text(json.dumps(document))
    ended = gdsfw.ended(gdsfw.start(gdsfw.folder / "workload.yaml"))
    assert ended.code == 1, ended.stderr + ended.stdout
    verify = ended.jobs[0]["verify"]
    assert verify["bad_blocks"] >= 1
    assert verify["mismatches"][0]["file"] == str(path)
    assert verify["mismatches"][0]["expected"] != verify["mismatches"][0]["found"]


def test_equal_seeds_give_equal_files(gdsfw: Gdsfw) -> None:
    """The order of I/O is a function of the workload alone."""
    job = {"name": "n", "backend": "noop", "rw": "randrw", "size": "4MiB", "block_size": ["4KiB", "16KiB"]}
    job["block_size"] = "4KiB-16KiB"
    first, second = (gdsfw.run(job).jobs[0] for _ in range(2))
    for side in ("read", "write"):
        assert first[side]["ios"] == second[side]["ios"]
        assert first[side]["bytes"] == second[side]["bytes"]


def test_json_leaves_stdout_to_the_document(gdsfw: Gdsfw) -> None:
    path = gdsfw.write({"name": "n", "backend": "noop", "rw": "read", "size": "1MiB"})
    done = subprocess.run(
        [sys.executable, "-m", "gdsfw", "run", str(path), "--json"],
        cwd=gdsfw.folder,
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["schema"] == "gdsfw-results/1"
    assert not (gdsfw.folder / "gdsfw-results").exists()


def test_a_plan_does_no_io(gdsfw: Gdsfw) -> None:
    path = gdsfw.write({"name": "w", "rw": "write", "size": "1MiB"})
    done = subprocess.run(
        [sys.executable, "-m", "gdsfw", "run", str(path), "--plan"],
        cwd=gdsfw.folder,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "w.0.0" in done.stdout
    assert [entry.name for entry in gdsfw.folder.iterdir()] == ["workload.yaml"]


def test_a_result_does_not_replace_another_file(gdsfw: Gdsfw) -> None:
    mine = gdsfw.folder / "thesis.txt"
    mine.write_text("years of work")
    path = gdsfw.write({"name": "n", "backend": "noop", "rw": "read", "size": "1MiB"})
    done = subprocess.run(
        [sys.executable, "-m", "gdsfw", "run", str(path), "-o", str(mine)],
        cwd=gdsfw.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "--force" in done.stderr
    assert mine.read_text() == "years of work"


def _no_direct(folder: Path) -> bool:
    probe = folder / "probe"
    probe.write_bytes(bytes(4096))
    from gdsfw.backend import Target
    from gdsfw.storage.safe_open import close_file, open_target

    handle = open_target(Target(str(probe), 1, 4096), "r")
    close_file(handle)
    return not handle.direct


def test_a_file_written_in_part_is_verified_in_part(gdsfw: Gdsfw) -> None:
    """A write job that its runtime ended leaves blocks that nobody wrote: those are unknown, not corrupt."""
    write = {
        "name": "w", "rw": "randwrite", "size": "64MiB", "block_size": "64KiB", "verify": True,
        "runtime": "200ms", "rate_iops": 1000,
    }  # fmt: skip
    written = gdsfw.run(write).jobs[0]
    assert written["ended_by"] == "runtime"
    nbytes, known = 64 * MIB, written["write"]["bytes"]
    assert 0 < known < nbytes
    path = gdsfw.folder / "data/w.0.0"
    read = {
        "name": "r", "rw": "read", "filename": str(path), "block_size": "1MiB", "verify": True,
        "numjobs": 2, "share": "split",
    }  # fmt: skip
    ended = gdsfw.run(read)
    verify = ended.jobs[0]["verify"]
    assert verify["checked_bytes"] == verify["expected_bytes"] == known
    assert verify["unknown_bytes"] == nbytes - known
    assert verify["bad_blocks"] == 0
    manifest = json.loads((gdsfw.folder / "data/.gdsfw-manifest.json").read_text())
    (start, length) = manifest["files"][0]["written"][-1]
    with path.open("r+b") as file:
        file.seek(start + length - 1)
        last = file.read(1)
        file.seek(start + length - 1)
        file.write(bytes([last[0] ^ 1]))
    damaged = gdsfw.run(read, code=1)
    (mismatch,) = damaged.jobs[0]["verify"]["mismatches"]
    assert (mismatch["file_offset"], mismatch["bad_bytes"]) == (start + length - 1, 1)


def test_a_file_that_no_verifying_job_wrote_is_not_verified(gdsfw: Gdsfw) -> None:
    gdsfw.run({"name": "w", "rw": "write", "size": "1MiB"})
    path = str(gdsfw.folder / "data/w.0.0")
    ended = gdsfw.run({"name": "r", "rw": "read", "filename": path, "verify": True}, code=3)
    assert "nothing of" in ended.jobs[0]["errors"][0]["message"]


def test_rewrites_counted_in_the_pattern_are_not_taken_for_the_old_pattern(gdsfw: Gdsfw) -> None:
    mix = {"name": "m", "rw": "randrw", "size": "1MiB", "verify": {"generations": True}}
    gdsfw.run(mix)
    path = str(gdsfw.folder / "data/m.0.0")
    gdsfw.run({"name": "r", "rw": "read", "filename": path, "verify": True}, code=3)


def test_a_killed_write_job_leaves_nothing_that_is_taken_for_the_pattern(gdsfw: Gdsfw) -> None:
    write = {"name": "w", "rw": "randwrite", "size": "1MiB", "verify": True, "runtime": "60s"}
    process = gdsfw.start_measuring(write)
    process.kill()
    gdsfw.ended(process)
    path = str(gdsfw.folder / "data/w.0.0")
    gdsfw.run({"name": "r", "rw": "read", "filename": path, "verify": True}, code=3)


@pytest.mark.parametrize(
    ("block_size", "nbytes", "direct"), [(512, 25757, False), (4096, 25757, True), (5000, 25000, False)]
)
def test_direct_and_buffered_writes_never_share_a_page(
    gdsfw: Gdsfw, block_size: int, nbytes: int, direct: bool
) -> None:
    """A buffered write of an odd end could write old bytes over what direct writes of the same page brought."""
    job = {"name": "w", "rw": "write", "size": nbytes, "block_size": block_size, "loops": 2, "verify": True}
    check = {"name": "r", "rw": "read", "files_from": "w", "block_size": 4096, "verify": True}
    for path in ("psync", "io_uring"):
        ended = gdsfw.run(job, check, io_path=path, iodepth=4)
        wrote, read = ended.jobs
        assert read["verify"]["bad_blocks"] == 0
        assert wrote["errors"] == []
        (evidence,) = wrote["transport"]["evidence"]
        if (
            evidence.startswith("direct I/O on")
            or "blocks come in steps of" in evidence
            or "are no multiples" in evidence
        ):
            assert evidence.startswith("direct I/O on") is direct  # elsewhere the file system takes no direct I/O


def test_direct_true_is_refused_where_an_odd_end_shares_a_page_with_blocks(gdsfw: Gdsfw) -> None:
    job = {"name": "w", "rw": "write", "size": 25757, "block_size": 512, "direct": True}
    ended = gdsfw.ended(gdsfw.start(gdsfw.write(job)))
    assert ended.code in (2, 3)
    assert "direct" in ended.stderr


def test_a_folder_that_takes_no_results_costs_none(gdsfw: Gdsfw) -> None:
    """Where gdsfw-results/ would be, a file of the user's is."""
    (gdsfw.folder / "gdsfw-results").write_text("mine")
    path = gdsfw.write({"name": "n", "backend": "noop", "rw": "read", "size": "1MiB"})
    kept = gdsfw.folder / "tmp"
    kept.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "gdsfw", "run", str(path)],
        cwd=gdsfw.folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "TMPDIR": str(kept)},
    )
    assert done.returncode == 0, done.stderr
    (rescued,) = kept.iterdir()
    assert json.loads(rescued.read_text())["status"] == "done"
    assert str(rescued) in done.stderr
