"""What jobs say after defaults, other spellings, sweeps and stages are resolved."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import gdsfw
import pytest
from gdsfw.engine.spec import BlockSizes
from gdsfw.errors import WorkloadError
from gdsfw.workload.loader import load_text
from gdsfw.workload.units import Percent

if TYPE_CHECKING:
    from pathlib import Path

    from gdsfw.workload.model import Job


def job(keys: str) -> Job:
    return load_text(f"jobs: [{{name: a, {keys}}}]", environ={}).jobs[0]


def test_the_example_of_the_language_loads() -> None:
    workload = load_text("""
        version: 1
        defaults: {backend: posix, directory: ./gdsfw-data, size: 1GiB}
        jobs:
          - name: ingest
            rw: write
            block_size: 1MiB
            numjobs: 4
          - name: kv-lookup
            rw: randread
            files_from: ingest
            iodepth: 32
            numjobs: 4
            runtime: 5s
            sweep: {block_size: [4KiB, 64KiB, 1MiB], iodepth: [1, 8, 32]}
        """)
    ingest, lookup = workload.jobs
    assert (ingest.backend, ingest.size, ingest.numjobs) == ("posix", 2**30, 4)
    assert ingest.directions == ("write",)
    assert lookup.random_access
    assert lookup.runtime == 5_000_000_000
    points = workload.points[1]
    assert len(points) == 9
    assert points[1].values == {"block_size": "4KiB", "iodepth": "8"}
    assert (points[1].job.largest_block, points[1].job.iodepth) == (4096, 8)


def test_names_of_fio_are_accepted() -> None:
    one = job("bs: 64k, nrfiles: 3, thinktime: 5ms, readwrite: rw, io_limit: 1m, dedupe_percentage: 20")
    assert one.blocks("read").largest == 65536
    assert (one.files, one.think_time, one.rw, one.io_size, one.buffer_dedupe) == (3, 5_000_000, "readwrite", 2**20, 20)


def test_one_key_under_two_names_is_a_repeated_key() -> None:
    with pytest.raises(WorkloadError, match="'block_size' is given twice"):
        job("bs: 4k, block_size: 8k")


@pytest.mark.parametrize(
    ("text", "read", "write"),
    [
        ("4KiB", BlockSizes(((4096, 1),)), None),
        ("4k-16k", BlockSizes(((4096, 0), (16384, 0)), step=4096), None),
        ("{min: 4k, max: 16k, step: 512}", BlockSizes(((4096, 0), (16384, 0)), step=512), None),
        ("{4KiB: 60, 64KiB: 40}", BlockSizes(((4096, 60), (65536, 40))), None),
        ("4k/60:64k/40", BlockSizes(((4096, 60), (65536, 40))), None),
        ("{read: 4k, write: 8k-16k}", BlockSizes(((4096, 1),)), BlockSizes(((8192, 0), (16384, 0)), step=8192)),
    ],
)
def test_block_sizes_in_every_form(text: str, read: BlockSizes, write: BlockSizes | None) -> None:
    one = job(f"block_size: '{text}'" if "{" not in text else f"block_size: {text}")
    assert one.blocks("read") == read
    assert one.blocks("write") == (write or read)


def test_booleans_and_words_for_direct() -> None:
    assert [job(f"direct: {word}").direct for word in ("true", "false", "auto")] == ["true", "false", "auto"]


def test_rates_of_one_or_both_directions() -> None:
    assert job("rate: 10MB/s").rates("rate") == (10_000_000, 10_000_000)
    assert job("rw: randrw, rate_iops: {write: 100}").rates("rate_iops") == (0, 100)
    assert job("iodepth: 1").rates("rate") == (0, 0)


def test_verify_is_off_on_or_has_parts() -> None:
    assert job("verify: false").verify is None
    on = job("verify: true").verify
    assert on is not None
    assert (on.seed, on.generations) == (None, False)
    parts = job("verify: {seed: 3, generations: true}").verify
    assert parts is not None
    assert (parts.seed, parts.generations) == (3, True)


def test_each_distribution_has_its_own_default_shape() -> None:
    assert job("random: {distribution: zipf}").random.theta == 0.99
    assert not job("random: {distribution: zipf}").random.once_per_block
    assert job("random: {seed: 4}").random.once_per_block


def test_percentages_of_a_file_stay_percentages() -> None:
    assert job("size: 10%, offset: 50%").size == Percent(10)


def test_a_job_wins_over_defaults_and_a_null_takes_a_default_back() -> None:
    workload = load_text("defaults: {runtime: 5s, iodepth: 4}\njobs: [{name: a, iodepth: 2, runtime: null}, {name: b}]")
    assert [(one.runtime, one.iodepth) for one in workload.jobs] == [(None, 2), (5_000_000_000, 4)]


def test_options_of_backends_and_random_merge_entry_by_entry() -> None:
    workload = load_text("""
        defaults:
          backend_options: {x: {a: 1, b: 2}, y: {c: 3}}
          random: {seed: 7}
        jobs:
          - {name: a, backend_options: {x: {b: 5}}, random: {distribution: zipf}}
        """)
    one = workload.jobs[0]
    assert one.backend_options == {"x": {"a": 1, "b": 5}, "y": {"c": 3}}
    assert (one.random.seed, one.random.distribution) == (7, "zipf")


def test_files_from_brings_its_own_sizes_so_defaults_for_them_do_not_apply() -> None:
    workload = load_text("defaults: {size: 1k, files: 3, bs: 512}\njobs: [{name: a}, {name: b, files_from: a}]")
    assert (workload.jobs[1].size, workload.jobs[1].files) == (None, 1)


def test_a_key_of_the_job_ends_an_inherited_sweep_of_it() -> None:
    workload = load_text("defaults: {sweep: {iodepth: [1, 2]}}\njobs: [{name: a, iodepth: 8}, {name: b}]")
    assert [len(points) for points in workload.points] == [1, 2]
    assert workload.points[0][0].job.iodepth == 8


def test_sweeps_go_over_parts_of_a_mapping_by_a_dotted_name() -> None:
    text = "jobs: [{name: a, sweep: {backend_options.x.a: [1, 2], random.distribution: [zipf, uniform]}}]"
    points = load_text(text).points[0]
    assert [point.job.backend_options["x"]["a"] for point in points] == [1, 1, 2, 2]
    assert points[0].values == {"backend_options.x.a": "1", "random.distribution": "zipf"}


def test_the_public_entry_reads_a_file_with_sets_and_variables(tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_text("jobs:\n  - name: a\n    size: ${SIZE}\n")
    workload = gdsfw.load(path, sets=["iodepth=3"], environ={"SIZE": "1MiB"})
    assert (workload.jobs[0].size, workload.jobs[0].iodepth) == (2**20, 3)
    assert workload.source == str(path)
    assert workload.place("a", "size") == f"{path}:3:5"


def test_a_workload_is_read_from_standard_input() -> None:
    code = "import gdsfw; print(gdsfw.load('-').jobs[0].name)"
    run = subprocess.run([sys.executable, "-c", code], input="jobs: [{name: piped}]", capture_output=True, text=True)
    assert run.stdout.strip() == "piped"


def test_importing_the_package_alone_loads_no_schema_and_no_yaml() -> None:
    code = "import sys, gdsfw; print([name for name in ('pydantic', 'yaml', 'typer', 'rich') if name in sys.modules])"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONWARNINGS": ""}
    )
    assert run.stdout.strip() == "[]"
