"""gdsfw-fault on every backend: what a workload asks for happens, at those calls, and the run ends as documented."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from plugins.wrapping import (
    BACKENDS,
    HOST_BACKENDS,
    Backend,
    Wrapped,
    in_process,
    option_rows,
    read_trace,
    readme_workload,
    runner,
    skip_without_io_uring,
    written_and_read,
)

BLOCK = 16 << 10
PSYNC, URING, NOOP, RAMDISK = HOST_BACKENDS
#: Calls that set something up, in their order: a failure comes before the first measured I/O.
SETUP = (
    "open", "open_file", "worker_start", "alloc", "register_buffer", "register_file", "io", "transport",
)  # fmt: skip
#: Calls that undo it: done all the same, so that a failure is a note.
TEARDOWN = ("deregister_file", "deregister_buffer", "free", "worker_stop", "close_file", "close")
UNDOES = {
    "open": "close",
    "open_file": "close_file",
    "worker_start": "worker_stop",
    "alloc": "free",
    "register_buffer": "deregister_buffer",
    "register_file": "deregister_file",
}
JOB = {"name": "a", "rw": "write", "size": "256KiB", "block_size": "16KiB"}
READ = {**JOB, "rw": "read"}


@pytest.fixture
def gdsfw(tmp_path: Path) -> Iterator[Wrapped]:
    driver = Wrapped(tmp_path)
    yield driver
    driver.close()


def faulty(*rules: dict[str, Any], seed: int | None = None, trace: bool = False) -> dict[str, Any]:
    fault: dict[str, Any] = {"rules": list(rules)} | ({} if seed is None else {"seed": seed})
    return {"plugins": {"fault": fault} | ({"trace": {"file": "trace.json"}} if trace else {})}


def hits(job: dict[str, Any], rule: int = 0) -> tuple[int, int, str]:
    """(hits, calls, first hits) that the result tells of a rule."""
    pattern = re.compile(rf"fault: rules\[{rule}\] \(.*\): (\d+) of (\d+) calls(?: \(first (.*)\))?")
    (found,) = filter(None, map(pattern.fullmatch, job["notes"]))
    return int(found[1]), int(found[2]), found[3] or ""


# ---- on every backend ----


@pytest.mark.parametrize("backend", BACKENDS, ids=str)
def test_an_error_at_the_nth_call_ends_the_job_and_is_told_once(
    backend: Backend, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    run, driver = runner(backend, tmp_path, tmp_path_factory)
    jobs = written_and_read(backend)
    jobs[1] |= faulty({"on": "read", "nth": 3, "error": "EIO"})
    try:
        ended = run(*jobs, code=1)
    finally:
        driver.close()
    write, read = ended.jobs
    assert (write["exit_code"], read["exit_code"]) == (0, 1)
    assert (write["loop"], read["loop"]) == (backend.loop, "python")
    (error,) = read["errors"]
    assert (error["operation"], error["domain"], error["name"]) == ("read", "errno", "EIO")
    assert (error["bytes"], error["offset"] % BLOCK) == (BLOCK, 0)
    assert ended.stderr.count("EIO") == 1
    assert hits(read)[0] == 1
    assert read["instrumented"] == ["fault"]


@pytest.mark.parametrize("backend", BACKENDS, ids=str)
def test_short_counts_are_completed_and_every_byte_is_right(
    backend: Backend, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    run, driver = runner(backend, tmp_path, tmp_path_factory)
    short = [{"on": on, "every": 3, "short": "4KiB"} for on in ("read", "write")]
    try:
        ended = run(*written_and_read(backend, **faulty(*short)))
    finally:
        driver.close()
    for rule, (job, direction) in enumerate(zip(ended.jobs[::-1], ("read", "write"), strict=True)):
        hit, calls, _ = hits(job, rule)
        assert hit == calls // 3
        assert 16 < calls <= 16 + hit  # one that is at what a short count left, no more than 4 KiB, leaves nothing
        assert 1 <= job[direction]["short_ios"] <= hit
        assert job[direction]["bytes"] == 256 << 10
        if job["verify"] is not None and direction == "read":
            assert job["verify"]["checked_bytes"] == 256 << 10
            assert job["verify"]["bad_blocks"] == 0


@pytest.mark.parametrize("backend", BACKENDS, ids=str)
def test_errors_are_counted_where_the_job_carries_on(
    backend: Backend, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    run, driver = runner(backend, tmp_path, tmp_path_factory)
    job = {"name": "a", "rw": "write", "size": "256KiB", "block_size": "16KiB", "continue_on_error": True}
    try:
        ended = run(backend.job(**job, **faulty({"on": "write", "every": 4, "code": 5, "domain": "file"})))
    finally:
        driver.close()
    (done,) = ended.jobs
    assert (done["error_count"], done["write"]["errors"], done["write"]["ios"]) == (4, 4, 12)
    assert {(error["domain"], error["code"]) for error in done["errors"]} == {("file", 5)}
    assert hits(done)[:2] == (4, 16)


@pytest.mark.parametrize("backend", BACKENDS, ids=str)
def test_without_the_plugins_key_nothing_is_different(
    backend: Backend, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    run, driver = runner(backend, tmp_path, tmp_path_factory)
    try:
        ended = run(*written_and_read(backend))
    finally:
        driver.close()
    for job, direction in zip(ended.jobs, ("write", "read"), strict=True):
        assert job["loop"] == backend.loop
        assert job["instrumented"] == []
        assert (job[direction]["ios"], job[direction]["bytes"]) == (16, 256 << 10)
        assert not any(text.startswith(("fault:", "trace:", "instrumented")) for text in job["notes"] + job["warnings"])


@pytest.mark.parametrize("backend", BACKENDS, ids=str)
def test_rules_about_hooks_leave_the_native_path(
    backend: Backend, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    run, driver = runner(backend, tmp_path, tmp_path_factory)
    rules = [{"on": hook, "every": 1, "delay": "1us"} for hook in (*SETUP, *TEARDOWN)]
    try:
        ended = run(*written_and_read(backend, **faulty(*rules)))
    finally:
        driver.close()
    for job in ended.jobs:
        assert job["loop"] == backend.loop
        assert job["instrumented"] == []
        met = {rule["on"]: hits(job, number)[:2] for number, rule in enumerate(rules)}
        assert met == {hook: (2, 2) if hook == "transport" else (1, 1) for hook in met}


# ---- every call that a rule can be about ----


def test_the_calls_that_are_tried_here_are_all_that_there_are(gdsfw: Wrapped) -> None:
    code = (
        "from typing import get_args\nfrom gdsfw_fault.options import Call\nfrom gdsfw.plugin_rules import job_hooks\n"
        "print(*get_args(Call))\nprint(*(f'gdsfw_{call}' in job_hooks() for call in get_args(Call)[3:]))"
    )
    calls, known = in_process(gdsfw, code).splitlines()
    assert set(calls.split()) == {"read", "write", "flush", *SETUP, *TEARDOWN}
    assert set(known.split()) == {"True"}


@pytest.mark.parametrize("backend", [PSYNC, RAMDISK, *(b for b in BACKENDS if b.io_path == "batch")], ids=str)
@pytest.mark.parametrize("call", SETUP)
def test_a_failure_before_the_first_io_ends_with_3_and_what_was_set_up_is_undone(
    backend: Backend, call: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    run, driver = runner(backend, tmp_path, tmp_path_factory)
    job = {"name": "a", "rw": "write", "size": "256KiB", "block_size": "16KiB", "verify": True}
    rule = {"on": call, "nth": 1, "error": "ENOMEM"}
    try:
        ended = run(backend.job(**job, **faulty(rule, trace=True)), code=3)
    finally:
        driver.close()
    (done,) = ended.jobs
    (error,) = done["errors"]
    assert (error["domain"], error["name"]) == ("errno", "ENOMEM")
    assert done["write"]["ios"] == 0
    assert hits(done)[:2] == (1, 1)
    check_undone(tmp_path)


@pytest.mark.parametrize("backend", [PSYNC, RAMDISK, *(b for b in BACKENDS if b.io_path == "batch")], ids=str)
@pytest.mark.parametrize("call", TEARDOWN)
def test_a_failure_of_what_undoes_is_a_note_and_the_rest_is_undone(
    backend: Backend, call: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    run, driver = runner(backend, tmp_path, tmp_path_factory)
    job = {"name": "a", "rw": "write", "size": "256KiB", "block_size": "16KiB", "verify": True}
    rule = {"on": call, "nth": 1, "error": "EIO"}
    try:
        ended = run(backend.job(**job, **faulty(rule, trace=True)), code=0)
    finally:
        driver.close()
    (done,) = ended.jobs
    assert f"gdsfw_{call}: [Errno 5] Input/output error" in done["notes"]
    assert done["write"]["ios"] == 16
    check_undone(tmp_path)


@pytest.mark.parametrize("call", ["write", "flush", "transport"])
def test_a_failure_after_the_first_io_ends_with_1_and_all_is_undone(gdsfw: Wrapped, call: str) -> None:
    rule = {"on": call, "nth": 2 if call == "transport" else 1, "error": "EIO"}
    ended = gdsfw.run({**JOB, **faulty(rule, trace=True)}, code=1)
    (error,) = ended.jobs[0]["errors"]
    assert error["name"] == "EIO"
    assert ended.jobs[0]["write"]["ios"] == (0 if call == "write" else 16)
    check_undone(gdsfw.folder)


def check_undone(folder: Path) -> None:
    """What the trace shows as set up, it shows as undone."""
    spans = [event for event in read_trace(folder) if event["ph"] == "X" and event["cat"] == "hook"]
    for begin, end in UNDOES.items():
        begun = [event for event in spans if event["name"] == begin and "error" not in event["args"]]
        assert len(begun) == sum(event["name"] == end for event in spans), begin


def test_no_descriptor_and_no_thread_is_left_whichever_call_fails(gdsfw: Wrapped) -> None:
    code = f"""
import json, os, threading
import gdsfw
def run(call, backend, path, depth, nth):
    rule = {{"on": call, "nth": nth, "error": "EIO"}}
    job = {{"name": "a", "rw": "write", "size": "256KiB", "block_size": "16KiB", "backend": backend,
            "directory": "data", "io_path": path, "iodepth": depth, "plugins": {{"fault": {{"rules": [rule]}}}}}}
    with open("w.json", "w") as file:
        json.dump({{"version": 1, "jobs": [job]}}, file)
    code = gdsfw.run(gdsfw.load("w.json")).exit_code
    return code, len(os.listdir("/proc/self/fd")), threading.active_count()
for path, depth in (("psync", 1), ("io_uring", 4)):
    run("close", "posix", path, depth, 1000)
    before = run("close", "posix", path, depth, 1000)
    for call in {(*SETUP, *TEARDOWN, "write", "flush")!r}:
        for nth in (1, 2):
            print(json.dumps([path, call, nth, before, run(call, "posix", path, depth, nth)]))
"""
    seen = [json.loads(line) for line in in_process(gdsfw, code).splitlines()]
    assert len(seen) == 2 * 2 * (len(SETUP) + len(TEARDOWN) + 2)
    assert [(path, call, nth) for path, call, nth, before, after in seen if before[1:] != after[1:]] == []
    assert {code for *_, (code, _, _) in seen} == {0, 1, 3}


# ---- when ----


def test_every_worker_counts_for_itself(gdsfw: Wrapped) -> None:
    rule = {"on": "write", "nth": 2, "error": "EIO"}
    job = {**JOB, "numjobs": 3, "continue_on_error": True}
    (done,) = gdsfw.run({**job, **faulty(rule)}).jobs
    assert hits(done) == (3, 48, "worker 0: 2; worker 1: 2; worker 2: 2")
    assert sorted(error["offset"] for error in done["errors"]) == [BLOCK] * 3


@pytest.mark.parametrize("backend", [PSYNC, URING, RAMDISK], ids=str)
def test_one_seed_gives_the_same_calls_again_and_another_seed_others(gdsfw: Wrapped, backend: Backend) -> None:
    if backend is URING:
        skip_without_io_uring(backend)
    job = backend.job(**JOB, numjobs=2, continue_on_error=True)

    def places(seed: int) -> list[tuple[str, int]]:
        (done,) = gdsfw.run({**job, **faulty({"on": "write", "probability": 0.3, "error": "EIO"}, seed=seed)}).jobs
        hit, calls, _ = hits(done)
        assert calls == 32
        assert hit == done["error_count"] == len(done["errors"])
        return sorted((error["file"], error["offset"]) for error in done["errors"])

    found = [places(seed) for seed in (1, 1, 2)]
    assert found[0] == found[1] != found[2]
    assert {file for file, _ in found[0]} == {"data/a.0.0", "data/a.1.0"}
    by_worker = [[offset for file, offset in found[0] if file == f"data/a.{i}.0"] for i in range(2)]
    assert by_worker[0] != by_worker[1]


def test_rules_do_not_disturb_each_other(gdsfw: Wrapped) -> None:
    """The calls that a rule hits are those that it hits alone."""
    chance = {"on": "write", "probability": 0.3, "delay": "1us"}
    (alone,) = gdsfw.run({**JOB, **faulty(chance)}).jobs
    (among,) = gdsfw.run({**JOB, **faulty(chance, {"on": "write", "every": 5, "short": 4096})}).jobs
    assert among["write"]["bytes"] == 256 << 10
    first = [int(number) for number in hits(alone)[2].partition(": ")[2].split(", ")]
    assert [int(number) for number in hits(among)[2].partition(": ")[2].split(", ")][: len(first)] == first


def test_a_probability_of_one_is_every_call_and_a_rule_that_nothing_meets_says_so(gdsfw: Wrapped) -> None:
    rules = [{"on": "write", "probability": 1, "delay": "1us"}, {"on": "read", "nth": 1, "error": "EIO"}]
    (done,) = gdsfw.run({**JOB, **faulty(*rules)}).jobs
    assert hits(done)[:2] == (16, 16)
    assert hits(done, 1)[:2] == (0, 0)


def test_the_first_error_of_several_rules_is_met(gdsfw: Wrapped) -> None:
    rules = [{"on": "write", "nth": 3, "error": "ENOSPC"}, {"on": "write", "nth": 3, "error": "EIO"}]
    (done,) = gdsfw.run({**JOB, **faulty(*rules)}, code=1).jobs
    assert [error["name"] for error in done["errors"]] == ["ENOSPC"]
    assert "free some space" in done["errors"][0]["hint"]


def test_points_of_a_sweep_are_counted_from_the_start_each(gdsfw: Wrapped) -> None:
    sweep = {"sweep": {"block_size": ["16KiB", "32KiB"]}}
    job = {key: value for key, value in JOB.items() if key != "block_size"}
    ended = gdsfw.run({**job, **sweep, **faulty({"on": "write", "nth": 2, "error": "EIO"})}, code=1)
    assert [done["errors"][0]["offset"] for done in ended.jobs] == [16 << 10, 32 << 10]


def test_only_jobs_that_ask_for_faults_have_them(gdsfw: Wrapped) -> None:
    rule = {"on": "open_file", "nth": 1, "error": "EIO"}
    jobs = [{**JOB, "name": "a"}, {**JOB, "name": "b", **faulty(rule)}, {**JOB, "name": "c"}]
    ended = gdsfw.run(*jobs, code=3)
    assert [job["exit_code"] for job in ended.jobs] == [0, 3, 0]
    assert [job["loop"] for job in ended.jobs] == ["native"] * 3


def test_jobs_that_run_together_have_their_own_faults(gdsfw: Wrapped) -> None:
    common = {**JOB, "stage": "together", "continue_on_error": True}
    first, second = ([{"on": on, "nth": nth, "error": "EIO"} for on in ("write", "close")] for nth in (1, 2))
    jobs = [{**common, "name": "a", **faulty(*first)}, {**common, "name": "b", **faulty(*second)}]
    ended = gdsfw.run(*jobs, {**common, "name": "c"})
    assert [[error["offset"] for error in job["errors"]] for job in ended.jobs] == [[0], [BLOCK], []]
    assert ["gdsfw_close: [Errno 5] Input/output error" in job["notes"] for job in ended.jobs] == [True, False, False]


# ---- what ----


@pytest.mark.parametrize("backend", [PSYNC, URING, NOOP], ids=str)
def test_a_delay_is_in_the_latency_of_the_call_it_is_at(gdsfw: Wrapped, backend: Backend) -> None:
    if backend is URING:
        skip_without_io_uring(backend)
    rule = {"on": "read", "nth": 3, "delay": "30ms"}
    (done,) = gdsfw.run(backend.job(**READ, **faulty(rule, trace=True))).jobs
    assert done["read"]["clat_ns"]["max"] >= 30_000_000
    assert done["read"]["ios"] == 16
    assert done["error_count"] == 0


def test_a_delayed_request_holds_up_no_other_of_the_queue(gdsfw: Wrapped) -> None:
    skip_without_io_uring(URING)
    rule = {"on": "read", "nth": 1, "delay": "500ms"}
    job = {**READ, "io_path": "io_uring", "iodepth": 4}
    gdsfw.run({**job, **faulty(rule, trace=True)})
    ends = {event["id"]: event["ts"] for event in read_trace(gdsfw.folder) if event["ph"] == "e"}
    begins = {event["args"]["offset"]: event for event in read_trace(gdsfw.folder) if event["ph"] == "b"}
    assert len(ends) == len(begins) == 16
    assert max(ends.values()) == ends[begins[0]["id"]]


def test_a_stop_does_not_wait_for_a_delay_in_the_queue(gdsfw: Wrapped) -> None:
    """An error ends the job while another request is held back for longer than the test may take."""
    skip_without_io_uring(URING)
    job = {**READ, "io_path": "io_uring", "iodepth": 4, "io_timeout": "2m"}
    rules = [{"on": "read", "nth": 1, "delay": "4m"}, {"on": "read", "nth": 5, "error": "EIO"}]
    (done,) = gdsfw.run({**job, **faulty(*rules)}, code=1).jobs
    assert [error["name"] for error in done["errors"]] == ["EIO"]


@pytest.mark.parametrize("direct", ["auto", False])
@pytest.mark.parametrize("backend", [PSYNC, URING], ids=str)
@pytest.mark.parametrize("short", [1, 100, 512, "4KiB", "1MiB"])
def test_a_short_count_of_any_size_is_completed(
    gdsfw: Wrapped, backend: Backend, short: int | str, direct: str | bool
) -> None:
    if backend is URING:
        skip_without_io_uring(backend)
    rule = {"on": "read", "nth": 3, "short": short}
    read = {"name": "r", "rw": "read", "files_from": "w", "block_size": "16KiB", "verify": True, "direct": direct}
    _, done = gdsfw.run({**JOB, "verify": True, "name": "w"}, backend.job(**read, **faulty(rule))).jobs
    assert done["read"]["short_ios"] == (0 if short == "1MiB" else 1)
    assert done["verify"]["checked_bytes"] == 256 << 10
    assert done["verify"]["bad_blocks"] == 0


@pytest.mark.parametrize("domain", ["gpu", "file"])
def test_codes_of_other_domains_surface_as_the_backends_own_would(gdsfw: Wrapped, domain: str) -> None:
    rule = {"on": "write", "nth": 1, "code": 5, "domain": domain}
    (done,) = gdsfw.run({**JOB, **faulty(rule)}, code=1).jobs
    (error,) = done["errors"]
    assert (error["domain"], error["code"]) == (domain, 5)
    rule = {"on": "register_file", "nth": 1, "code": 5, "domain": domain}
    (done,) = gdsfw.run({**JOB, **faulty(rule)}, code=3).jobs
    (error,) = done["errors"]
    assert (error["operation"], error["domain"], error["code"]) == ("register_file", domain, 5)


# ---- mistakes ----

TEXT = """\
version: 1
jobs:
  - name: a
    backend: noop
    rw: read
    size: 64KiB
    plugins:
      fault:
        rules:
          - {on: read, nth: 1, error: EIO}
          - RULE
"""
WHEN = "a rule says when: one of nth, every, probability"
WHAT = "a rule says what happens: error, code with domain, delay, or short"
TOGETHER = "code and domain go together; valid domains: gpu, file (`error` is for errno)"


@pytest.mark.parametrize(
    ("rule", "column", "message"),
    [
        ("{on: reed, nth: 1, error: EIO}", 14, ".on: 'reed' is not known (did you mean 'read'? valid: read, write,"),
        ("{on: sync, nth: 1, error: EIO}", 14, ".on: 'sync' is not known (valid: read, write, flush, open,"),
        ("{on: read, error: EIO}", 13, f": {WHEN}"),
        ("{on: read, nth: 1, every: 2, error: EIO}", 13, f": {WHEN}"),
        ("{on: read, nth: 0, error: EIO}", 24, ".nth: 0 is outside its range (valid: at least 1)"),
        ("{on: read, nth: true, error: EIO}", 24, ".nth: true is no whole number"),
        ("{on: read, probability: 1.5, error: EIO}", 24, ".probability: 1.5 is outside its range (valid: at most 1.0)"),
        ("{on: read, probability: 0, error: EIO}", 24, ".probability: 0 is outside its range (valid: more than 0.0)"),
        ("{on: read, nth: 1}", 13, f": {WHAT}"),
        ("{on: read, nth: 1, error: eio}", 32, ".error: 'eio' is no errno (did you mean EIO? valid: the names in"),
        ("{on: read, nth: 1, error: EWHAT}", 32, ".error: 'EWHAT' is no errno (valid: the names in errno(3), such as"),
        ("{on: read, nth: 1, error: 5}", 32, '.error: 5 is no text (quote it: "5")'),
        ("{on: read, nth: 1, code: 5}", 13, f": {TOGETHER}"),
        ("{on: read, nth: 1, domain: gpu}", 13, f": {TOGETHER}"),
        ("{on: read, nth: 1, code: 5, domain: errno}", 41, ".domain: 'errno' is not known (valid: gpu, file)"),
        ("{on: read, nth: 1, code: 5, domain: gpu, error: EIO}", 13, ": error and code exclude each other: make two"),
        ("{on: read, nth: 1, short: 5, error: EIO}", 13, ": error and short exclude each other: make two rules"),
        ("{on: read, nth: 1, delay: 5}", 32, ".delay: 5 is no delay (valid: 500us, 5ms, 2s; units ns us ms s m)"),
        ("{on: read, nth: 1, delay: 0ms}", 32, ".delay: '0ms' is no delay (valid: 500us, 5ms, 2s; units ns us ms s m)"),
        ("{on: read, nth: 1, short: 0}", 32, ".short: 0 is no size (valid: bytes from 1, such as 512 or 4KiB)"),
        ("{on: read, nth: 1, short: 4KB}", 32, ".short: '4KB' is no size (valid: bytes from 1, such as 512 or 4KiB)"),
        ("{on: io, nth: 1, short: 512}", 13, ": short is for reads and writes, not for io (valid: on: read, on:"),
        ("{on: read, nth: 1, errors: EIO}", 32, ": unknown key 'errors' (did you mean 'error'?)"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_rule_is_told_with_its_line_and_column(
    gdsfw: Wrapped, rule: str, column: int, message: str
) -> None:
    path = gdsfw.folder / "mistake.yaml"
    path.write_text(TEXT.replace("RULE", rule))
    ended = gdsfw.ended(gdsfw.start(path))
    assert ended.code == 2
    assert ended.stderr.startswith(f"{path}:11:{column}: job a: plugins.fault.rules[1]{message}")
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "plugins.fault.rules: 'rules' is missing"),
        ({"rules": []}, "plugins.fault.rules: has 0 entries (valid: at least 1)"),
        ({"rules": {"on": "read"}}, "plugins.fault.rules: {'on': 'read'} is no list (valid: [a, b])"),
        ({"rules": [{"on": "read", "nth": 1, "error": "EIO"}], "seed": -1}, "fault.seed: -1 is outside its range"),
        ({"rules": [{"on": "read", "nth": 1, "error": "EIO"}], "sead": 1}, "unknown key 'sead' (did you mean 'seed'?)"),
    ],
)  # fmt: skip
def test_a_mistake_beside_the_rules_is_told_with_its_place(
    gdsfw: Wrapped, options: dict[str, Any], message: str
) -> None:
    path = gdsfw.write({**JOB, "plugins": {"fault": options}})
    ended = gdsfw.ended(gdsfw.start(path))
    assert ended.code == 2
    assert ended.stderr.startswith(f"{path}:1:")
    assert message in ended.stderr


# ---- the README ----


def test_the_readmes_workload_does_what_the_readme_says(gdsfw: Wrapped) -> None:
    """With its seed it happens at the calls that the README names."""
    skip_without_io_uring(URING)
    path, text = readme_workload("gdsfw-fault", gdsfw.folder)
    ended = gdsfw.ended(gdsfw.start(path))
    assert ended.code == 1, ended.stderr
    said = [line.strip() for line in text.splitlines() if re.match(r"    (?:unsteady|failing): ", line)]
    assert len(said) == 6
    assert set(said) <= {line.strip() for line in (ended.stdout + ended.stderr).splitlines()}
    unsteady = ended.jobs[1]
    assert (unsteady["verify"]["bad_blocks"], unsteady["verify"]["checked_bytes"]) == (0, 16 << 20)


def test_the_readme_has_every_option_and_every_call(gdsfw: Wrapped) -> None:
    _, text = readme_workload("gdsfw-fault", gdsfw.folder)
    code = (
        "from typing import get_args\nfrom gdsfw_fault.options import Call, FaultOptions, Rule\n"
        "print(*FaultOptions.model_fields, *Rule.model_fields, *get_args(Call))"
    )
    assert set(in_process(gdsfw, code).split()) <= option_rows(text)
