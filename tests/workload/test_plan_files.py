"""Which bytes of which files each worker covers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from gdsfw.backend import Target
from gdsfw.errors import RefusedError, WorkloadError
from gdsfw.storage.safe_open import close_file, open_target
from gdsfw.workload.ranges import Range, split
from hypothesis import given
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gdsfw.workload.plan_model import JobPlan, Plan

    PlanOf = Callable[..., Plan]


def rows(job: JobPlan) -> list[list[tuple[str, int, int]]]:
    return [[(file.path, file.start, file.length) for file in worker.files] for worker in job.workers]


def problems(plan_of: PlanOf, text: str, **options: Any) -> list[str]:
    with pytest.raises(WorkloadError) as caught:
        plan_of(text, **options)
    return [str(problem) for problem in caught.value.problems]


def one_problem(plan_of: PlanOf, keys: str, **options: Any) -> str:
    (problem,) = problems(plan_of, f"jobs: [{{name: a, {keys}}}]", **options)
    return problem


@given(
    st.lists(st.builds(Range, st.integers(0, 10**6), st.integers(1, 10**6)), min_size=1, max_size=5),
    st.integers(1, 20),
    st.integers(1, 10**5),
)
def test_splitting_covers_every_byte_once_in_order(wholes: list[Range], parts: int, unit: int) -> None:
    result = split(wholes, parts, unit)
    assert len(result) == parts
    pieces = [piece for part in result for piece in part]
    for index, whole in enumerate(wholes):
        position = whole.start
        for piece in (piece for piece in pieces if piece.whole == index):
            assert piece.range.start == position
            assert (position - whole.start) % unit == 0
            position = piece.range.end
        assert position == whole.end
    units = [sum(-(-piece.range.length // unit) for piece in part) for part in result]
    assert max(units) - min(units) <= 1
    assert [piece.whole for piece in pieces] == sorted(piece.whole for piece in pieces)


def test_three_workers_split_a_file_with_an_odd_tail(plan_of: PlanOf) -> None:
    size = 10 * 2**20 + 1
    plan = plan_of(f"jobs: [{{name: a, filename: f, size: {size}, share: split, numjobs: 3, bs: 1MiB}}]")
    assert rows(plan.jobs[0]) == [
        [("./f", 0, 4 * 2**20)],
        [("./f", 4 * 2**20, 4 * 2**20)],
        [("./f", 8 * 2**20, 2 * 2**20 + 1)],
    ]


def test_each_worker_has_files_of_its_own_that_share_its_size(plan_of: PlanOf) -> None:
    plan = plan_of("jobs: [{name: a, directory: d, size: 10k, files: 2, numjobs: 2, bs: 4k, offset: 4k}]")
    assert rows(plan.jobs[0]) == [
        [("d/a.0.0", 4096, 8192), ("d/a.0.1", 4096, 2048)],
        [("d/a.1.0", 4096, 8192), ("d/a.1.1", 4096, 2048)],
    ]
    assert all(file.owned and file.create for worker in plan.jobs[0].workers for file in worker.files)


def test_workers_of_one_filename_each_cover_all_of_it(plan_of: PlanOf) -> None:
    plan = plan_of("jobs: [{name: a, filename: f, size: 1m, numjobs: 2}]")
    assert rows(plan.jobs[0]) == [[("./f", 0, 2**20)]] * 2
    assert not plan.jobs[0].workers[0].files[0].owned


def test_an_existing_file_is_covered_whole_from_the_offset(plan_of: PlanOf, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(bytes(10_000))
    plan = plan_of("jobs: [{name: a, filename: f, offset: 4k, bs: 512}]")
    assert rows(plan.jobs[0]) == [[("./f", 4096, 10_000 - 4096)]]
    assert not plan.jobs[0].workers[0].files[0].create


def test_percentages_are_of_the_file(plan_of: PlanOf, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(bytes(100_000))
    plan = plan_of("jobs: [{name: a, filename: f, offset: 50%, size: 10%, bs: 512}]")
    assert rows(plan.jobs[0]) == [[("./f", 50_000, 10_000)]]


def test_blocks_larger_than_the_range_are_told_for_all_bad_jobs_at_once(plan_of: PlanOf, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(bytes(2**20))
    found = problems(
        plan_of,
        """\
        jobs:
          - {name: a, filename: f, size: 10%, bs: 1MiB}
          - {name: b, filename: f, size: 10%, bs: 64KiB}
          - name: c
            size: 4KiB
            block_size: 8KiB
        """,
    )
    assert (
        "\n".join(found)
        == """\
w.yaml:2:39: job a: block_size 1MiB is larger than the 104857 bytes to cover \
(size 10%, offset 0, file ./f of 1048576 bytes)
w.yaml:6:5: job c: block_size 8KiB is larger than the 4096 bytes to cover \
(size 4KiB for 1 file, offset 0, file ./c.0.0 not there yet)"""
    )


def test_files_of_another_job_are_inherited_with_their_ranges(plan_of: PlanOf) -> None:
    plan = plan_of("""
        defaults: {size: 1MiB, directory: d, bs: 4k}
        jobs:
          - {name: w, rw: write, numjobs: 2, offset: 4k}
          - {name: all, files_from: w, numjobs: 3}
          - {name: split, files_from: w, numjobs: 4, share: split}
          - {name: part, files_from: w, offset: 4k, size: 16k}
        """)
    writer, reads_all, splits, part = plan.jobs
    assert rows(reads_all) == [[("d/w.0.0", 4096, 2**20), ("d/w.1.0", 4096, 2**20)]] * 3
    assert rows(splits)[0] == [("d/w.0.0", 4096, 2**19)]
    assert rows(splits)[3] == [("d/w.1.0", 4096 + 2**19, 2**19)]
    assert rows(part) == [[("d/w.0.0", 8192, 8192), ("d/w.1.0", 8192, 8192)]]
    assert {file.file_id for worker in reads_all.workers for file in worker.files} == {
        file.file_id for worker in writer.workers for file in worker.files
    }


def test_ranges_of_a_split_file_are_inherited_as_one(plan_of: PlanOf) -> None:
    plan = plan_of("""
        jobs:
          - {name: w, rw: write, filename: f, size: 1MiB, numjobs: 4, share: split}
          - {name: r, files_from: w}
        """)
    assert rows(plan.jobs[1]) == [[("./f", 0, 2**20)]]


def test_more_than_the_other_job_covered_cannot_be_had(plan_of: PlanOf) -> None:
    text = "jobs: [{name: w, rw: write, size: 64k}, {name: r, files_from: w, size: 128k}]"
    (problem,) = problems(plan_of, text)
    assert (
        "job r: offset 0 and 131072 bytes are more than the 65536 bytes of ./w.0.0 (job w made it that long)" in problem
    )


def test_a_file_that_an_earlier_job_makes_has_a_size(plan_of: PlanOf) -> None:
    plan = plan_of("jobs: [{name: a, rw: write, filename: f, size: 1MiB}, {name: b, filename: f}]")
    assert rows(plan.jobs[1]) == [[("./f", 0, 2**20)]]


def test_a_file_that_an_earlier_job_unlinks_is_gone(plan_of: PlanOf) -> None:
    text = "jobs: [{name: a, rw: write, filename: f, size: 1MiB, unlink: true}, {name: b, filename: f}]"
    assert "job b: size is missing: ./f is not there" in problems(plan_of, text)[0]


def test_a_new_file_needs_a_size(plan_of: PlanOf) -> None:
    assert "size is missing: ./a.0.0 is not there" in one_problem(plan_of, "rw: write")
    assert "a percentage has nothing to refer to: ./a.0.0" in one_problem(plan_of, "size: 10%")


def test_a_file_of_the_user_must_be_long_enough_to_be_read(plan_of: PlanOf, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(bytes(8192))
    message = one_problem(plan_of, "filename: f, size: 64k")
    assert "offset 0 and size 65536 is beyond the 8192 bytes of file ./f" in message


def test_a_file_that_gdsfw_made_may_grow(plan_of: PlanOf, tmp_path: Path) -> None:
    target = Target("f", 1, 8192, create=True)
    close_file(open_target(target, "rw"))
    (tmp_path / "f").write_bytes(bytes(8192))
    plan = plan_of("jobs: [{name: a, filename: f, size: 64k}]")
    assert rows(plan.jobs[0]) == [[("./f", 0, 65536)]]


def test_an_id_of_a_file_depends_on_its_name_and_not_on_its_folder(plan_of: PlanOf) -> None:
    plan = plan_of("defaults: {size: 64k}\njobs: [{name: a, filename: x/f}, {name: b, filename: y/f}, {name: c}]")
    one, other, different = (job.workers[0].files[0].file_id for job in plan.jobs)
    assert one == other != different


def test_an_offset_beyond_the_end_is_told(plan_of: PlanOf, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(bytes(8192))
    message = one_problem(plan_of, "filename: f, offset: 16k")
    assert "offset 16384 is beyond the 8192 bytes of file ./f" in message
    assert "larger than the 0 bytes to cover (size not given, offset 8192" in one_problem(
        plan_of, "filename: f, offset: 8k"
    )


def test_more_workers_than_blocks_cannot_split(plan_of: PlanOf) -> None:
    message = one_problem(plan_of, "filename: f, size: 64k, bs: 16k, numjobs: 5, share: split")
    assert "share: split leaves worker 4 of 5 nothing of 65536 bytes in blocks of 16384" in message


def test_a_directory_as_filename_asks_whether_directory_was_meant(plan_of: PlanOf, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    message = one_problem(plan_of, "filename: d, size: 64k")
    assert message.startswith("w.yaml:1:18: job a: ./d is a directory (did you mean directory:")


def test_a_file_as_directory_asks_whether_filename_was_meant(plan_of: PlanOf, tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    assert "directory f is no directory (did you mean filename:" in one_problem(plan_of, "directory: f, size: 64k")


@pytest.mark.parametrize(
    "keys",
    [
        "filename: /dev/gdsfw-absent",
        "filename: /proc/gdsfw-absent",
        "filename: /sys/gdsfw-absent",
        "filename: /dev/../dev/x/y",
        "directory: /dev",
        "filename: /proc/self/status",
        "rw: write, filename: /dev/gdsfw-absent",
        "filename: link/x",
    ],
)
def test_new_regular_files_below_the_kernels_folders_are_refused(plan_of: PlanOf, tmp_path: Path, keys: str) -> None:
    (tmp_path / "link").symlink_to("/dev")
    with pytest.raises(RefusedError, match=r"below /(dev|proc|sys)") as caught:
        plan_of(f"jobs: [{{name: a, size: 64k, {keys}}}]")
    assert caught.value.exit_code == 4


def test_shared_memory_is_an_ordinary_file_system(plan_of: PlanOf) -> None:
    assert plan_of("jobs: [{name: a, size: 64k, directory: /dev/shm/gdsfw-absent}]").jobs


def test_what_is_neither_file_nor_block_device_is_refused(plan_of: PlanOf, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("/dev/null", "pipe"):
        with pytest.raises(RefusedError, match="neither a regular file nor a block device"):
            plan_of(f"jobs: [{{name: a, size: 64k, filename: {name}}}]")


def test_an_absurd_number_of_files_is_refused(plan_of: PlanOf) -> None:
    assert "4096 x 1000000 files" in one_problem(plan_of, "size: 1G, numjobs: 4096, files: 1000000")


def test_a_home_directory_is_expanded(plan_of: PlanOf, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    plan = plan_of("jobs: [{name: a, size: 64k, directory: ~/data}]")
    assert plan.jobs[0].workers[0].files[0].path == f"{tmp_path}/data/a.0.0"


def test_names_of_a_backend_are_left_alone_and_their_size_may_be_decided_at_start(plan_of: PlanOf, known: Any) -> None:
    plan = plan_of("jobs: [{name: a, filename: 'mem://x'}, {name: b, size: 64k}]", backends=(known.store,))
    (file,) = plan.jobs[0].workers[0].files
    assert (file.path, file.decided_at_start, file.nbytes) == ("mem://x", True, 0)
    assert plan.jobs[0].planned_bytes(plan.jobs[0].workers[0]) is None
    assert plan.jobs[1].workers[0].files[0].path == "b.0.0"


def test_a_range_that_must_be_known_cannot_be_decided_at_start(plan_of: PlanOf, known: Any) -> None:
    message = one_problem(plan_of, "filename: x, share: split, numjobs: 2", backends=(known.store,))
    assert "the size of x is known only when it is opened" in message
