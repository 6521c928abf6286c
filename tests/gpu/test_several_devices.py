"""Several GPUs in one run: what one writes another verifies, and each one's share is in the table and the result."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes.driving import OnStandin, said

EXAMPLE = Path(__file__).parents[2] / "examples" / "multi-gpu.yaml"
SHARES = ("read_ios", "read_bytes", "write_ios", "write_bytes")


@pytest.mark.parametrize("path", ["sync", "staged", "mapped"])
def test_what_one_device_writes_another_verifies(on: OnStandin, path: str) -> None:
    write = "staged" if path == "mapped" else path
    ended = on.run(
        {"name": "w", "rw": "write", "io_path": write, "devices": [0], "verify": True},
        {"name": "r", "rw": "randread", "io_path": path, "files_from": "w", "devices": [1], "verify": True},
        settings={"devices": 2},
    )
    assert ended.jobs[1]["verify"]["checked_bytes"] == 256 << 10
    assert [row["device"] for row in ended.jobs[0]["devices"] + ended.jobs[1]["devices"]] == [0, 1]
    assert on.devices_used() == {0, 1}


def test_each_devices_share_is_the_sum_of_its_workers(on: OnStandin) -> None:
    job = {"name": "j", "rw": "readwrite", "io_path": "staged", "devices": [0, 1, 2], "numjobs": 7, "iodepth": 2}
    ended = on.run(job, settings={"devices": 3})
    (result,) = ended.jobs
    assert [(row["device"], row["workers"]) for row in result["devices"]] == [(0, 3), (1, 2), (2, 2)]
    for row in result["devices"]:
        mine = [worker for worker in result["workers"] if worker["device"] == row["device"]]
        assert all(row[name] == sum(worker[name] for worker in mine) for name in SHARES)
        assert row["read_bytes"] > 0
    for side in ("read", "write"):
        assert sum(row[f"{side}_bytes"] for row in result["devices"]) == result[side]["bytes"]
        assert sum(row[f"{side}_iops"] for row in result["devices"]) == pytest.approx(result[side]["iops"])
    for device in range(3):
        assert f"  device {device}" in ended.stdout


def test_one_device_has_no_row_of_its_own(on: OnStandin) -> None:
    ended = on.run({"name": "j", "rw": "write", "io_path": "staged", "devices": "all"}, settings={"devices": 1})
    assert [row["device"] for row in ended.jobs[0]["devices"]] == [0]
    assert "  device 0" not in ended.stdout


def test_a_job_without_devices_has_no_shares(on: OnStandin) -> None:
    assert on.run({"name": "j", "rw": "write", "io_path": "staged"}).jobs[0]["devices"] == []


def test_workers_are_near_their_device(on: OnStandin) -> None:
    """One node here: what is checked is that every worker has one CPU, and that no CPU has two while one has none."""
    job = {"name": "j", "rw": "write", "io_path": "staged", "devices": "all", "cpus": "auto", "numjobs": 4}
    plan = on.run(job, settings={"devices": 2}).result
    assert plan is not None
    cpus = [worker["cpus"] for worker in plan["plan"]["stages"][0]["jobs"][0]["workers"]]
    assert all(len(some) == 1 for some in cpus)
    counts = [cpus.count(some) for some in cpus]
    assert max(counts) - min(counts) <= 1


def test_a_device_that_others_hold_is_explained(on: OnStandin) -> None:
    """In exclusive mode a context of another process keeps everybody else out."""
    if on.hip:
        pytest.skip("HIP has no compute modes")
    job = {"name": "j", "rw": "write", "io_path": "staged", "devices": [1]}
    ended = on.run(job, rules=["fail=primary_retain:*:46"], settings={"devices": 2}, code=3)
    assert "compute mode is exclusive" in said(ended)
    assert "(device 1)" in said(ended)


def test_a_code_that_the_bindings_do_not_know_is_no_crash(on: OnStandin) -> None:
    if not on.hip:
        pytest.skip("cuda-python knows no such case")
    job = {"name": "j", "rw": "write", "io_path": "staged"}
    ended = on.run(job, rules=["fail=hipSetDevice:*:46"], code=3)
    assert "46 is not a valid hipError_t" in said(ended)
    assert "Python bindings differ" in said(ended)


def test_the_example_runs_on_two_devices(on: OnStandin) -> None:
    environ = {"GDSFW_BACKEND": on.backend, "GDSFW_SIZE": "1MiB", "GDSFW_DIR": str(on.folder / "data")}
    sets = [f"--set=jobs.{name}.runtime=50ms" for name in ("one", "every")]
    process = on.start(EXAMPLE, settings={"devices": 2}, environ=environ, arguments=sets)
    ended = on.ended(process)
    write, check, one, every = ended.jobs
    assert [row["device"] for row in write["devices"]] == [0]
    assert check["verify"]["checked_bytes"] == 16 << 20
    assert [row["device"] for row in one["devices"]] == [0]
    assert [row["workers"] for row in every["devices"]] == [8, 8]
    assert all(row["read_bytes"] for row in every["devices"])
