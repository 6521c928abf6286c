"""gdsfw-trace on every backend: the file is a trace that viewers read, with all that happened and nothing else."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from helpers.site import Site
from plugins.wrapping import (
    BACKENDS,
    HOST_BACKENDS,
    Backend,
    Event,
    Wrapped,
    in_process,
    module_path,
    option_rows,
    read_trace,
    readme_workload,
    runner,
    skip_without_io_uring,
    written_and_read,
)

BLOCK = 16 << 10
PSYNC, URING, NOOP, RAMDISK = HOST_BACKENDS
SETUP = ["worker_start", "alloc", "register_buffer", "register_file", "io"]
TEARDOWN = ["deregister_file", "deregister_buffer", "free", "worker_stop"]


@pytest.fixture
def gdsfw(tmp_path: Path) -> Iterator[Wrapped]:
    driver = Wrapped(tmp_path)
    yield driver
    driver.close()


def traced(**options: Any) -> dict[str, Any]:
    return {"plugins": {"trace": {"file": "trace.json", **options}}}


def complete(events: list[Event], pid: int = 1, tid: int | None = None) -> list[Event]:
    """The complete events of a job, or of one of its threads."""
    return [
        event for event in events if event["ph"] == "X" and event["pid"] == pid and (tid is None or event["tid"] == tid)
    ]


def paired(events: list[Event], pid: int = 1) -> list[tuple[Event, Event]]:
    """Beginning and end of each overlapping span of a job."""
    begun = {event["id"]: event for event in events if event["ph"] == "b" and event["pid"] == pid}
    ended = {event["id"]: event for event in events if event["ph"] == "e" and event["pid"] == pid}
    assert begun.keys() == ended.keys()
    return [(begin, ended[number]) for number, begin in begun.items()]


def blocks(events: list[Event], pid: int = 1) -> list[Event]:
    """The reads and writes of a job."""
    return [event for event in events if event["pid"] == pid and event["ph"] in ("X", "b") and event["cat"] == "io"]


def names(events: list[Event]) -> list[str]:
    return [event["name"] for event in events]


def nest(events: list[Event]) -> bool:
    """Whether no two spans of one thread overlap in part; times have three digits after the point."""
    open_until: list[float] = []
    for event in sorted(events, key=lambda one: (one["ts"], -one["dur"])):
        while open_until and open_until[-1] <= event["ts"] + 0.0005:
            open_until.pop()
        end = event["ts"] + event["dur"]
        if open_until and end > open_until[-1] + 0.0005:
            return False
        open_until.append(end)
    return True


# ---- on every backend ----


@pytest.mark.parametrize("backend", BACKENDS, ids=str)
def test_each_block_of_a_job_is_one_span_whatever_the_backend(
    backend: Backend, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    run, driver = runner(backend, tmp_path, tmp_path_factory)
    try:
        ended = run(*written_and_read(backend, **traced()))
    finally:
        driver.close()
    events = read_trace(tmp_path)
    for pid, (job, direction) in enumerate(zip(ended.jobs, ("write", "read"), strict=True), 1):
        assert job["instrumented"] == ["trace"]
        assert job["loop"] == "python"
        assert "driven by the Python loop: calls of trace go around the backend's own" in job["notes"]
        found = blocks(events, pid)
        assert sorted(event["args"]["offset"] for event in found) == [i * BLOCK for i in range(16)]
        assert {event["name"] for event in found} == {direction}
        assert {event["args"]["size"] for event in found} == {event["args"]["result"] for event in found} == {BLOCK}
        assert {event["args"]["file"].rpartition("/")[2] for event in found} == {"w.0.0"}
        worker = complete(events, pid, 1)
        hooks = names([event for event in worker if event["cat"] == "hook"])
        assert hooks == [*SETUP, "transport", "transport", *TEARDOWN]
        main = [name for name in names(complete(events, pid, 0)) if not name.endswith("_file")]
        assert main == ["open", "close"]
        assert nest(worker)
        assert nest(complete(events, pid, 0))
    if "verify" in ended.jobs[1]["job"] and backend is not NOOP:
        assert ended.jobs[1]["verify"]["bad_blocks"] == 0


@pytest.mark.parametrize("backend", BACKENDS, ids=str)
def test_without_io_the_backend_keeps_its_path_and_its_loop(
    backend: Backend, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    run, driver = runner(backend, tmp_path, tmp_path_factory)
    try:
        ended = run(*written_and_read(backend, **traced(io=False)))
    finally:
        driver.close()
    events = read_trace(tmp_path)
    for pid, job in enumerate(ended.jobs, 1):
        assert job["instrumented"] == []
        assert job["loop"] == backend.loop
        assert blocks(events, pid) == []
        assert {event["cat"] for event in complete(events, pid)} == {"hook"}
        assert [name for name in names(complete(events, pid, 1)) if name in SETUP] == SETUP


# ---- what the spans say ----


def test_jobs_and_threads_have_their_names(gdsfw: Wrapped) -> None:
    gdsfw.run({"name": "a", "rw": "write", "size": "64KiB", "numjobs": 2, **traced()})
    events = read_trace(gdsfw.folder)
    said = {(e["name"], e["tid"]): e["args"] for e in events if e["ph"] == "M" and e["name"].endswith("_name")}
    assert said == {
        ("process_name", 0): {"name": "a"},
        ("thread_name", 0): {"name": "main"},
        ("thread_name", 1): {"name": "worker 0"},
        ("thread_name", 2): {"name": "worker 1"},
    }


def test_hooks_say_what_they_are_for(gdsfw: Wrapped) -> None:
    gdsfw.run({"name": "a", "rw": "write", "size": "64KiB", "block_size": "8KiB", "fsync": 4, **traced()})
    spans = {event["name"]: event for event in complete(read_trace(gdsfw.folder))}
    assert spans["open_file"]["args"] == {"file": "data/a.0.0", "mode": "rw"}
    assert spans["close_file"]["args"] == {"file": "data/a.0.0"}
    assert spans["alloc"]["args"] == {"nbytes": 8 << 10, "memory": "host"}
    assert spans["register_buffer"]["args"] == {"nbytes": 8 << 10}
    assert spans["flush"]["cat"] == "call"
    assert spans["transport"]["args"]["part"] == "judgement"


def test_flushes_of_the_loop_are_spans_between_its_writes(gdsfw: Wrapped) -> None:
    gdsfw.run({"name": "a", "rw": "write", "size": "64KiB", "block_size": "8KiB", "fsync": 4, **traced()})
    worker = complete(read_trace(gdsfw.folder), 1, 1)
    loop = names([event for event in worker if event["cat"] != "hook"])
    assert loop == [*["write"] * 4, "flush", *["write"] * 4, "flush"]


def test_a_short_count_is_seen_and_so_is_what_was_asked_for_after_it(gdsfw: Wrapped) -> None:
    """trace is the outer one of the two: it sees what fault does."""
    rules = {"fault": {"rules": [{"on": "read", "nth": 2, "short": 4096}]}}
    job = {"name": "a", "rw": "read", "size": "48KiB", "block_size": "16KiB", "direct": False}
    gdsfw.run({**job, "plugins": {**traced()["plugins"], **rules}})
    found = [(e["args"]["offset"], e["args"]["size"], e["args"]["result"]) for e in blocks(read_trace(gdsfw.folder))]
    assert found == [
        (0, BLOCK, BLOCK),
        (BLOCK, BLOCK, 4096),
        (BLOCK + 4096, BLOCK - 4096, BLOCK - 4096),
        (2 * BLOCK, BLOCK, BLOCK),
    ]


@pytest.mark.parametrize("depth", [2, 8])
def test_requests_in_flight_are_spans_that_overlap_and_never_more_than_the_depth(gdsfw: Wrapped, depth: int) -> None:
    backend = Backend("posix", "io_uring", depth)
    skip_without_io_uring(backend)
    gdsfw.run({"name": "a", "rw": "randread", "size": "1MiB", "block_size": "4KiB", **backend.job(), **traced()})
    spans = paired(read_trace(gdsfw.folder))
    assert len(spans) == 256
    changes = sorted([(end["ts"], -1) for _, end in spans] + [(begin["ts"], 1) for begin, _ in spans])
    in_flight, most = 0, 0
    for _, change in changes:
        in_flight += change
        most = max(most, in_flight)
    assert 2 <= most <= depth
    assert in_flight == 0


def test_a_span_takes_no_longer_than_the_latency_that_the_loop_measured_around_it(gdsfw: Wrapped) -> None:
    job = gdsfw.run({"name": "a", "rw": "write", "size": "1MiB", "block_size": "16KiB", **traced()}).jobs[0]
    found = blocks(read_trace(gdsfw.folder))
    assert all(a["ts"] + a["dur"] <= b["ts"] + 0.001 for a, b in pairwise(found))
    clat = job["write"]["clat_ns"]
    assert max(event["dur"] * 1000 for event in found) <= clat["max"] + 1
    assert sum(event["dur"] * 1000 for event in found) / len(found) <= clat["mean"] + 1


# ---- how much ----


def test_a_trace_that_was_cut_says_so_in_the_file_and_in_the_result(gdsfw: Wrapped) -> None:
    job = {"name": "a", "rw": "write", "size": "160KiB", "block_size": "16KiB"}
    ended = gdsfw.run({**job, **traced(max_events=4)})
    events = read_trace(gdsfw.folder)
    assert len(blocks(events)) == 4
    assert [e["args"] for e in events if e["name"] == "process_labels"] == [{"labels": "cut: 7 calls are missing"}]
    assert "trace: cut: 7 calls of the loop beyond max_events 4 are not in it" in ended.jobs[0]["notes"]
    assert names(complete(events, 1, 1))[-4:] == TEARDOWN


def test_the_note_counts_the_spans_that_are_in_the_file(gdsfw: Wrapped) -> None:
    ended = gdsfw.run({"name": "a", "rw": "write", "size": "160KiB", "block_size": "16KiB", "numjobs": 2, **traced()})
    spans = len(complete(read_trace(gdsfw.folder)))
    assert f"trace: {spans} spans in trace.json" in ended.jobs[0]["notes"]
    assert not any("cut" in note for note in ended.jobs[0]["notes"])


# ---- one file for several jobs ----


def test_jobs_share_a_file_and_a_job_that_names_no_trace_has_none(gdsfw: Wrapped) -> None:
    job = {"rw": "write", "size": "64KiB", "block_size": "16KiB"}
    ended = gdsfw.run({**job, "name": "a", **traced()}, {**job, "name": "b"}, {**job, "name": "c", **traced()})
    events = read_trace(gdsfw.folder)
    assert [e["args"]["name"] for e in events if e["name"] == "process_name"] == ["a", "c"]
    assert [len(blocks(events, pid)) for pid in (1, 2)] == [4, 4]
    ends = max(e["ts"] + e["dur"] for e in complete(events, 1))
    assert all(event["ts"] >= ends for event in complete(events, 2))
    assert [job["loop"] for job in ended.jobs] == ["python", "native", "python"]


def test_jobs_that_run_together_have_their_own_spans(gdsfw: Wrapped) -> None:
    job = {"rw": "write", "size": "64KiB", "block_size": "16KiB", "stage": "together"}
    gdsfw.run({**job, "name": "a", **traced()}, {**job, "name": "b", **traced()})
    events = read_trace(gdsfw.folder)
    for pid, name in ((1, "a"), (2, "b")):
        assert {e["args"]["file"] for e in blocks(events, pid)} == {f"data/{name}.0.0"}
        assert names(complete(events, pid, 0)) == ["open", "open_file", "close_file", "close"]


def test_jobs_can_have_a_file_each(gdsfw: Wrapped) -> None:
    job = {"rw": "write", "size": "64KiB", "block_size": "16KiB"}
    gdsfw.run({**job, "name": "a", **traced(file="a.json")}, {**job, "name": "b", **traced(file="b.json")})
    for name in ("a", "b"):
        (said,) = [e for e in read_trace(gdsfw.folder, f"{name}.json") if e["name"] == "process_name"]
        assert said["args"]["name"] == name


def test_every_point_of_a_sweep_and_every_repetition_is_in_the_file(gdsfw: Wrapped) -> None:
    job = {"name": "a", "rw": "write", "size": "64KiB", "sweep": {"block_size": ["16KiB", "32KiB"]}, "repeat": 2}
    ended = gdsfw.run({**job, **traced()})
    said = [e["args"]["name"] for e in read_trace(gdsfw.folder) if e["name"] == "process_name"]
    assert len(said) == len(set(said)) == 4
    assert said == [job["label"] for job in ended.jobs]


def test_a_job_on_two_backends_is_two_processes_of_the_trace(gdsfw: Wrapped) -> None:
    path = gdsfw.write({"name": "a", "rw": "write", "size": "64KiB", **traced()})
    ended = gdsfw.ended(gdsfw.start(path, "--backend", "posix", "--backend", "ramdisk"))
    assert ended.code == 0, ended.stderr
    said = [e["args"]["name"] for e in read_trace(gdsfw.folder) if e["name"] == "process_name"]
    assert len(said) == len(set(said)) == 2


def test_another_run_takes_the_place_of_an_earlier_trace(gdsfw: Wrapped) -> None:
    job = {"name": "a", "rw": "write", "size": "64KiB", "block_size": "16KiB", **traced()}
    gdsfw.run(job)
    gdsfw.run({**job, "name": "b"})
    said = [e["args"]["name"] for e in read_trace(gdsfw.folder) if e["name"] == "process_name"]
    assert said == ["b"]


def test_a_program_that_runs_twice_has_the_trace_of_its_second_run(gdsfw: Wrapped) -> None:
    workload = gdsfw.write({"name": "a", "rw": "write", "size": "64KiB", **traced()})
    code = f"import gdsfw\nfor _ in range(2):\n    assert gdsfw.run(gdsfw.load({str(workload)!r})).exit_code == 0\n"
    in_process(gdsfw, code)
    assert [e["name"] for e in read_trace(gdsfw.folder)].count("process_name") == 1


# As libraries with such options do: jobs that differ in `mode` need a process each.
ONCE = """
import os
from pydantic import BaseModel, Field
from gdsfw import hookimpl, host_memory
from gdsfw.backend import BackendInfo, IOPath, IOPathInfo

class Options(BaseModel):
    mode: int = Field(0, description="A mode, no unit.", json_schema_extra={"once_per_process": True})

@hookimpl
def gdsfw_backend():
    return BackendInfo("once", "Once", "1", (IOPathInfo("once", native=False),), options=Options)
@hookimpl
def gdsfw_alloc(nbytes, memory, alignment):
    return host_memory.allocate(nbytes, memory, alignment)
@hookimpl
def gdsfw_free(buffer):
    host_memory.free(buffer)
@hookimpl
def gdsfw_io(files, buffer):
    class IO:
        def write(self, file, size, file_offset, buffer_offset):
            return os.pwrite(file.fd, buffer.host_view[buffer_offset:buffer_offset + size], file_offset)
        def flush(self, file, data_only):
            os.fsync(file.fd)
    return IOPath("once", files, python=IO())
"""


def test_jobs_that_run_in_processes_of_their_own_share_a_file_too(gdsfw: Wrapped, tmp_path: Path) -> None:
    once = Site(tmp_path / "once")
    once.folder.mkdir()
    once.distribution("gdsfw-once", ONCE, entry_points={"once": "gdsfw_once"})
    places = os.pathsep.join([module_path(tmp_path), str(once.folder)])
    common = {"backend": "once", "rw": "write", "size": "64KiB", "block_size": "16KiB", "direct": False, **traced()}
    jobs = [{**common, "name": f"m{mode}", "backend_options": {"once": {"mode": mode}}} for mode in (1, 2, 1)]
    jobs[2]["name"] = "again"
    for _ in range(2):  # the second run takes the place of the first
        ended = gdsfw.ended(gdsfw.start(gdsfw.write(*jobs), PYTHONPATH=places))
        assert ended.code == 0, ended.stderr
        assert ended.result is not None
        assert any("ran in 2 processes" in note for note in ended.result["notes"])
        events = read_trace(tmp_path)
        assert [e["args"]["name"] for e in events if e["name"] == "process_name"] == ["m1", "m2", "again"]
        assert [len(blocks(events, pid)) for pid in (1, 2, 3)] == [4, 4, 4]


# ---- whatever happens ----


def test_a_job_that_fails_has_its_trace_with_the_error_at_its_place(gdsfw: Wrapped) -> None:
    rules = {"fault": {"rules": [{"on": "write", "nth": 3, "error": "EIO"}]}}
    job = {"name": "a", "rw": "write", "size": "160KiB", "block_size": "16KiB"}
    gdsfw.run({**job, "plugins": {**traced()["plugins"], **rules}}, code=1)
    events = read_trace(gdsfw.folder)
    assert [event["args"].get("error") for event in blocks(events)] == [None, None, "EIO"]
    assert [name for name in names(complete(events, 1, 1)) if name in TEARDOWN] == TEARDOWN


def test_a_request_that_fails_in_the_queue_says_so(gdsfw: Wrapped) -> None:
    skip_without_io_uring(URING)
    rules = {"fault": {"rules": [{"on": "read", "nth": 5, "code": 719, "domain": "gpu"}]}}
    job = {"name": "a", "rw": "read", "size": "256KiB", "block_size": "16KiB", **URING.job(iodepth=2)}
    gdsfw.run({**job, "plugins": {**traced()["plugins"], **rules}}, code=1)
    failed = [event for event in blocks(read_trace(gdsfw.folder)) if "error" in event["args"]]
    assert [(event["args"]["offset"], event["args"]["error"]) for event in failed] == [(4 * BLOCK, "gpu 719")]


def test_a_job_that_cannot_start_has_the_hooks_until_then(gdsfw: Wrapped) -> None:
    gdsfw.run({"name": "a", "rw": "read", "size": "64KiB", "filename": "absent", **traced()}, code=3)
    spans = complete(read_trace(gdsfw.folder))
    assert names(spans) == ["open", "open_file", "close"]
    assert "there is no such file" in spans[1]["args"]["error"]


def test_what_has_not_returned_when_a_stuck_worker_is_given_up_is_in_the_trace(gdsfw: Wrapped) -> None:
    """A write that sleeps for longer than anybody waits."""
    rules = {"fault": {"rules": [{"on": "write", "nth": 2, "delay": "1m"}]}}
    job = {"name": "a", "rw": "write", "size": "64KiB", "block_size": "16KiB", "io_timeout": "300ms"}
    ended = gdsfw.run({**job, "plugins": {**traced()["plugins"], **rules}}, code=1)
    assert "has been in flight" in ended.stderr
    found = blocks(read_trace(gdsfw.folder))
    assert [event["args"].get("unfinished") for event in found] == [None, True]
    assert found[1]["args"]["offset"] == BLOCK
    assert found[1]["dur"] >= 300_000


def test_an_interrupted_job_has_its_trace(gdsfw: Wrapped) -> None:
    job = {"name": "a", "rw": "randread", "size": "1MiB", "block_size": "4KiB", "runtime": "30s", **traced()}
    process = gdsfw.start_measuring(job)
    process.send_signal(signal.SIGINT)
    assert gdsfw.ended(process).code == 130
    events = read_trace(gdsfw.folder)
    assert len(blocks(events)) > 256
    assert [name for name in names(complete(events, 1, 1)) if name in TEARDOWN] == TEARDOWN


@pytest.mark.parametrize(
    "contents",
    [
        "my notes",
        "",
        '{"traceEvents": []}',
        'notes on "gdsfw-trace/1"',
        '{"otherData": {"producer": "another"}}',
    ],
)
def test_a_users_file_is_never_written_to(gdsfw: Wrapped, contents: str) -> None:
    precious = gdsfw.folder / "trace.json"
    precious.write_text(contents)
    ended = gdsfw.run({"name": "a", "rw": "write", "size": "64KiB", **traced()}, code=2)
    assert precious.read_text() == contents
    assert ended.jobs[0]["errors"][0]["message"].endswith("trace.json exists and is no trace of gdsfw")
    assert ended.jobs[0]["errors"][0]["hint"] == "choose another name, or remove it"
    assert not (gdsfw.folder / "data").exists() or not list((gdsfw.folder / "data").glob("a.*"))


@pytest.mark.parametrize(
    ("file", "message"),
    [("absent/trace.json", "there is no folder"), (".", "is no regular file"), ("link.json", "is no trace of gdsfw")],
)
def test_a_place_where_no_trace_can_be_is_refused_before_anything_is_done(
    gdsfw: Wrapped, file: str, message: str
) -> None:
    (gdsfw.folder / "mine").write_text("mine")
    (gdsfw.folder / "link.json").symlink_to("mine")
    ended = gdsfw.run({"name": "a", "rw": "write", "size": "64KiB", **traced(file=file)}, code=2)
    assert message in ended.jobs[0]["errors"][0]["message"]
    assert ended.jobs[0]["write"]["ios"] == 0
    assert not (gdsfw.folder / "data").exists() or not list((gdsfw.folder / "data").glob("a.*"))
    assert (gdsfw.folder / "mine").read_text() == "mine"


def test_a_file_that_appears_meanwhile_is_left_alone_and_the_job_says_so(gdsfw: Wrapped) -> None:
    job = {"name": "a", "rw": "randread", "size": "1MiB", "block_size": "4KiB", "runtime": "1s", **traced()}
    process = gdsfw.start_measuring(job)
    (gdsfw.folder / "trace.json").write_text("mine")
    ended = gdsfw.ended(process)
    assert ended.code == 0
    assert (gdsfw.folder / "trace.json").read_text() == "mine"
    assert any("plugin 'trace'" in note and "no trace of gdsfw" in note for note in ended.jobs[0]["notes"])


def test_a_full_disk_costs_the_job_its_trace_and_leaves_the_others(gdsfw: Wrapped, tmp_path: Path) -> None:
    """RLIMIT_FSIZE in the place of a full disk: the same call fails, and needs no root."""
    first = {"name": "a", "rw": "write", "size": "64KiB", "block_size": "16KiB", **traced()}
    second = {**first, "name": "b", "block_size": "512", "numjobs": 4, "backend": "noop", "size": "1MiB"}
    path = gdsfw.write(first, second)
    code = (
        "import resource, signal, sys\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))\n"
        "import gdsfw\n"
        f"result = gdsfw.run(gdsfw.load({str(path)!r}))\n"
        "assert result.exit_code == 0, result\nprint(*result.jobs[1].notes, sep='\\n')\n"
    )
    said = in_process(gdsfw, code)
    assert "plugin 'trace', hook gdsfw_job_finished: OSError: [Errno 27]" in said
    events = read_trace(tmp_path)
    assert [e["args"]["name"] for e in events if e["name"] == "process_name"] == ["a"]
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix != ".yaml") == ["data", "site", "trace.json"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "file"),
        ({"file": ""}, "file"),
        ({"file": "t.json", "max_events": 0}, "max_events"),
        ({"file": "t.json", "io": "no"}, "io"),
        ({"file": "t.json", "max_event": 5}, "did you mean 'max_events'?"),
    ],
)
def test_a_mistake_in_the_options_is_told_with_its_place(gdsfw: Wrapped, options: dict[str, Any], message: str) -> None:
    path = gdsfw.write({"name": "a", "rw": "write", "size": "64KiB", "plugins": {"trace": options}})
    ended = gdsfw.ended(gdsfw.start(path))
    assert ended.code == 2
    assert ended.stderr.startswith(f"{path}:1:")
    assert "plugins.trace" in ended.stderr
    assert message in ended.stderr
    assert not list(gdsfw.folder.glob("t*.json"))


# ---- the README ----


def test_the_readmes_workload_says_what_the_readme_says(gdsfw: Wrapped) -> None:
    skip_without_io_uring(URING)
    path, text = readme_workload("gdsfw-trace", gdsfw.folder)
    ended = gdsfw.ended(gdsfw.start(path))
    assert ended.code == 0, ended.stderr
    said = [line.strip() for line in text.splitlines() if re.match(r"    (?:ingest|scan): ", line)]
    assert len(said) == 6
    assert set(said) <= {line.strip() for line in ended.stdout.splitlines()}
    shown = [json.loads(line.strip().rstrip(",")) for line in text.splitlines() if line.startswith("    {")]
    kinds = {(event["ph"], event["name"], event.get("cat")) for event in read_trace(gdsfw.folder)}
    assert {(event["ph"], event["name"], event.get("cat")) for event in shown} <= kinds


def test_the_readme_has_every_option(gdsfw: Wrapped) -> None:
    _, text = readme_workload("gdsfw-trace", gdsfw.folder)
    names = in_process(gdsfw, "from gdsfw_trace.options import TraceOptions\nprint(*TraceOptions.model_fields)").split()
    assert set(names) <= option_rows(text)
