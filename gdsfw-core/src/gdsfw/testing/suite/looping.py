"""Under the loops that measure: the same bytes, whichever loop drives the path, alone or beside others."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from gdsfw.backend import Pattern
from gdsfw.engine.pattern import fill
from gdsfw.engine.spec import EndedBy
from gdsfw.testing.loops import PATTERN_SEED, accounts, loop_of, run_loop
from gdsfw.testing.subject import FILE_ID
from gdsfw.testing.suite.common import data, each_way, note, same

if TYPE_CHECKING:
    from gdsfw.testing.subject import Subject

MIB = 1 << 20
#: No multiple of any block, so that the last one is cut.
ODD_SIZE = MIB + 1000
WORKERS = 32


class TestLoops:
    """One worker."""

    def test_a_loop_moves_as_many_bytes_as_it_says(self, subject: Subject) -> None:
        for rig, driver, _ in each_way(subject, block=4096):
            for rw in ("write", "read"):
                result = run_loop(rig, driver, rw=rw, block=4096, verify=None, write_fill="random")
                assert result.ended_by is EndedBy.IO_SIZE, result.errors
                assert (result.total_ios, result.total_bytes) == (256, MIB)

    @pytest.mark.parametrize("block", [4096, 5000, 65536])
    def test_every_block_is_written_and_verified(self, subject: Subject, block: int) -> None:
        subject.need("data")
        for rig, driver, _ in each_way(subject, nbytes=ODD_SIZE, block=block):
            for rw in ("write", "read"):
                result = run_loop(rig, driver, rw=rw, block=block, nbytes=ODD_SIZE)
                assert result.ended_by is EndedBy.IO_SIZE, result.errors
                assert result.total_bytes == ODD_SIZE
            assert result.verify is not None
            assert result.verify.bad_blocks == 0, result.verify.mismatches
            assert result.verify.checked_bytes == result.verify.expected_bytes == ODD_SIZE

    def test_reads_and_writes_together(self, subject: Subject) -> None:
        subject.need("data")
        for rig, driver, _ in each_way(subject, block=4096):
            run_loop(rig, driver, rw="write", block=4096)
            result = run_loop(rig, driver, rw="readwrite", block=4096, loops=2)
            assert result.ended_by is EndedBy.IO_SIZE, result.errors
            assert result.read.bytes
            assert result.write.bytes
            assert result.verify is not None
            assert result.verify.bad_blocks == 0, result.verify.mismatches

    def test_several_files_in_turn(self, subject: Subject) -> None:
        subject.need("data")
        for path in subject.paths():
            with subject.rig(io_path=path, names=["a", "b", "c"], nbytes=65536, block=4096) as rig:
                for driver in rig.calls:
                    run_loop(rig, driver, rw="write", block=4096, nbytes=65536)
                    result = run_loop(rig, driver, rw="read", block=4096, nbytes=65536)
                    assert result.verify is not None
                    assert result.verify.bad_blocks == 0, (path, driver, result.verify.mismatches)
                    assert result.verify.checked_bytes == 3 * 65536

    @pytest.mark.parametrize(
        "damage", ["flipped bit", "hole", "swapped blocks", "torn block", "other seed", "other file"]
    )
    def test_verification_finds_planted_damage(self, subject: Subject, damage: str) -> None:
        """Or the tests above would say nothing."""
        subject.need("data")
        for rig, driver, _ in each_way(subject, block=4096):
            run_loop(rig, driver, rw="write", block=4096)
            good = {at: rig.read(at, 4096) for at in (8192, 40960)}
            planted = _damaged(damage, good)
            for at, block in planted.items():
                rig.write(at, block)
            verify = run_loop(rig, driver, rw="read", block=4096).verify
            assert verify is not None
            assert verify.bad_blocks == len(planted), verify.mismatches
            for bad in verify.mismatches:
                at = bad.file_offset // 4096 * 4096
                first = bad.file_offset - at
                same(planted[at][:first], good[at][:first], "bytes before the mismatch")
                assert planted[at][first] != good[at][first]
                assert bad.expected == good[at][first : first + len(bad.expected)]
                assert bad.found == planted[at][first : first + len(bad.found)]
                wrong = sum(a != b for a, b in zip(planted[at], good[at], strict=True))
                assert bad.bad_bytes == wrong

    def test_a_loop_flushes_at_its_end(self, subject: Subject) -> None:
        subject.need("flush")
        for rig, driver, _ in each_way(subject, block=4096):
            terms = {"end_fsync": True, "fsync_every": 100, **_unverified(subject)}
            result = run_loop(rig, driver, rw="write", block=4096, **terms)
            assert result.ended_by is EndedBy.IO_SIZE, result.errors
            assert result.flushes == 3

    def test_a_stop_ends_the_loop(self, subject: Subject) -> None:
        for rig, driver, _ in each_way(subject, block=4096):
            endless = loop_of(rig, driver, rw="write", block=4096, runtime_ns=60 * 10**9, **_unverified(subject))
            timer = threading.Timer(0.1, endless.stop)
            timer.start()
            result = endless.run()
            timer.join()
            assert result.ended_by is EndedBy.STOP, result.errors
            assert result.error_count == 0, result.errors


class TestAgreement:
    """A native path moves the same bytes whether C or Python calls it."""

    def test_both_loops_do_the_same(self, subject: Subject) -> None:
        for path in _native_paths(subject):
            seen = {}
            for driver in ("native", "python"):
                note("path", path, "driven by the loop for", driver)
                with subject.rig(io_path=path, names=[driver], nbytes=ODD_SIZE, block=8192) as rig:
                    if "native" not in rig.calls:
                        continue
                    seen[driver] = [
                        accounts(run_loop(rig, driver, rw=rw, block=8192, nbytes=ODD_SIZE, **_unverified(subject)))
                        for rw in ("write", "read")
                    ]
            assert seen.get("python") == seen.get("native"), path

    def test_both_ways_of_calling_read_the_same(self, subject: Subject) -> None:
        subject.need("data")
        for path in _native_paths(subject):
            with subject.rig(io_path=path, names=[path], nbytes=100_000, block=131072) as rig:
                rig.write(0, data(100_000))
                for driver, io in rig.calls.items():
                    same(rig.read(12_345, 131_072 - 12_345, io=io), data(100_000)[12_345:], (path, driver))

    def test_both_loops_meet_the_end_of_a_file_alike(self, subject: Subject) -> None:
        subject.need("data")
        for path in _native_paths(subject):
            with subject.rig(io_path=path, names=[path], nbytes=10_000, block=4096) as rig:
                rig.write(0, data(10_000)[:4096])
                rig.write(4096, data(10_000)[4096:8192])
                rig.write(8192, data(10_000)[8192:])
            with subject.rig(io_path=path, names=[path], nbytes=10_000, block=4096, rw="read") as rig:
                results = [
                    run_loop(rig, driver, rw="read", block=4096, nbytes=65536, random=False, verify=None)
                    for driver in ("native", "python")
                    if "native" in rig.calls
                ]
                for result in results:
                    assert (result.ended_by, result.error_count) == (EndedBy.ERROR, 1), path
                assert len({(result.errors, result.read.bytes) for result in results}) <= 1, path


class TestWorkers:
    """32 workers in one process, by gdsfw's own runner."""

    def test_thirty_two_workers_with_files_of_their_own(self, subject: Subject) -> None:
        common = {"size": "64KiB", "block_size": "4KiB", "numjobs": WORKERS, **_verified(subject)}
        jobs = subject.run({"name": "write", "rw": "write", **common}, _reading("write", common))
        for job in jobs:
            assert job.errors == []
            assert job.exit_code == 0, job.notes
            assert job.total_bytes == WORKERS * 65536
            assert len(job.workers) == WORKERS

    def test_thirty_two_workers_on_one_file(self, subject: Subject) -> None:
        subject.need("shared_files")
        common = {"size": "2MiB", "block_size": "4KiB", "numjobs": WORKERS, "share": "split", **_verified(subject)}
        jobs = subject.run(
            {"name": "write", "rw": "randwrite", "filename": "shared", **common},
            {**_reading("write", common), "file_handles": "shared"},
            {**_reading("write", common), "name": "again", "file_handles": "per_worker"},
        )
        for job in jobs:
            assert job.errors == []
            assert job.exit_code == 0, job.notes
            assert job.total_bytes == 2 << 20

    def test_every_path_in_one_run_after_another(self, subject: Subject) -> None:
        """What one path wrote another one verifies, as a user would do it."""
        common = {"size": "1MiB", "block_size": "64KiB", "numjobs": 2, **_verified(subject)}
        for path in subject.paths():
            jobs = subject.run(
                {"name": "write", "rw": "write", "io_path": path, **common},
                *({**_reading("write", common), "name": f"by-{other}", "io_path": other} for other in subject.paths()),
            )
            assert [(job.label, job.exit_code, job.errors) for job in jobs if job.exit_code] == []


def _damaged(damage: str, good: dict[int, bytes]) -> dict[int, bytes]:
    """Blocks to write over two good ones, by offset in the file."""
    block, other = good[8192], good[40960]
    if damage == "flipped bit":
        return {8192: block[:1000] + bytes([block[1000] ^ 1]) + block[1001:]}
    if damage == "hole":
        return {8192: bytes(4096)}
    if damage == "swapped blocks":
        return {8192: other, 40960: block}
    wrong = bytearray(4096)
    file_id, seed = (FILE_ID + 1, PATTERN_SEED) if damage == "other file" else (FILE_ID, PATTERN_SEED + 1)
    fill(memoryview(wrong), 8192, Pattern(seed, file_id))
    return {8192: block[:1536] + bytes(wrong[1536:]) if damage == "torn block" else bytes(wrong)}


def _native_paths(subject: Subject) -> list[str]:
    paths = [path.name for path in subject.info.io_paths if path.native]
    found = [name for name in subject.paths() if name in paths]
    if not found:
        pytest.skip(f"backend {subject.name} declares no native path in io_paths")
    return found


def _unverified(subject: Subject) -> dict[str, Any]:
    return {} if "data" in subject.info.capabilities else {"verify": None, "write_fill": "random"}


def _verified(subject: Subject) -> dict[str, Any]:
    """Jobs verify where there is data; where nothing can be flushed they do not ask for it."""
    found: dict[str, Any] = {"verify": True} if "data" in subject.info.capabilities else {}
    return found if "flush" in subject.info.capabilities else {**found, "end_fsync": False}


def _reading(source: str, common: dict[str, Any]) -> dict[str, Any]:
    rest = {key: value for key, value in common.items() if key not in ("size", "end_fsync", "share")}
    return {"name": "read", "rw": "randread", "files_from": source, "share": "split", **rest}
