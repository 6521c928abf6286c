"""Jobs that differ in an option that a library reads once per process run in processes of their own: one result."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import types
from pathlib import Path
from typing import Any

import gdsfw as api
import pytest
from gdsfw.plugins import PluginManager
from gdsfw.workload.loader import load_data
from helpers.running import Ended, Gdsfw
from helpers.site import Site

# As libraries with such options do: the first value counts, and a later one is not looked at.
SOURCE = """
import os, pathlib, signal, sys
from pydantic import BaseModel, Field
from gdsfw import hookimpl, host_memory
from gdsfw.backend import BackendInfo, FileHandle, IOPath, IOPathInfo, Transport
from gdsfw.storage.safe_open import close_file, open_target

class Options(BaseModel):
    mode: int = Field(0, description="A mode, no unit.", json_schema_extra={"once_per_process": True})
    crash: bool = Field(False, description="Whether the second I/O ends the process.")

READ = []
KEPT = {}

@hookimpl
def gdsfw_backend():
    namespace = os.environ.get("ONCE_NAMESPACE", "files")
    return BackendInfo("once", "Once", "1", (IOPathInfo("once", native=False),), options=Options, namespace=namespace)
@hookimpl
def gdsfw_open(options):
    READ.append(options.mode)
    with pathlib.Path("opened").open("a") as file:
        file.write(f"{os.getpid()} {options.mode} {READ[0]}\\n")
    return options
@hookimpl
def gdsfw_open_file(target, mode):
    if os.environ.get("ONCE_NAMESPACE") != "own":
        return open_target(target, mode)
    return FileHandle(target, writable=True)
@hookimpl
def gdsfw_close_file(file):
    if file.fd >= 0:
        close_file(file)
@hookimpl
def gdsfw_alloc(nbytes, memory, alignment):
    return host_memory.allocate(nbytes, memory, alignment)
@hookimpl
def gdsfw_free(buffer):
    host_memory.free(buffer)
@hookimpl
def gdsfw_io(worker, files, buffer):
    view, calls = buffer.host_view, []
    class IO:
        def read(self, file, size, file_offset, buffer_offset):
            part = view[buffer_offset:buffer_offset + size]
            if worker.options.crash and file_offset:
                os.kill(os.getpid(), signal.SIGSEGV)
            if file.fd < 0:
                part[:] = KEPT[file.target.name, file_offset]
                return size
            return os.preadv(file.fd, [part], file_offset)
        def write(self, file, size, file_offset, buffer_offset):
            part = view[buffer_offset:buffer_offset + size]
            if file.fd < 0:
                KEPT[file.target.name, file_offset] = bytes(part)
                return size
            return os.pwrite(file.fd, part, file_offset)
        def flush(self, file, data_only):
            if file.fd >= 0:
                os.fsync(file.fd)
    print("a library's words on stdout")
    return IOPath("once", files, python=IO())
"""


def once(mode: int, **more: Any) -> dict[str, Any]:
    return {"backend": "once", "size": "64KiB", "backend_options": {"once": {"mode": mode}}, **more}


@pytest.fixture
def start(gdsfw: Gdsfw, site: Site) -> Any:
    site.distribution("gdsfw-once", SOURCE, entry_points={"once": "gdsfw_once"})

    def begin(*jobs: dict[str, Any], arguments: tuple[str, ...] = (), **environ: str) -> Any:
        return gdsfw.start(gdsfw.write(*jobs, direct=False), *arguments, PYTHONPATH=str(site.folder), **environ)

    return begin


def opened(gdsfw: Gdsfw) -> list[tuple[int, int, int]]:
    """(process, mode asked for, mode that the library has) of every session."""
    return [tuple(map(int, line.split())) for line in (gdsfw.folder / "opened").read_text().splitlines()]  # type: ignore[misc]


def ended(gdsfw: Gdsfw, process: Any, code: int = 0) -> Ended:
    done = gdsfw.ended(process)
    assert done.code == code, done.stderr + done.stdout
    return done


def test_each_value_has_a_process_and_all_are_one_result(gdsfw: Gdsfw, start: Any) -> None:
    jobs = [
        {"name": "w", **once(1, rw="write", verify=True)},
        {"name": "r", **once(2, rw="read", files_from="w", verify=True)},
        {"name": "again", **once(1, rw="randread", files_from="w", verify=True)},
    ]
    done = ended(gdsfw, start(*jobs))
    assert [job["name"] for job in done.jobs] == ["w", "r", "again"]
    assert [job["verify"]["checked_bytes"] for job in done.jobs] == [0, 65536, 65536]
    assert all(job["phases"]["setup"] > 0 and job["status"] == "done" for job in done.jobs)
    sessions = opened(gdsfw)
    assert [(asked, has) for _, asked, has in sessions] == [(1, 1), (2, 2), (1, 1)]
    assert sessions[0][0] == sessions[2][0] != sessions[1][0]
    assert all(name in done.stdout for name in ("again", "w ", "r "))


def test_points_of_a_sweep_have_processes(gdsfw: Gdsfw, start: Any) -> None:
    modes = [{"once": {"mode": mode}} for mode in (3, 4, 5)]
    job = {"name": "r", "backend": "once", "rw": "read", "size": "64KiB", "sweep": {"backend_options": modes}}
    done = ended(gdsfw, start(job))
    assert len({job["label"] for job in done.jobs}) == 3
    assert [(asked, has) for _, asked, has in opened(gdsfw)] == [(3, 3), (4, 4), (5, 5)]
    assert any("3 processes" in note for note in done.result["notes"]) if done.result else False


def test_variables_set_options_and_chosen_plugins_hold_in_children(gdsfw: Gdsfw, start: Any) -> None:
    jobs = [{"name": "w", **once(1, rw="write", directory="${PLACE}")}, {"name": "r", **once(2, rw="read")}]
    arguments = ("--set", "jobs.r.files_from=w", "--set", "jobs.r.size=32KiB")
    done = ended(gdsfw, start(*jobs, arguments=arguments, PLACE="elsewhere", GDSFW_PLUGINS="once"))
    assert [job["files"] for job in done.jobs] == [["elsewhere/w.0.0"]] * 2
    assert [job["total_bytes"] for job in done.jobs] == [65536, 32768]
    assert len({pid for pid, _, _ in opened(gdsfw)}) == 2


def test_a_program_that_runs_two_workloads_gets_each_its_values(gdsfw: Gdsfw, site: Site) -> None:
    site.distribution("gdsfw-once", SOURCE, entry_points={"once": "gdsfw_once"})
    first, second = (gdsfw.folder / name for name in ("first.yaml", "second.yaml"))
    for path, mode in ((first, 1), (second, 2)):
        path.write_text(json.dumps({"jobs": [{"name": "w", **once(mode, rw="write", directory="data")}]}))
    program = "import gdsfw, sys\nfor name in sys.argv[1:]: assert gdsfw.run(gdsfw.load(name)).exit_code == 0"
    environ = {**os.environ, "PYTHONPATH": str(site.folder)}
    command = [sys.executable, "-c", program, first.name, second.name]
    subprocess.run(command, cwd=gdsfw.folder, env=environ, check=True)
    assert [(asked, has) for _, asked, has in opened(gdsfw)] == [(1, 1), (2, 2)]


def test_stdout_stays_the_results(gdsfw: Gdsfw, start: Any) -> None:
    jobs = [{"name": "a", **once(1, rw="write")}, {"name": "b", **once(2, rw="write")}]
    done = ended(gdsfw, start(*jobs, arguments=("--json",)))
    assert [job["name"] for job in json.loads(done.stdout)["jobs"]] == ["a", "b"]
    assert "a library's words" in done.stderr


def test_jobs_that_agree_run_in_one_process(gdsfw: Gdsfw, start: Any) -> None:
    process = start({"name": "a", **once(1, rw="write")}, {"name": "b", **once(1, rw="write")})
    ended(gdsfw, process)
    assert {pid for pid, _, _ in opened(gdsfw)} == {process.pid}


def test_different_values_in_one_stage_are_refused(gdsfw: Gdsfw, start: Any) -> None:
    jobs = [{"name": "a", **once(1, rw="write", stage="s")}, {"name": "b", **once(2, rw="write", stage="s")}]
    done = ended(gdsfw, start(*jobs), code=2)
    assert "reads mode once per process, and jobs of one stage give it 1 and 2" in done.stderr
    assert done.result is None


def test_data_that_lives_in_a_process_is_there_for_its_later_jobs_only(gdsfw: Gdsfw, start: Any) -> None:
    jobs = [
        {"name": "w", **once(1, rw="write", verify=True)},
        {"name": "other", **once(2, rw="write")},
        {"name": "r", **once(1, rw="read", files_from="w", verify=True)},
    ]
    done = ended(gdsfw, start(*jobs, ONCE_NAMESPACE="own"))
    assert done.jobs[2]["verify"]["checked_bytes"] == 65536
    jobs[2] = {"name": "r", **once(2, rw="read", files_from="w")}
    done = ended(gdsfw, start(*jobs, ONCE_NAMESPACE="own"), code=2)
    assert "its data ends with the process" in done.stderr


def test_a_process_that_dies_costs_its_own_jobs_only(gdsfw: Gdsfw, start: Any) -> None:
    crash = {"backend_options": {"once": {"mode": 2, "crash": True}}}
    jobs = [
        {"name": "w", **once(1, rw="write")},
        {"name": "bad", **once(2, rw="read", files_from="w"), **crash},
        {"name": "r", **once(1, rw="read", files_from="w")},
    ]
    done = gdsfw.ended(start(*jobs))
    assert done.code in (1, 3), done.stderr
    assert [job["status"] == "done" for job in done.jobs] == [True, False, True]
    assert "SIGSEGV" in done.jobs[1]["errors"][0]["message"]
    assert "bad: error: the job's process was ended by SIGSEGV" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("whole_group", [False, True], ids=["the run", "its process group"])
def test_a_signal_reaches_the_child_and_keeps_partial_results(
    gdsfw: Gdsfw, start: Any, number: signal.Signals, whole_group: bool
) -> None:
    jobs = [
        {"name": "w", **once(1, rw="write")},
        {"name": "long", **once(2, rw="randread", files_from="w", runtime="60s")},
        {"name": "later", **once(1, rw="read", files_from="w")},
    ]
    process = start(*jobs)
    child = _second_session(gdsfw)
    if whole_group:  # as a terminal does
        os.kill(child, number)
    process.send_signal(number)
    done = ended(gdsfw, process, code=130)
    assert [(job["name"], job["status"]) for job in done.jobs] == [("w", "done"), ("long", "interrupted")]
    assert done.jobs[1]["read"]["ios"] > 0
    assert any("1 of 3 jobs were not run" in note for note in done.result["notes"]) if done.result else False
    assert "Traceback" not in done.stderr
    assert not Path(f"/proc/{child}").exists()


def test_a_second_signal_leaves_at_once_and_takes_the_child_along(gdsfw: Gdsfw, start: Any) -> None:
    jobs = [{"name": "w", **once(1, rw="write")}, {"name": "r", **once(2, rw="read", files_from="w", runtime="60s")}]
    process = start(*jobs)
    child = _second_session(gdsfw)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    assert gdsfw.ended(process).code == 130
    _wait_for_end_of(child)


def test_a_child_does_not_outlive_a_run_that_is_killed(gdsfw: Gdsfw, start: Any) -> None:
    jobs = [{"name": "w", **once(1, rw="write")}, {"name": "r", **once(2, rw="read", files_from="w", runtime="60s")}]
    process = start(*jobs)
    child = _second_session(gdsfw)
    process.kill()
    process.communicate()
    _wait_for_end_of(child)


def _wait_for_end_of(child: int) -> None:
    deadline = time.monotonic() + 20
    while _runs(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _runs(child)


def _second_session(gdsfw: Gdsfw) -> int:
    """The process of the second job, when its I/O has begun."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if (gdsfw.folder / "opened").exists() and len(opened(gdsfw)) > 1:
            time.sleep(0.5)
            return opened(gdsfw)[1][0]
        time.sleep(0.02)
    raise AssertionError("the second job did not begin")


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_plugin_that_only_this_program_knows_is_refused(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    module = types.ModuleType("gdsfw_once_here")
    exec(SOURCE, module.__dict__)
    plugins = PluginManager()
    plugins.register(module, "once")
    jobs = [{"name": "a", **once(1, rw="write")}, {"name": "b", **once(2, rw="write")}]
    result = api.run(load_data({"jobs": jobs, "defaults": {"directory": "data"}}), plugins=plugins)
    assert result.exit_code == 3
    assert "do not find the plugins once" in result.jobs[0].errors[0].message
