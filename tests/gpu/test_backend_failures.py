"""The GPU backends on the vendors' stand-ins: what is absent, refuses, fails, hangs or is set wrongly is said once."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from dataclasses import replace
from typing import Any

import pytest
from fakes.driving import OnStandin, said, written_and_read


def on_variant(on: OnStandin, *, without: list[str] | None = None, parts: list[str] | None = None) -> OnStandin:
    """The same with functions or whole libraries missing."""
    variant = on.standin.variant(without=without or [], **({} if parts is None else {"parts": parts}))
    return OnStandin(variant, on.folder)


def write(path: str, **more: Any) -> dict[str, Any]:
    return {"name": path, "rw": "write", "io_path": path, **more}


def read(path: str, **more: Any) -> dict[str, Any]:
    return {"name": path, "rw": "read", "io_path": path, "continue_on_error": False, **more}


def test_without_the_file_library_staged_still_works(on: OnStandin) -> None:
    bare = on_variant(on, parts=["runtime"])
    ended = bare.run(*written_and_read("staged", iodepth=4), *written_and_read("auto"))
    assert [job["io_path"] for job in ended.jobs] == ["staged"] * 4
    library = "libhipfile" if on.hip else "libcufile"
    assert re.search(f"io_path auto: staged, because .*{library}", said(ended))
    ended = bare.run(*(write(path) for path in ("sync", "batch", "stream")), code=3)
    for job in ended.jobs:
        assert library in job["errors"][0]["message"]
        assert "io_path staged needs" in job["errors"][0]["hint"]


def test_without_any_library_a_job_ends_with_3(on: OnStandin) -> None:
    bare = on_variant(on, parts=[])
    ended = bare.run(write("staged"), code=3)
    assert f"backend {on.backend}: " in said(ended)
    assert "install" in said(ended)


def test_without_a_gpu_a_job_ends_with_3(on: OnStandin) -> None:
    ended = on.run(write("staged"), settings={"devices": 0}, code=3)
    assert f"backend {on.backend}: " in said(ended)
    assert ("rocminfo" if on.hip else "nvidia-smi") in said(ended)


def test_an_old_library_without_a_path_says_so_and_has_the_others(on: OnStandin) -> None:
    old = on_variant(on, without=["batch_setup", "read_async"])
    ended = old.run(write("batch"), write("stream"), *written_and_read("sync"), code=3)
    assert [job["exit_code"] for job in ended.jobs] == [3, 3, 0, 0]
    for path, lacking in (("batch", "batch_setup"), ("stream", "read_async")):
        assert f"io_path {path}: the file library has no {lacking}" in said(ended)
    assert "io_path sync or staged" in said(ended)


def test_a_library_that_does_not_support_a_path_yet_ends_with_3(on: OnStandin) -> None:
    rules = ["fail=batch_setup:*:5008", "fail=stream_register:*:5008"]
    ended = on.run(write("batch"), write("stream"), rules=rules, code=3)
    name = "hipFileIONotSupported" if on.hip else "CU_FILE_IO_NOT_SUPPORTED"
    assert [job["errors"][0]["name"] for job in ended.jobs] == [name, name]


def test_a_runtime_that_lacks_a_function_is_no_crash(on: OnStandin) -> None:
    old = on_variant(on, without=["stream_create"])
    ended = old.run(write("staged"), code=3)
    assert "treamCreate" in said(ended)


def test_error_5027_is_explained(on: OnStandin) -> None:
    ended = on.run(write("sync"), rules=["fail=handle_register:*:5027"], code=3)
    text = said(ended)
    assert ("hipFileHandleNotRegistered" if on.hip else "HANDLE_NOT_REGISTERED") in text
    assert "sync.0.0" in text
    assert on.hip or "mount the host's /run/udev into the container" in text


def test_auto_is_staged_where_files_cannot_be_registered(on: OnStandin) -> None:
    more = {} if on.hip else on.options(p2pdma=True)
    rules = ["fail=handle_register:*:5027"]
    ended = on.run(*written_and_read("auto", **more), rules=rules, settings={"p2p": "p2pdma"})
    assert [job["io_path"] for job in ended.jobs] == ["staged", "staged"]
    assert "io_path auto: staged, because" in said(ended)


#: Path, rule, and who says what. Calls of a kind are counted through the run; a job ends with its third.
NTH = [
    ("sync", "fail=read:3:-1:28", "errno", 28),
    ("sync", "fail=read:6:-5022", "file", 5022),
    ("sync", "fail=read:9:700", "gpu", 700),
    ("batch", "fail=batch_entry:3:-5022", "file", 5022),
    ("stream", "fail=stream_io:3:-5", "gpu", 5),
    ("staged", "fail=to_device_async:3:700", "gpu", 700),
]


def test_the_nth_call_that_fails_ends_the_job(on: OnStandin) -> None:
    jobs = [read(path, iodepth=1 if path == "sync" else 4) | {"name": f"j{n}"} for n, (path, *_) in enumerate(NTH)]
    ended = on.run(*jobs, rules=[rule for _, rule, *_ in NTH], code=1)
    for job, (_, _, domain, code) in zip(ended.jobs, NTH, strict=True):
        (error,) = job["errors"]
        assert (error["domain"], error["code"]) == (domain, code)
        assert re.search(r"read of \d+ bytes at offset \d+ of data/", error["message"])


def test_failures_can_be_counted_and_gone_through(on: OnStandin) -> None:
    jobs = [read("sync", continue_on_error=True), read("batch", continue_on_error=True, iodepth=4)]
    rules = ["fail=read:%4:-5011", "fail=batch_entry:%4:-5011"]
    ended = on.run(*jobs, rules=rules)
    assert [job["error_count"] for job in ended.jobs] == [4, 4]


def test_a_submission_that_succeeds_is_no_io(on: OnStandin) -> None:
    """Asynchronous reads that come back with -5: as many errors as reads, none of them counted as I/O."""
    ended = on.run(read("stream", iodepth=8, continue_on_error=True), rules=["fail=stream_io:*:-5"])
    assert ended.jobs[0]["read"]["ios"] == 0
    assert ended.jobs[0]["error_count"] == 16


def test_a_call_that_hangs_is_named_and_left_behind(on: OnStandin) -> None:
    ended = on.run(read("sync", io_timeout="300ms"), rules=["delay=read:3:30000000000"], code=1)
    assert "has been in flight for" in said(ended)


def test_a_batch_deeper_than_the_library_holds_is_refused(on: OnStandin) -> None:
    ended = on.run(read("batch", iodepth=256, size="8MiB"), code=2)
    assert f"iodepth 256 exceeds the batch maximum {128 if on.hip else 64}" in said(ended)


def test_a_device_that_is_not_there_lists_those_that_are(on: OnStandin) -> None:
    ended = on.run(read("staged", devices=[0, 7]), code=2)
    assert "there is no device 7" in said(ended)
    assert "present: 0, 1" in said(ended)


def test_more_registered_memory_than_the_limit_is_refused_before_any_io(on: OnStandin) -> None:
    if on.hip:
        pytest.skip("hipFile has no such limit: registering only records the range")
    job = read("sync", block_size="1MiB", numjobs=4, size="4MiB", **on.options(max_pinned_kib=2048))
    ended = on.run(job, code=2)
    text = said(ended)
    assert "4 workers register 1MiB each on device 0, 4MiB together" in text
    assert "allows 2MiB" in text
    assert "block_size of 512KiB fits" in text
    on.run(job | {"register_buffers": "none"})
    direct = on.options(max_pinned_kib=132 << 10, p2pdma=True)
    ended = on.run(job | direct | {"iodepth": 4, "io_path": "batch"}, settings={"p2p": "p2pdma"}, code=2)
    assert "less max_device_cache_size_kb allows 4MiB" in said(ended)
    assert "iodepth 1 fits" in said(ended)


def test_memory_that_the_device_has_not_is_refused(on: OnStandin) -> None:
    ended = on.run(read("staged", block_size="64MiB", size="64MiB"), settings={"memory": 1 << 24}, code=3)
    assert re.search("OUT_?OF_?MEMORY", said(ended), re.IGNORECASE)


def test_a_broken_cufile_json_is_named_with_its_line(on: OnStandin) -> None:
    if on.hip:
        pytest.skip("hipFile has no such file")
    settings = on.folder / "cufile.json"
    settings.write_text('{\n  // comments are allowed\n  "logging": {"dir": "/tmp", }\n}\n')
    variables = {"CUFILE_ENV_PATH_JSON": str(settings)}
    ended = on.run(read("sync"), environ=variables, code=3)
    assert f"{settings}:3: " in said(ended)
    assert on.run(read("auto"), environ=variables).jobs[0]["io_path"] == "staged"
    settings.unlink()
    assert "No such file" in said(on.run(read("sync"), environ=variables, code=3))


def test_a_result_says_which_settings_were_in_force(on: OnStandin) -> None:
    settings = on.folder / "cufile.json"
    settings.write_text(json.dumps({"properties": {"use_compat_mode": True}}))
    if on.hip:
        variables = {"HIPFILE_ALLOW_COMPAT_MODE": "true", "HIPFILE_UNSUPPORTED_FILE_SYSTEMS": "true"}
        line = "hipFile: HIPFILE_ALLOW_COMPAT_MODE=true, HIPFILE_UNSUPPORTED_FILE_SYSTEMS=true"
    else:
        variables = {"CUFILE_ENV_PATH_JSON": str(settings), "CUFILE_ALLOW_COMPAT_MODE": "true"}
        line = f"cuFile: settings of {settings} (named by CUFILE_ENV_PATH_JSON), then CUFILE_ALLOW_COMPAT_MODE=true"
    ended = on.run(read("sync"), environ=variables)
    assert line in ended.jobs[0]["notes"]
    assert any("can corrupt data" in note for note in ended.jobs[0]["notes"]) == on.hip


def test_contexts_that_the_library_opened_elsewhere_are_noted(on: OnStandin) -> None:
    ended = on.run(read("sync"), settings={"contexts": 1, "devices": 3})
    assert "contexts on devices that this job does not use: 1, 2" in " ".join(ended.jobs[0]["notes"])
    assert not any("contexts" in note for note in on.run(read("sync")).jobs[0]["notes"])


def test_an_interrupt_leaves_nothing_in_flight(on: OnStandin) -> None:
    """Parameters, buffer and file of stream-ordered reads live until the stream is past them: no misuse is seen."""
    job = read("stream", iodepth=16, size="1MiB", runtime="30s")
    workload = on.gdsfw.write(job, backend=on.backend, block_size="16KiB")
    process = on.start(workload, rules=["delay=stream_io:*:5000000"])
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and not re.search("stream_io", _trace(on)):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    ended = on.ended(process, 130)
    assert ended.jobs[0]["read"]["ios"] > 0


def test_a_read_only_working_folder_is_no_error(on: OnStandin) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    on.run(read("sync"))  # lays out
    on.folder.chmod(0o555)
    try:
        on.ended(on.start(on.folder / "workload.yaml"))
    finally:
        on.folder.chmod(0o755)


def test_backends_lists_what_is_wrong_with_the_settings(on: OnStandin) -> None:
    if on.hip:
        pytest.skip("hipFile has no settings file")
    from gdsfw_cufile.configuration import in_force

    path = on.folder / "x.json"
    path.write_text('{"a": "http://x // y" } // end\n')
    found = in_force({"CUFILE_ENV_PATH_JSON": str(path)})
    assert (found.problem, found.path) == ("", str(path))
    assert replace(found, path=None, how="x").line() == "cuFile: the library's defaults (x)"


def _trace(on: OnStandin) -> str:
    try:
        return on.trace()
    except FileNotFoundError:
        return ""
