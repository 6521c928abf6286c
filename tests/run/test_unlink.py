"""`unlink: true` deletes what gdsfw created when the job has ended, and nothing else."""

from __future__ import annotations

from pathlib import Path

from helpers.running import Gdsfw

WRITE = {"name": "w", "rw": "write", "size": "64KiB", "block_size": "16KiB"}


def left(gdsfw: Gdsfw) -> list[str]:
    return sorted(path.name for path in (gdsfw.folder / "data").iterdir())


def test_the_files_of_a_job_that_writes_are_gone_and_so_is_the_record(gdsfw: Gdsfw) -> None:
    ended = gdsfw.run({**WRITE, "numjobs": 2, "unlink": True})
    assert left(gdsfw) == []
    assert ended.jobs[0]["write"]["bytes"] == 128 << 10
    assert [note for note in ended.jobs[0]["notes"] if note.startswith("unlink")] == []


def test_files_that_were_laid_out_for_a_job_that_reads_are_gone(gdsfw: Gdsfw) -> None:
    gdsfw.run({"name": "r", "rw": "read", "size": "64KiB", "block_size": "16KiB", "verify": True, "unlink": True})
    assert left(gdsfw) == []


def test_without_it_they_stay(gdsfw: Gdsfw) -> None:
    gdsfw.run(WRITE)
    assert "w.0.0" in left(gdsfw)


def test_a_later_job_deletes_what_an_earlier_one_wrote(gdsfw: Gdsfw) -> None:
    read = {"name": "r", "rw": "read", "files_from": "w", "block_size": "16KiB", "verify": True, "unlink": True}
    ended = gdsfw.run({**WRITE, "verify": True}, read)
    assert ended.jobs[1]["verify"]["checked_bytes"] == 64 << 10
    assert left(gdsfw) == []


def test_every_point_of_a_sweep_has_its_files(gdsfw: Gdsfw) -> None:
    ended = gdsfw.run({**WRITE, "unlink": True, "sweep": {"block_size": ["4KiB", "16KiB"]}, "repeat": 2})
    assert [job["write"]["bytes"] for job in ended.jobs] == [64 << 10] * 4
    assert left(gdsfw) == []


def test_jobs_of_one_stage_keep_a_shared_file_until_all_have_ended(gdsfw: Gdsfw) -> None:
    read = {"rw": "read", "filename": "data/shared", "stage": "both", "unlink": True, "verify": True}
    fill = {**WRITE, "filename": "data/shared", "verify": True}
    ended = gdsfw.run(fill, {"name": "a", **read}, {"name": "b", **read}, directory=".")
    assert [job["verify"]["bad_blocks"] for job in ended.jobs[1:]] == [0, 0]
    assert [note for job in ended.jobs for note in job["notes"] if note.startswith("unlink")] == []
    assert left(gdsfw) == []


def test_the_users_own_file_stays_and_the_result_says_why(gdsfw: Gdsfw) -> None:
    mine = gdsfw.folder / "mine"
    mine.write_bytes(bytes(64 << 10))
    job = {**WRITE, "filename": str(mine), "allow_overwrite": True, "unlink": True}
    ended = gdsfw.run(job)
    assert mine.stat().st_size == 64 << 10
    assert f"unlink: {mine} stays: gdsfw wrote into it, but did not create it" in ended.jobs[0]["notes"]


def test_a_file_that_is_only_read_stays(gdsfw: Gdsfw) -> None:
    mine = gdsfw.folder / "mine"
    mine.write_bytes(bytes(64 << 10))
    ended = gdsfw.run({"name": "r", "rw": "read", "filename": str(mine), "unlink": True})
    assert Path(mine).exists()
    assert f"unlink: {mine} stays: gdsfw did not create it" in ended.jobs[0]["notes"]
