"""Backends, depths, stages, placement, seeds and processes of a plan."""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING, Any

import pytest
from gdsfw.errors import UnavailableError, WorkloadError
from gdsfw.workload.render import plan_to_json, render_plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from gdsfw.workload.plan_model import Plan

    PlanOf = Callable[..., Plan]


def one_problem(plan_of: PlanOf, text: str, **options: Any) -> str:
    with pytest.raises(WorkloadError) as caught:
        plan_of(text, **options)
    assert len(caught.value.problems) == 1, str(caught.value)
    return str(caught.value)


def labels(plan: Plan) -> list[list[str]]:
    return [[job.label for job in stage.jobs] for stage in plan.stages]


def test_the_backend_is_the_one_installed_besides_noop(plan_of: PlanOf) -> None:
    plan = plan_of("jobs: [{name: a, size: 64k}]")
    assert (plan.jobs[0].backend.name, plan.jobs[0].job.backend) == ("disk", "disk")


def test_with_several_backends_the_workload_must_choose(plan_of: PlanOf, known: Any) -> None:
    message = one_problem(plan_of, "jobs: [{name: a, size: 64k}]", backends=(known.noop, known.disk, known.gpu))
    assert "backend is not given, and several are installed (installed: disk, gpu, noop;" in message


def test_what_is_wrong_with_several_jobs_at_one_place_is_told_once(plan_of: PlanOf, known: Any) -> None:
    text = "defaults: {size: 64k%s}\njobs: [{name: a}, {name: b}, {name: c}, {name: d}]"
    several = (known.noop, known.disk, known.gpu)
    message = one_problem(plan_of, text % "", backends=several)
    assert message.startswith("w.yaml:2:8: jobs a, b, c and 1 more: backend is not given")
    message = one_problem(plan_of, text % ", io_path: dma", backends=(known.disk,))
    assert message.startswith("w.yaml:1:23: jobs a, b, c and 1 more: backend disk has no io_path 'dma'")
    with pytest.raises(UnavailableError) as caught:
        plan_of(text % "", backends_override=("disk", "tape"))
    assert caught.value.message == "backend 'tape' is not installed"


def test_with_noop_alone_it_must_be_named(plan_of: PlanOf, known: Any) -> None:
    with pytest.raises(UnavailableError, match="no backend that moves bytes is installed"):
        plan_of("jobs: [{name: a, size: 64k}]", backends=(known.noop,))
    assert plan_of("jobs: [{name: a, size: 64k, backend: noop}]", backends=(known.noop,)).jobs


def test_a_backend_that_is_not_installed_names_a_way_to_get_it(plan_of: PlanOf) -> None:
    with pytest.raises(UnavailableError, match="pip install gdsfw-tape") as caught:
        plan_of("jobs: [{name: a, size: 64k, backend: tape}]")
    assert caught.value.exit_code == 3


def test_backends_from_the_command_line_run_the_whole_workload_one_after_another(plan_of: PlanOf) -> None:
    text = "jobs: [{name: a, size: 64k, backend: tape}, {name: b, files_from: a}]"
    plan = plan_of(text, backends_override=("disk", "noop"))
    assert labels(plan) == [["a [backend=disk]"], ["b [backend=disk]"], ["a [backend=noop]"], ["b [backend=noop]"]]
    assert labels(plan_of(text, backends_override=("noop",))) == [["a"], ["b"]]


def test_a_path_and_a_memory_that_the_backend_lacks_are_told(plan_of: PlanOf) -> None:
    message = one_problem(plan_of, "jobs: [{name: a, size: 64k, io_path: dma}]")
    assert "backend disk has no io_path 'dma' (valid: auto, sync, queue, mapped)" in message
    message = one_problem(plan_of, "jobs: [{name: a, size: 64k, memory: device}]")
    assert "backend disk has no device memory (valid: auto, host, hugepage)" in message


def test_a_path_that_cannot_write_is_told(plan_of: PlanOf) -> None:
    message = one_problem(plan_of, "jobs: [{name: a, rw: randrw, size: 64k, io_path: mapped}]")
    assert "path mapped of disk cannot write, which rw: randrw needs (paths that can: sync, queue)" in message


def test_flushes_that_the_backend_cannot_do_are_told(plan_of: PlanOf, known: Any) -> None:
    text = "jobs: [{name: a, rw: write, size: 64k, fsync: 4, backend: %s}]"
    assert plan_of(text % "disk").jobs
    message = one_problem(plan_of, text % "store", backends=(known.store,))
    assert "w.yaml:1:40: job a: backend store cannot flush, which fsync asks for" in message
    assert plan_of(text.replace("fsync: 4, ", "") % "store", backends=(known.store,)).jobs


def test_a_depth_that_the_path_cannot_have_is_clamped_with_one_note(plan_of: PlanOf) -> None:
    (job,) = plan_of("jobs: [{name: a, size: 64k, iodepth: 100, io_path: queue}]").jobs
    assert job.iodepth == 64
    assert job.notes == ("iodepth 100 is 64: path queue of disk keeps no more in flight",)
    (job,) = plan_of("jobs: [{name: a, size: 64k, iodepth: 100, backend: noop}]").jobs
    assert (job.iodepth, job.notes) == (100, ())


def test_a_batch_is_at_most_the_depth(plan_of: PlanOf) -> None:
    (job,) = plan_of("jobs: [{name: a, size: 64k, iodepth: 4, iodepth_batch: 8, io_path: queue}]").jobs
    assert "iodepth_batch 8 is 4" in job.notes[0]


def test_options_of_the_backend_are_checked_with_their_place(plan_of: PlanOf, known: Any) -> None:
    text = """\
        jobs:
          - name: a
            size: 64k
            backend: gpu
            backend_options:
              gpu:
                chunk_kb: 1
                pollin: true
                polling: 1
        """
    with pytest.raises(WorkloadError) as caught:
        plan_of(text, backends=(known.gpu,))
    assert str(caught.value).splitlines() == [
        "w.yaml:7:9: job a: backend_options.gpu.chunk_kb: 1 is outside its range (valid: at least 4)",
        "w.yaml:8:9: job a: backend_options.gpu: unknown key 'pollin' (did you mean 'polling'?)",
        "w.yaml:9:9: job a: backend_options.gpu.polling: 1 is no truth value (valid: true, false)",
    ]


def test_options_for_a_backend_without_any_are_told(plan_of: PlanOf) -> None:
    message = one_problem(plan_of, "jobs: [{name: a, size: 64k, backend_options: {disk: {x: 1}}}]")
    assert "backend_options.disk: unknown key 'x' (disk has no options)" in message


def test_plugins_of_a_job_must_be_there_and_take_their_options(plan_of: PlanOf) -> None:
    message = one_problem(plan_of, "jobs: [{name: a, size: 64k, plugins: {tracer: {chunk_kb: x}}}]")
    assert "w.yaml:1:48: job a: plugins.tracer.chunk_kb: 'x' is no whole number" in message
    with pytest.raises(UnavailableError, match="plugin 'trace' is not installed"):
        plan_of("jobs: [{name: a, size: 64k, plugins: {trace: {}}}]")


def test_options_for_another_backend_are_ignored(plan_of: PlanOf) -> None:
    assert plan_of("jobs: [{name: a, size: 64k, backend_options: {tape: {x: 1}}}]").jobs


def test_adjacent_jobs_of_one_stage_run_together(plan_of: PlanOf) -> None:
    plan = plan_of("""
        defaults: {size: 64k}
        jobs:
          - {name: a}
          - {name: b, stage: s}
          - {name: c, stage: s, stop_together: true}
          - {name: d}
        """)
    assert labels(plan) == [["a"], ["b", "c"], ["d"]]
    assert [(stage.name, stage.stop_together) for stage in plan.stages] == [(None, False), ("s", True), (None, False)]


def test_sweeps_and_repeats_multiply_a_whole_stage_in_written_order(plan_of: PlanOf) -> None:
    plan = plan_of("""
        defaults: {size: 64k, stage: s}
        jobs:
          - {name: a, sweep: {bs: [4k, 8k]}}
          - {name: b, sweep: {rw: [read, write]}, repeat: 2}
        """)
    assert labels(plan) == [
        [f"a [block_size={size}]", f"b [rw={rw} #{repetition}]"]
        for repetition in (1, 2)
        for size in ("4k", "8k")
        for rw in ("read", "write")
    ]


def test_files_from_a_swept_job_means_its_last_point(plan_of: PlanOf) -> None:
    plan = plan_of("jobs: [{name: a, rw: write, sweep: {size: [64k, 128k]}}, {name: b, files_from: a}]")
    assert plan.jobs[2].workers[0].files[0].length == 128 * 1024


def test_bytes_and_buffers_are_planned_for_each_worker(plan_of: PlanOf) -> None:
    plan = plan_of("""
        defaults: {size: 64k, io_path: queue}
        jobs:
          - {name: a, loops: 3, iodepth: 4, bs: 5000, buffer_offset: 512}
          - {name: b, io_size: 10k, loops: 2}
          - {name: c, runtime: 5s}
          - {name: d, runtime: 5s, io_size: 10k}
        """)
    first, *_ = plan.jobs
    assert [job.planned_bytes(job.workers[0]) for job in plan.jobs] == [3 * 65536, 20480, None, 10240]
    stride = -(-5000 // mmap.PAGESIZE) * mmap.PAGESIZE
    assert (first.workers[0].slot_stride, first.workers[0].buffer_nbytes) == (stride, 512 + 4 * stride)


def test_seeds_differ_between_workers_of_a_stage_and_repeat_between_runs(plan_of: PlanOf) -> None:
    text = "defaults: {size: 64k, stage: s, numjobs: 3}\njobs: [{name: a}, {name: b}]"
    seeds = [worker.seed for job in plan_of(text).jobs for worker in job.workers]
    assert len(set(seeds)) == 6
    assert seeds == [worker.seed for job in plan_of(text).jobs for worker in job.workers]
    other = plan_of(text.replace("numjobs", "random: {seed: 2}, numjobs"))
    assert not set(seeds) & {worker.seed for job in other.jobs for worker in job.workers}


def placed(plan: Plan) -> list[tuple[int | None, tuple[int, ...]]]:
    return [(worker.device, worker.cpus) for worker in plan.jobs[0].workers]


def test_workers_take_devices_in_turn_and_cpus_near_them(plan_of: PlanOf, known: Any, list_devices: Any) -> None:
    options = {"backends": (known.gpu,), "devices": list_devices}
    plan = plan_of("jobs: [{name: a, size: 64k, numjobs: 3, devices: [1, 0], cpus: auto}]", **options)
    assert placed(plan) == [(1, (2,)), (0, (0,)), (1, (3,))]
    plan = plan_of("jobs: [{name: a, size: 64k, numjobs: 2, devices: all}]", **options)
    assert placed(plan) == [(0, ()), (1, ())]


def test_a_device_that_is_not_there_is_told_with_those_that_are(plan_of: PlanOf, known: Any, list_devices: Any) -> None:
    text = "jobs: [{name: a, size: 64k, devices: [0, 7]}]"
    message = one_problem(plan_of, text, backends=(known.gpu,), devices=list_devices)
    assert "there is no device 7 (present: 0, 1)" in message
    with pytest.raises(UnavailableError, match="devices: all, but there is no device"):
        plan_of("jobs: [{name: a, size: 64k, devices: all}]", backends=(known.gpu,), devices=lambda name: [])


def test_devices_of_a_backend_without_any_are_told(plan_of: PlanOf) -> None:
    assert "backend disk has no devices" in one_problem(plan_of, "jobs: [{name: a, size: 64k, devices: [0]}]")


def test_cpus_are_given_by_list_by_node_or_one_each(plan_of: PlanOf) -> None:
    def cpus(keys: str) -> list[tuple[int, ...]]:
        return [
            worker.cpus for worker in plan_of(f"jobs: [{{name: a, size: 64k, numjobs: 2, {keys}}}]").jobs[0].workers
        ]

    assert cpus("cpus: 0-1") == [(0, 1), (0, 1)]
    assert cpus("numa: 1") == [(2, 3), (2, 3)]
    assert cpus("cpus: auto") == [(0,), (1,)]
    assert cpus("iodepth: 1") == [(), ()]


def test_cpus_and_nodes_that_are_not_there_are_told(plan_of: PlanOf) -> None:
    message = one_problem(plan_of, "jobs: [{name: a, size: 64k, cpus: [0, 99]}]")
    assert "CPU 99 cannot be used here (present: 0, 1, 2, 3)" in message
    message = one_problem(plan_of, "jobs: [{name: a, size: 64k, numa: 5}]")
    assert "there is no CPU on NUMA node 5 (present: 0, 1)" in message


GPU_JOBS = """
    defaults: {{size: 64k, backend: gpu}}
    jobs:
      - {{name: a, {one}}}
      - {{name: b, backend_options: {{gpu: {{chunk_kb: 64}}}}, {other}}}
      - {{name: c}}
    """


def test_options_read_once_per_process_put_stages_into_processes_of_their_own(plan_of: PlanOf, known: Any) -> None:
    plan = plan_of(GPU_JOBS.format(one="rw: read", other="rw: read"), backends=(known.gpu,))
    assert [stage.process for stage in plan.stages] == [0, 1, 0]
    assert plan.needs_children
    same = plan_of(
        "jobs: [{name: a, size: 64k}, {name: b, size: 64k, backend_options: {gpu: {polling: true}}}]",
        backends=(known.gpu,),
    )
    assert not same.needs_children


def test_options_read_once_per_process_cannot_differ_in_one_stage(plan_of: PlanOf, known: Any) -> None:
    text = GPU_JOBS.format(one="stage: s", other="stage: s")
    message = one_problem(plan_of, text, backends=(known.gpu,))
    assert "gpu reads chunk_kb once per process, and jobs of one stage give it 1024 and 64" in message


def test_a_sweep_over_such_an_option_gives_each_point_a_process(plan_of: PlanOf, known: Any) -> None:
    text = "jobs: [{name: a, size: 64k, sweep: {backend_options.gpu.chunk_kb: [64, 128, 64]}}]"
    assert [stage.process for stage in plan_of(text, backends=(known.gpu,)).stages] == [0, 1, 0]


def test_the_text_of_a_plan_shows_ranges_sums_and_resolved_sizes(plan_of: PlanOf) -> None:
    plan = plan_of("jobs: [{name: a, rw: randrw, filename: f, size: 10485761, share: split, numjobs: 3, bs: 4k-1m}]")
    assert (
        render_plan(plan)
        == """\
plan of w.yaml: 1 run

job a
  backend disk, path sync, randrw (50 % reads), block 4KiB to 1MiB in steps of 4KiB
  iodepth 1, direct auto, verify off, ends when each worker has moved its bytes
  worker  device  cpus  file       from     to        bytes    buffer
  0       -       any   ./f (new)  0        4194304   4194304  1 x 1MiB
  1       -       any   ./f (new)  4194304  8388608   4194304  1 x 1MiB
  2       -       any   ./f (new)  8388608  10485761  2097153  1 x 1MiB
  sum: 3 workers, 1 file, 10 MiB to move (10485761 bytes), buffers 3 MiB (host)

in all: at most 3 workers and 3 MiB of buffers at a time, 10 MiB to move (10485761 bytes)"""
    )


def test_the_data_of_a_plan_has_every_worker_and_file(plan_of: PlanOf) -> None:
    data = plan_to_json(plan_of("jobs: [{name: a, size: 64k, files: 2, numjobs: 100}]"))
    (job,) = data["stages"][0]["jobs"]
    assert len(job["workers"]) == 100
    assert job["sums"]["planned_bytes"] == 100 * 65536
    assert job["workers"][99]["files"][1]["path"] == "./a.99.1"


def test_a_long_text_is_cut_and_says_so(plan_of: PlanOf) -> None:
    assert "... and 136 rows more (--json has all)" in render_plan(
        plan_of("jobs: [{name: a, size: 64k, files: 2, numjobs: 100}]")
    )
