from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from gdsfw.errors import WorkloadError
from gdsfw.workload.loader import load_text

if TYPE_CHECKING:
    from gdsfw.workload.model import Workload

TEXT = """
defaults: {size: 1MiB, random: {seed: 5}}
jobs:
  - {name: a, rw: write, iodepth: 2}
  - {name: a.b, rw: randread, sweep: {block_size: [4k, 8k]}}
"""


def load(*sets: str) -> Workload:
    return load_text(TEXT, "w.yaml", sets, environ={"N": "7"})


def problem(*sets: str) -> str:
    with pytest.raises(WorkloadError) as caught:
        load(*sets)
    assert len(caught.value.problems) == 1
    return str(caught.value)


def test_a_key_alone_is_set_for_all_jobs() -> None:
    assert [job.iodepth for job in load("iodepth=8").jobs] == [8, 8]


def test_a_key_of_one_job_is_set_there_only_even_if_names_hold_dots() -> None:
    assert [job.iodepth for job in load("jobs.a.iodepth=8").jobs] == [8, 1]
    assert [job.iodepth for job in load("jobs.a.b.iodepth=8").jobs] == [2, 8]


def test_a_default_is_set_for_jobs_that_say_nothing() -> None:
    assert [job.iodepth for job in load("defaults.iodepth=8").jobs] == [2, 8]


def test_parts_of_a_mapping_keep_the_other_parts() -> None:
    workload = load("jobs.a.b.random.distribution=zipf", "defaults.random.seed=6")
    assert workload.jobs[1].random.distribution == "zipf"
    assert workload.jobs[1].random.seed == 6


def test_fio_names_and_lists_and_variables_are_understood() -> None:
    assert load("bs=64k").jobs[0].blocks("read").largest == 65536
    assert len(load("jobs.a.sweep.iodepth=[1, 2, 4]").points[0]) == 3
    assert load("jobs.a.iodepth=${N}").jobs[0].iodepth == 7


def test_setting_a_swept_key_ends_its_sweep() -> None:
    workload = load("block_size=16k")
    assert [point.job.largest_block for point in workload.points[1]] == [16384]


def test_later_sets_win() -> None:
    assert load("iodepth=8", "iodepth=4").jobs[0].iodepth == 4


def test_a_null_takes_a_default_back() -> None:
    assert load("defaults.runtime=5s", "jobs.a.runtime=null").jobs[0].runtime is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("iodepth=x", "--set iodepth=x: iodepth: 'x' is no whole number"),
        ("iodept=3", "--set iodept=3: unknown key 'iodept' (did you mean 'iodepth'?)"),
        ("jobs.ab.iodepth=3", "--set jobs.ab.iodepth=3: there is no job 'ab' (did you mean 'a"),
        ("jobs.a=3", "--set jobs.a=3: names no key of the job"),
        ("iodepth", "--set iodepth: is no assignment (valid: --set KEY=VALUE"),
        ("=3", "--set =3: is no assignment"),
        ("a..b=3", "--set a..b=3: is no assignment"),
        ("size=[1", "--set size=[1: "),
        ("size=${NOPE}", "--set size=${NOPE}: variable NOPE is not set"),
        ("filename=", "--set filename=: filename: is empty text"),
    ],
)
def test_mistakes_name_the_set(text: str, message: str) -> None:
    assert problem(text).startswith(message)
