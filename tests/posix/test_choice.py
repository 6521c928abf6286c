"""Which path a job gets, and what is said where the kernel refuses io_uring."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from gdsfw.host import Host
from helpers.running import Gdsfw
from helpers.sandbox import SYS_IO_URING_SETUP, locking_at_most, refusing

READ: dict[str, Any] = {"name": "r", "rw": "randread", "size": "1MiB", "direct": False}
DEEP = {**READ, "iodepth": 32}

works = pytest.mark.usefixtures("_io_uring_works")
refusals = pytest.mark.parametrize(("error", "says"), [(errno.EPERM, "seccomp"), (errno.ENOSYS, "has no io_uring")])


def test_one_io_at_a_time_goes_by_psync(gdsfw: Gdsfw) -> None:
    (job,) = gdsfw.run(READ).jobs
    assert (job["io_path_asked"], job["io_path"]) == ("auto", "psync")
    assert job["warnings"] == [] or all("iodepth" not in line for line in job["warnings"])


@works
def test_a_depth_goes_by_io_uring(gdsfw: Gdsfw) -> None:
    (job,) = gdsfw.run(DEEP).jobs
    assert (job["io_path_asked"], job["io_path"]) == ("auto", "io_uring")


def test_a_depth_that_psync_cannot_keep_is_one_warning(gdsfw: Gdsfw) -> None:
    (job,) = gdsfw.run({**DEEP, "io_path": "psync"}).jobs
    assert (job["depth"]["asked"], job["depth"]["achieved"]) == (32, 1.0)
    assert [line for line in job["warnings"] if "iodepth" in line] == [
        "iodepth 32 was asked for, 1.0 was kept on average"
    ]


@refusals
def test_auto_falls_back_and_says_why(confined: Callable[..., Any], error: int, says: str) -> None:
    (job,) = confined(refusing(SYS_IO_URING_SETUP, error), DEEP).jobs
    assert job["io_path"] == "psync"
    assert job["read"]["bytes"] == 1 << 20
    (note,) = [note for note in job["notes"] if "io_path auto" in note]
    assert says in note
    assert (job["depth"]["asked"], job["depth"]["achieved"]) == (32, 1.0)
    assert len([line for line in job["warnings"] if "iodepth" in line]) == 1


@refusals
def test_io_uring_by_name_ends_with_3_and_the_cause(confined: Callable[..., Any], error: int, says: str) -> None:
    ended = confined(refusing(SYS_IO_URING_SETUP, error), {**DEEP, "io_path": "io_uring"}, code=3)
    assert says in ended.stdout + ended.stderr
    assert "io_path: psync" in ended.stdout + ended.stderr
    assert ended.jobs[0]["read"] is None or ended.jobs[0]["read"]["ios"] == 0


@works
@pytest.mark.parametrize("path", ["auto", "io_uring"])
def test_a_buffer_above_the_lock_limit_goes_unregistered_and_says_so(confined: Callable[..., Any], path: str) -> None:
    (job,) = confined(locking_at_most(32 << 10), {**DEEP, "io_path": path}).jobs
    assert job["io_path"] == "io_uring"
    assert job["transport"]["details"]["io_uring"]["fixed_buffers"] is False
    (note,) = [note for note in job["notes"] if "unregistered" in note]
    for part in ("131072 bytes", "32768 bytes", "ulimit -l", "register_buffers: none"):
        assert part in note


@works
def test_the_lock_limit_counts_for_all_workers_together(confined: Callable[..., Any]) -> None:
    (job,) = confined(locking_at_most(400 << 10), {**DEEP, "numjobs": 4}).jobs
    assert [note for note in job["notes"] if "unregistered" in note and "524288 bytes" in note]
    assert job["error_count"] == 0


@works
def test_registration_that_the_job_insists_on_is_refused_by_the_plan(confined: Callable[..., Any]) -> None:
    job = {**DEEP, "io_path": "io_uring", "register_buffers": "once"}
    ended = confined(locking_at_most(32 << 10), job, code=2)
    assert ended.result is None, "nothing ran"
    for part in ("131072 bytes", "32768 bytes", "ulimit -l", "register_buffers: none"):
        assert part in ended.stdout + ended.stderr


@works
def test_within_the_lock_limit_the_buffers_are_registered(confined: Callable[..., Any]) -> None:
    (job,) = confined(locking_at_most(1 << 20), {**DEEP, "numjobs": 2}).jobs
    assert job["transport"]["details"]["io_uring"]["fixed_buffers"] is True


@works
def test_polling_buffered_files_ends_with_3(gdsfw: Gdsfw) -> None:
    options = {"backend_options": {"posix": {"iopoll": True}}}
    ended = gdsfw.run({**DEEP, "io_path": "io_uring", **options}, code=3)
    assert "iopoll needs direct I/O" in ended.stdout + ended.stderr


def test_an_option_that_is_not_there_is_named(gdsfw: Gdsfw) -> None:
    ended = gdsfw.run({**READ, "backend_options": {"posix": {"sqpol": True}}}, code=2)
    assert "sqpoll" in ended.stdout + ended.stderr


def test_options_without_effect_are_noted(gdsfw: Gdsfw) -> None:
    (job,) = gdsfw.run({**READ, "backend_options": {"posix": {"sqpoll": True}}}).jobs
    assert any("sqpoll has no effect" in note for note in job["notes"])


@pytest.mark.parametrize(
    ("setting", "state", "says"),
    [("0", "ok", ""), ("1", "warn", "users outside"), ("2", "warn", "everybody"), (None, None, "")],
)
def test_the_switch_of_a_recorded_machine_is_judged(
    tmp_path: Path, setting: str | None, state: str | None, says: str
) -> None:
    from gdsfw_posix.probe import checks

    if setting is not None:
        (tmp_path / "proc/sys/kernel").mkdir(parents=True)
        (tmp_path / "proc/sys/kernel/io_uring_disabled").write_text(f"{setting}\n")
    found = checks(tmp_path, Host(tmp_path, live=False))
    assert [check.state for check in found] == ([state] if state else [])
    assert all(says in check.seen for check in found)


def test_the_probe_of_this_machine_covers_io_uring_and_locked_memory(tmp_path: Path) -> None:
    from gdsfw_posix.probe import checks

    found = {check.name: check for check in checks(tmp_path, Host())}
    assert {"file system", "direct I/O", "io_uring", "locked memory"} <= set(found)
    assert all(check.fix for check in found.values() if check.state == "warn")
