from __future__ import annotations

import pytest
from gdsfw.errors import WorkloadError
from gdsfw.workload.loader import load_text

THIRTY = """\
version: 2
default: {}
defaults:
  backnd: posix
  size: 1Gib
  name: all
jobs:
  - name: one
    rw: wrte
    block_size: 0100
    iodepth: true
    numjobs: "4"
    runtime: 1:30
    ramp_time: 5
    direct: on
    size: 4Kb
    size: 5k
  - name: one
    iodept: 3
    bs: {read: 4q, write: 4w}
    rwmixread: 101
    random: {distribution: zip, teta: 1}
    percentiles: [50, 101]
    verify: {sed: 1}
    cpus: 3-1
  - name: 2024
    rate: {reed: 1k}
    files_from: three
    sweep: {iodepth: [1, x]}
    directory: ${NOWHERE}
    rw: read
    fsync: 3
    ioengine: libaio
    timeline: 5
"""

EXPECTED = [
    (1, "version: 2 is not known"),
    (2, "unknown key 'default' at the top of the file (did you mean 'defaults'?)"),
    (4, "unknown key 'backnd' (did you mean 'backend'?)"),
    (5, "size: '1Gib' has an unknown unit 'Gib'"),
    (6, "'name' cannot stand in defaults"),
    (9, "rw: 'wrte' is not known (did you mean 'write'? valid: read, write,"),
    (10, "block_size: '0100' begins with a zero"),
    (11, "iodepth: true is no whole number"),
    (12, "numjobs: '4' is no whole number (remove the quotes)"),
    (13, "runtime: '1:30' is no duration"),
    (14, "ramp_time: 5 has no unit: write 5s for seconds"),
    (15, "direct: 'on' is not known (valid: auto, true, false)"),
    (16, "size: '4Kb' has an unknown unit 'Kb'"),
    (17, "key 'size' is given twice: here and on line 16"),
    (18, "a second job named 'one'; the first is at w.yaml:8:5"),
    (19, "unknown key 'iodept' (did you mean 'iodepth'?)"),
    (20, "block_size.read: '4q' has an unknown unit 'q'"),
    (20, "block_size.write: '4w' has an unknown unit 'w'"),
    (21, "rwmixread: 101 is outside its range (valid: at most 100)"),
    (22, "random.distribution: 'zip' is not known (did you mean 'zipf'?"),
    (22, "random: unknown key 'teta' (did you mean 'theta'?)"),
    (23, "percentiles[1]: 101 is no percentile"),
    (24, "verify: unknown key 'sed' (did you mean 'seed'?)"),
    (25, "cpus: '3-1' is no list of CPUs"),
    (26, 'name: 2024 is no text; quote it: "2024"'),
    (27, "rate.reed: unknown key 'reed' (did you mean 'read'?)"),
    (29, "iodepth: 'x' is no whole number"),
    (30, "variable NOWHERE is not set"),
    (32, "fsync has no effect with rw: read, which writes nothing"),
    (33, "unknown key 'ioengine' (write `backend` and `io_path`)"),
    (34, "timeline: 5 has no unit: write 5s for seconds"),
]


def test_a_file_with_thirty_mistakes_gives_thirty_messages_in_order() -> None:
    with pytest.raises(WorkloadError) as caught:
        load_text(THIRTY, "w.yaml", environ={})
    found = [(int(problem.where.split(":")[1]), str(problem)) for problem in caught.value.problems]
    for (line, text), (expected_line, expected) in zip(found, EXPECTED, strict=False):
        assert line == expected_line, text
        assert text.partition(": ")[2].startswith(expected)
    assert len(found) == len(EXPECTED) >= 30


def problems(text: str) -> list[str]:
    with pytest.raises(WorkloadError) as caught:
        load_text(text, "w.yaml", environ={})
    return [str(problem) for problem in caught.value.problems]


def job_problems(keys: str) -> list[str]:
    return problems(f"jobs: [{{name: a, {keys}}}]")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("filename: x, files_from: a", "filename and files_from exclude each other"),
        ("filename: x, files: 2", "filename is one file, but files asks for 2"),
        ("share: split", "share has no effect on files that each worker has for itself"),
        ("rw: write, rwmixread: 70", "rwmixread has no effect with rw: write"),
        ("fdatasync: 1", "fdatasync has no effect with rw: read, which writes nothing"),
        ("allow_overwrite: true", "allow_overwrite has no effect with rw: read"),
        ("rw: write, block_align: 4k", "block_align has no effect with rw: write, whose offsets are sequential"),
        ("rate: {write: 1k}", "rate has no effect with rw: read: it limits the other direction"),
        ("rate_process: poisson", "rate_process has no effect without rate or rate_iops"),
        ("runtime: 5s, loops: 3", "loops has no effect with a runtime"),
        ("max_errors: 3", "max_errors has no effect without continue_on_error: true"),
        ("stop_together: true", "stop_together has no effect without a stage"),
        ("cpus: auto, numa: 0", "cpus and numa exclude each other"),
        ("rw: write, verify: true, buffer_compress: 50", "buffer_compress cannot be had with verify"),
        ("random: {theta: 2}", "random: theta 2 does not fit distribution uniform (valid: none, leave theta out)"),
        ("random: {distribution: zipf, theta: 1}", "random: theta 1 does not fit distribution zipf"),
        ("random: {distribution: zipf, theta: 0}", "random: theta 0 does not fit distribution zipf"),
        ("random: {distribution: pareto, theta: 1.5}", "random: theta 1.5 does not fit distribution pareto"),
        ("random: {distribution: normal, theta: 101}", "random: theta 101 does not fit distribution normal"),
        ("random: {distribution: runs, theta: 0.5}", "random: theta 0.5 does not fit distribution runs"),
        ("random: {distribution: zipf, once_per_block: true}", "random: once_per_block visits all blocks alike"),
        ("io_path: staged, require_transport: p2p", "io_path: staged never goes by p2p"),
    ],
)
def test_keys_that_do_not_go_together(keys: str, message: str) -> None:
    found = job_problems(keys)
    assert any(text.partition(": ")[2].startswith(message) for text in found), found


def test_rules_between_keys_are_checked_although_another_key_is_wrong() -> None:
    found = job_problems("iodepth: x, cpus: auto, numa: 0, max_errors: 3")
    assert len(found) == 3


def test_a_rule_about_a_key_that_is_wrong_itself_is_not_told_too() -> None:
    assert len(job_problems("rw: wrte, fsync: 3")) == 1


def test_keys_without_effect_are_fine_in_defaults_and_do_not_apply() -> None:
    workload = load_text("defaults: {fsync: 3, rwmixread: 70}\njobs: [{name: a}, {name: b, rw: randrw}]")
    assert [job.fsync for job in workload.jobs] == [0, 3]


def test_keys_without_effect_at_some_points_of_a_sweep_are_fine() -> None:
    workload = load_text("jobs: [{name: a, fsync: 3, sweep: {rw: [read, write]}}]")
    assert len(workload.points[0]) == 2


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("random: 5", "random: 5 is no mapping"),
        ("verify: 5", "verify: 5 is no mapping"),
        ("backend_options: {posix: 5}", "backend_options.posix: 5 is no mapping"),
        ("sweep: 5", "sweep: 5 is no mapping"),
        ("sweep: {iodepth: 5}", "sweep.iodepth: a sweep needs a list of values"),
        ("sweep: {iodepth: []}", "sweep.iodepth: a sweep needs a list of values"),
        ("sweep: {name: [b]}", "'name' cannot be swept"),
        ("sweep: {iodept: [1]}", "unknown key 'iodept'"),
        ("sweep: {random.teta: [1]}", "random: unknown key 'teta'"),
        ("iodepth: null", "iodepth: has no value"),
        ("block_size: [4k, 8k]", "block_size: ['4k', '8k'] is no block size"),
        ("block_size: {read: 4k}", "block_size: 'write' is missing: both 'read' and 'write' are needed"),
        ("block_size: {read: 4k, wirte: 8k}", "block_size.wirte: unknown key 'wirte' (did you mean 'write'?)"),
        ("block_size: {mix: 4k, max: 8k}", "block_size.mix: unknown key 'mix' (did you mean 'min'?)"),
        ("block_size: {foo: 4k}", "block_size.foo: 'foo' is no size"),
        ("block_size: {min: 8k, max: 4k}", "block_size: the range's min (8192 bytes) is larger"),
        ("block_size: 8k-4k", "block_size: the range's min (8192 bytes) is larger"),
        ("block_size: {4k: 0}", "block_size.4k: 0 is no weight"),
        ("block_size: {4k: 1, 4KiB: 1}", "block_size: the split names one size twice"),
        ("block_size: 0", "block_size: 0 is too small"),
        ("offset: -1", "offset: -1 is too small"),
        ("buffer_offset: -1", "buffer_offset: -1 is too small"),
        ("size: 101%", "size: '101%' is outside"),
        ("devices: [0, 0]", "devices: the list names one device twice"),
        ("devices: some", "devices: 'some' is no list of devices"),
        ("name: b/c", "key 'name' is given twice"),
        ("numjobs: 0", "numjobs: 0 is outside its range (valid: at least 1)"),
        ("stage: ''", "stage: '' is no name"),
        ("invalidate: yes", "invalidate: 'yes' is no truth value (valid: true, false"),
        ("io_timeout: 0s", "io_timeout: '0s' is too short"),
        ("random: {seed: 1.5}", "random.seed: 1.5 is no whole number"),
        ("thread: 1", "unknown key 'thread' (leave it out: workers are threads)"),
        ("time_based: 1", "unknown key 'time_based' (leave it out: a job with a `runtime` runs that long)"),
    ],
)
def test_one_mistake_gives_one_message(keys: str, message: str) -> None:
    found = job_problems(keys)
    assert len(found) == 1, found
    assert found[0].partition(": ")[2].startswith(message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("5", "w.yaml:1:1: is no workload"),
        ("[1]", "w.yaml:1:1: is no workload"),
        ("version: 1", "w.yaml:1:1: 'jobs' is missing"),
        ("job: []", "w.yaml:1:1: unknown key 'job' at the top of the file (did you mean 'jobs'?)"),
        ("jobs: []", "w.yaml:1:7: jobs is no list of jobs"),
        ("jobs: {a: 1}", "w.yaml:1:7: jobs is no list of jobs"),
        ("jobs: [a]", "w.yaml:1:8: 'a' is no job"),
        ("jobs: [{rw: read}]", "w.yaml:1:8: name: 'name' is missing"),
        ("defaults: 3\njobs: [{name: a}]", "w.yaml:1:11: defaults is no mapping"),
        ("version: true\njobs: [{name: a}]", "w.yaml:1:10: version: true is not known"),
        ("rw: read\njobs: [{name: a}]", "w.yaml:1:1: unknown key 'rw' at the top of the file (belongs into"),
    ],
)
def test_the_shape_of_the_file(text: str, message: str) -> None:
    found = problems(text)
    assert len(found) == 1, found
    assert found[0].startswith(message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[{name: a, files_from: b}, {name: b}]", "files_from names job 'b', which runs later"),
        ("[{name: a, files_from: a}]", "files_from names the job itself"),
        ("[{name: ab}, {name: b, files_from: a}]", "files_from names no job: 'a'"),
        ("[{name: a, stage: s}, {name: b}, {name: c, stage: s}]", "stage 's' is used again after another job"),
        (
            "[{name: a, stage: s, repeat: 2}, {name: b, stage: s, repeat: 3}]",
            "jobs of stage 's' ask for 2 and 3 repeats",
        ),
        ("[{name: a, repeat: 10000, sweep: {iodepth: [1, 2]}}]", "sweep and repeat multiply to 20000 runs"),
    ],
)
def test_rules_between_jobs(text: str, message: str) -> None:
    found = problems(f"jobs: {text}")
    assert len(found) == 1, found
    assert message in found[0]


def test_a_mistake_in_defaults_is_told_once_for_many_jobs() -> None:
    assert len(problems("defaults: {iodepth: x}\njobs: [{name: a}, {name: b}, {name: c}]")) == 1


def test_a_mistake_at_every_point_of_a_sweep_is_told_once() -> None:
    assert len(problems("jobs: [{name: a, iodepth: x, sweep: {block_size: [4k, 8k, 16k]}}]")) == 1


def test_long_values_are_cut_in_messages() -> None:
    (message,) = job_problems(f"size: {'x' * 5000}")
    assert len(message) < 300
