"""The comparison of a plan with the machine, before anything is touched."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from gdsfw.errors import WorkloadError
from gdsfw.workload.machine import Machine

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gdsfw.workload.plan_model import Plan

    PlanOf = Callable[..., Plan]

MIB = 2**20


def one_problem(plan_of: PlanOf, text: str, **options: Any) -> str:
    with pytest.raises(WorkloadError) as caught:
        plan_of(text, **options)
    assert len(caught.value.problems) == 1, str(caught.value)
    return str(caught.value)


FOUR_WORKERS = "jobs: [{name: a, rw: write, size: 32MiB, numjobs: 4}]"


def test_files_that_do_not_fit_are_told_with_both_numbers(plan_of: PlanOf) -> None:
    message = one_problem(plan_of, FOUR_WORKERS, space=64 * MIB)
    assert "w.yaml:1:29: job a: 128 MiB needed on the file system of ., 64 MiB free" in message
    assert f"({128 * MIB} and {64 * MIB} bytes)" in message
    assert plan_of(FOUR_WORKERS, space=128 * MIB).jobs


def test_space_of_files_that_are_there_is_deducted(plan_of: PlanOf, tmp_path: Path) -> None:
    for worker in range(3):
        (tmp_path / f"a.{worker}.0").write_bytes(b"x" * (4 * MIB))
    text = "jobs: [{name: a, rw: write, size: 4MiB, numjobs: 4}]"
    assert plan_of(text, space=4 * MIB).jobs
    assert "4 MiB needed" in one_problem(plan_of, text, space=3 * MIB)


def test_space_of_holes_is_not_deducted(plan_of: PlanOf, tmp_path: Path) -> None:
    with (tmp_path / "a.0.0").open("wb") as file:
        file.truncate(4 * MIB)
    assert "4 MiB needed" in one_problem(plan_of, "jobs: [{name: a, rw: write, size: 4MiB}]", space=3 * MIB)


def test_files_of_several_jobs_add_up_unless_they_are_deleted_between(plan_of: PlanOf) -> None:
    text = "defaults: {rw: write, size: 4MiB}\njobs: [{name: a%s}, {name: b}, {name: c, files_from: b}]"
    keeps = text % ""
    deletes = text % ", unlink: true"
    assert "8 MiB needed" in one_problem(plan_of, keeps, space=4 * MIB)
    assert plan_of(deletes, space=4 * MIB).jobs


def test_the_space_check_can_be_skipped(plan_of: PlanOf) -> None:
    assert plan_of("jobs: [{name: a, size: 32MiB, skip_space_check: true}]", space=MIB).jobs


def test_objects_of_a_backend_take_no_space_of_a_file_system(plan_of: PlanOf, known: Any) -> None:
    assert plan_of("jobs: [{name: a, size: 32MiB}]", space=MIB, backends=(known.store,)).jobs


def test_buffers_that_do_not_fit_into_memory_are_told(plan_of: PlanOf) -> None:
    text = "jobs: [{name: a, size: 1GiB, bs: 1MiB, numjobs: 8, iodepth: 64, io_path: queue}]"
    message = one_problem(plan_of, text, memory=256 * MIB)
    assert "512 MiB of buffers needed, 256 MiB of memory free" in message
    assert plan_of(text, memory=None).jobs


def test_buffers_of_a_stage_add_up_and_device_memory_does_not_count(plan_of: PlanOf, known: Any) -> None:
    text = "defaults: {size: 1GiB, bs: 1MiB, stage: s, numjobs: 4}\njobs: [{name: a}, {name: b}]"
    assert "8 MiB of buffers needed" in one_problem(plan_of, text, memory=6 * MIB)
    assert plan_of(text, memory=6 * MIB, backends=(known.gpu,)).jobs


def test_direct_needs_every_number_to_be_a_multiple(plan_of: PlanOf) -> None:
    message = one_problem(plan_of, "jobs: [{name: a, size: 64k, bs: 512, direct: true}]", block=4096)
    assert "block_size 512 is not a multiple of 4096, which direct I/O on ./a.0.0 needs (test device;" in message
    with pytest.raises(WorkloadError) as caught:
        plan_of(
            """
            jobs:
              - {name: a, rw: randread, size: 64k, offset: 512, block_align: 512, buffer_offset: 8, direct: true}
            """,
            block=4096,
        )
    told = [problem.message.split()[2] for problem in caught.value.problems]
    assert told == ["offset", "block_align", "buffer_offset"]


def test_the_alignment_of_a_folder_to_be_made_is_that_of_the_one_above(plan_of: PlanOf, tmp_path: Path) -> None:
    alignment = Machine().alignment(tmp_path)
    assert Machine().alignment(tmp_path / "absent" / "deeper") == alignment
    odd = alignment.offset + 1
    text = f"jobs: [{{name: a, size: 64k, bs: {odd}, direct: true}}]"
    assert f"block_size {odd} is not a multiple" in one_problem(plan_of, text, block=alignment.offset)


def test_without_direct_any_number_will_do(plan_of: PlanOf) -> None:
    assert plan_of("jobs: [{name: a, size: 65537, bs: 1000, offset: 3, direct: false}]", block=4096).jobs
    assert plan_of("jobs: [{name: a, size: 65537, bs: 1000, offset: 3}]", block=4096).jobs


def test_an_odd_tail_is_no_matter_of_alignment(plan_of: PlanOf) -> None:
    assert plan_of("jobs: [{name: a, size: 65537, bs: 4k, direct: true}]", block=4096).jobs


def test_verified_writers_may_not_overlap(plan_of: PlanOf) -> None:
    text = "jobs: [{name: a, rw: randwrite, filename: f, size: 1MiB, numjobs: 2, verify: true%s}]"
    message = one_problem(plan_of, text % "")
    assert "verify, but worker 0 of a and worker 1 of a write the same bytes of ./f (share: split" in message
    assert plan_of(text % ", share: split").jobs
    assert plan_of((text % "").replace("randwrite", "randread")).jobs


def test_verified_writers_of_two_jobs_in_one_stage_may_not_overlap(plan_of: PlanOf) -> None:
    text = """
        defaults: {{rw: write, filename: f, size: 1MiB, stage: {stage}}}
        jobs: [{{name: a}}, {{name: b, verify: true, offset: {offset}}}]
        """
    assert "worker 0 of a and worker 0 of b" in one_problem(plan_of, text.format(stage="s", offset="512k"))
    assert plan_of(text.format(stage="s", offset="1m")).jobs
    assert plan_of(text.format(stage="null", offset="512k")).jobs


def test_data_of_a_backend_does_not_outlive_its_process(plan_of: PlanOf, known: Any) -> None:
    from dataclasses import replace

    store = replace(known.store, options=known.gpu.options)
    text = "jobs: [{name: a, rw: write, size: 64k}, {name: b, files_from: a, backend_options: {store: {chunk_kb: 64}}}]"
    assert "its data ends with the process" in one_problem(plan_of, text, backends=(store,))


def test_all_that_does_not_fit_is_told_at_once(plan_of: PlanOf) -> None:
    text = "jobs: [{name: a, size: 32MiB, bs: 512, direct: true}, {name: b, size: 2k, bs: 1k, numjobs: 64}]"
    with pytest.raises(WorkloadError) as caught:
        plan_of(text, space=MIB, memory=4096, block=4096)
    assert len(caught.value.problems) == 3


def test_this_machine_answers(tmp_path: Path) -> None:
    machine = Machine()
    device, free = machine.free_space(tmp_path / "absent" / "deeper")
    assert device == tmp_path.stat().st_dev
    assert free > 0
    assert machine.cpus()


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system, which needs root")
def test_a_small_file_system_is_too_small_for_four_workers(tmp_path: Path, plan_of: PlanOf) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "none", small], capture_output=True, text=True)
    if mount.returncode:
        pytest.skip(f"cannot mount here: {mount.stderr.strip()}")
    try:
        _, free = Machine().free_space(small / "absent")
        assert free <= 64 * MIB
        assert "128 MiB needed" in one_problem(plan_of, FOUR_WORKERS, space=free)
        assert not list(small.iterdir())
    finally:
        subprocess.run(["umount", small], check=True)


def test_memory_is_limited_by_the_tightest_control_group(tmp_path: Path) -> None:
    def write(path: str, text: str) -> None:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)

    write("proc/meminfo", "MemTotal: 100 kB\nMemAvailable:   1000 kB\n")
    assert Machine(tmp_path).free_memory() == 1_024_000
    write("proc/self/cgroup", "0::/a/b\n")
    write("sys/fs/cgroup/a/b/memory.max", "max\n")
    write("sys/fs/cgroup/a/b/memory.current", "5\n")
    assert Machine(tmp_path).free_memory() == 1_024_000
    write("sys/fs/cgroup/a/memory.max", "500000\n")
    write("sys/fs/cgroup/a/memory.current", "200000\n")
    write("sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file 50000\n")
    assert Machine(tmp_path).free_memory() == 350_000
    write("sys/devices/system/node/node0/cpulist", "0-1023\n")
    assert Machine(tmp_path).numa_nodes() == {0: Machine().cpus()}
