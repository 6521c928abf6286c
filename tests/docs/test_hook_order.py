"""The tables of the hooks' index are what recorded jobs did: order, threads, endings and exit codes."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from docs.hook_pages import INDEX, PAGES, SPECS, flat, plugin, rows, run, sections, thread_of
from gdsfw import hookimpl, noop
from gdsfw.backend import BackendInfo, Device, FileHandle, IOPath, IOPathInfo
from gdsfw.errors import BackendError, Domain, IOFailedError, PluginError, RefusedError, UnavailableError, UsageError
from gdsfw.plugin_rules import SHARED_HOOKS
from gdsfw.plugins import PluginManager
from gdsfw.results.table import error_lines
from pydantic import BaseModel

#: Hooks that undo another one.
UNDOING = (
    "gdsfw_close", "gdsfw_close_file", "gdsfw_worker_stop", "gdsfw_free", "gdsfw_deregister_buffer",
    "gdsfw_deregister_file",
)  # fmt: skip
#: Hooks of a job's start, in which an error ends it before the first measured I/O.
STARTING = (
    "gdsfw_open", "gdsfw_open_file", "gdsfw_worker_start", "gdsfw_alloc", "gdsfw_register_buffer",
    "gdsfw_register_file", "gdsfw_io", "gdsfw_transport",
)  # fmt: skip
ERRORS: dict[str, BaseException] = {
    "BackendError": BackendError("call", Domain.FILE, 5001),
    "OSError": OSError(13, "Permission denied"),
    "UnavailableError": UnavailableError("absent"),
    "PluginError": PluginError("broken"),
    "RefusedError": RefusedError("not yours"),
    "UsageError": UsageError("wrong"),
    "IOFailedError": IOFailedError("failed"),
    "any other exception": RuntimeError("oops"),
}


class Recorder:
    """What was called, by name, and whether on the main thread."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []

    def note(self, hook: str) -> None:
        main = threading.current_thread() is threading.main_thread()
        self.calls.append((hook, "main" if main else "worker"))

    def plugin(self) -> ModuleType:
        """A plugin that wraps every hook that can be wrapped to effect, and has the observers and options itself."""
        module = ModuleType("recorder")
        for hook in SPECS:
            if hook in ("gdsfw_job_started", "gdsfw_job_finished"):
                setattr(module, hook, hookimpl(specname=hook)(self._plain(hook)))
            elif hook not in SHARED_HOOKS and hook != "gdsfw_backend":
                around = self._around_io() if hook == "gdsfw_io" else self._around(hook)
                setattr(module, hook, hookimpl(specname=hook, wrapper=True)(around))
        return module

    def _plain(self, hook: str) -> Callable[[], None]:
        return lambda: self.note(hook)

    def _around(self, hook: str) -> Callable[[], Generator[None, Any, Any]]:
        def around() -> Generator[None, Any, Any]:
            self.note(hook)
            return (yield)

        return around

    def _around_io(self) -> Callable[[], Generator[None, IOPath, IOPath]]:
        """The end of the path is noted too."""

        def around() -> Generator[None, IOPath, IOPath]:
            self.note("gdsfw_io")
            path = yield
            closes = path.close

            def close() -> None:
                self.note("IOPath.close")
                closes()

            path.close = close  # type: ignore[method-assign]
            return path

        return around


class Backend:
    """A backend on which every read fails, and which notes what the recorder cannot wrap."""

    gdsfw_open_file = staticmethod(noop.gdsfw_open_file)
    gdsfw_close_file = staticmethod(noop.gdsfw_close_file)
    gdsfw_alloc = staticmethod(noop.gdsfw_alloc)
    gdsfw_free = staticmethod(noop.gdsfw_free)

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    @hookimpl
    def gdsfw_backend(self) -> BackendInfo:
        self._recorder.note("gdsfw_backend")
        path = IOPathInfo("failing", native=False)
        return BackendInfo("failing", "Fails", "1", (path,), memory=("host", "device"), namespace="own")

    @hookimpl
    def gdsfw_devices(self) -> list[Device]:
        return [Device(0, "one", 1 << 20)]

    @hookimpl
    def gdsfw_io(self, files: list[FileHandle]) -> IOPath:
        class Calls(noop.NoopIO):
            def read(self, file: FileHandle, size: int, file_offset: int, buffer_offset: int) -> int:
                raise OSError(5, "Input/output error")

        return IOPath("failing", files, python=Calls())


class Options(BaseModel):
    """No options."""


class WithOptions:
    """A plugin with options."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    @hookimpl
    def gdsfw_options(self) -> type[BaseModel]:
        self._recorder.note("gdsfw_options")
        return Options


def test_the_table_of_one_job_is_what_a_job_does(tmp_path: Path) -> None:
    recorder, manager = Recorder(), PluginManager()
    manager.register(noop, "noop")
    manager.register(recorder.plugin(), "recorder")
    assert run(manager, tmp_path).exit_code == 0
    steps = rows(sections(INDEX)["One job"])
    assert [int(step[0]) for step in steps] == list(range(1, len(steps) + 1))
    shown = [(main or worker, "main" if main else "worker") for _, main, worker, _ in steps if main or worker]
    assert shown == recorder.calls


def test_the_table_of_all_hooks_is_in_the_order_in_which_a_run_calls_them(tmp_path: Path) -> None:
    recorder, manager = Recorder(), PluginManager()
    manager.register(Backend(recorder), "failing")
    manager.register(recorder.plugin(), "recorder")
    manager.register(WithOptions(recorder), "extra")
    result = run(manager, tmp_path, ", devices: [0], plugins: {extra: {}}", "failing")
    assert result.exit_code == 1
    called = [call for call in dict.fromkeys(recorder.calls) if call[0] in SPECS]
    table = [(row[0][1 : row[0].index("]")], row[1]) for row in rows(sections(INDEX)["All hooks"])]
    assert called == table[: len(called)]
    kept = {"gdsfw_probe", "gdsfw_commands", "gdsfw_map", "gdsfw_unmap", "gdsfw_sync", "gdsfw_copy", "gdsfw_import"}
    assert {hook for hook, _ in table[len(called) :]} == kept


def failing(hook: str, error: BaseException) -> PluginManager:
    """noop with a plugin whose wrapper of a hook raises."""

    def raising() -> Generator[None, Any, Any]:
        raise error
        yield

    return plugin(hook, raising, wrapper=True)


RAISED = {row[0]: row[1:] for row in rows(sections(INDEX)["What to raise"])}


def kinds() -> Iterator[tuple[str, str]]:
    for row in RAISED:
        for kind in row.replace("`", "").split(", "):
            yield row, kind


def test_the_table_of_errors_has_every_kind() -> None:
    assert {kind for _, kind in kinds()} == set(ERRORS)


@pytest.mark.parametrize("hook", STARTING)
@pytest.mark.parametrize(("row", "kind"), list(kinds()))
def test_an_error_before_the_first_io_ends_the_job_with_the_code_of_the_table(
    hook: str, row: str, kind: str, tmp_path: Path
) -> None:
    result = run(failing(hook, ERRORS[kind]), tmp_path)
    assert (result.exit_code, result.jobs[0].total_ios) == (int(RAISED[row][0]), 0)
    place = "worker 0: " if thread_of(hook) == "worker" else ""
    assert result.jobs[0].errors[0].message.startswith(place)


@pytest.mark.parametrize("hook", STARTING[:-1])
def test_an_error_is_shown_in_the_form_that_the_page_says(hook: str, tmp_path: Path) -> None:
    result = run(failing(hook, UnavailableError("absent", hint="install it")), tmp_path)
    form = re.search(r"shown as `([^`]+)`", flat(sections(PAGES[hook])["What to raise"]))
    assert form is not None
    words = {"JOB": "one", "worker N": "worker 0", "MESSAGE": "absent", "HINT": "install it"}
    shown = form[1]
    for word, value in words.items():
        shown = shown.replace(word, value)
    assert error_lines(result) == [shown]


@pytest.mark.parametrize(("row", "kind"), list(kinds()))
def test_an_error_of_the_judgement_keeps_the_figures_and_has_the_code_of_the_table(
    row: str, kind: str, tmp_path: Path
) -> None:
    def judging(before: Any) -> Generator[None, Any, Any]:
        told = yield
        if before is not None:
            raise ERRORS[kind]
        return told

    result = run(plugin("gdsfw_transport", judging, wrapper=True), tmp_path)
    assert (result.exit_code, result.jobs[0].total_ios) == (int(RAISED[row][1]), 16)


@pytest.mark.parametrize("hook", UNDOING)
def test_an_error_while_something_is_undone_is_a_note_and_nothing_more(hook: str, tmp_path: Path) -> None:
    assert f"`{hook}`" in flat(sections(INDEX)["What to raise"])
    assert "becomes a note of the result" in flat(sections(PAGES[hook])["What to raise"])
    recorder, manager = Recorder(), failing(hook, RuntimeError("jammed"))
    manager.register(recorder.plugin(), "recorder")
    result = run(manager, tmp_path)
    assert (result.exit_code, result.jobs[0].total_ios) == (0, 16)
    assert f"{hook}: jammed" in result.jobs[0].notes
    assert set(UNDOING) - {hook} <= {name for name, _ in recorder.calls}


@pytest.mark.parametrize("hook", STARTING[1:])
def test_what_returned_is_undone_and_what_raised_is_not(hook: str, tmp_path: Path) -> None:
    undone_by = {
        "gdsfw_open": "gdsfw_close", "gdsfw_open_file": "gdsfw_close_file", "gdsfw_worker_start": "gdsfw_worker_stop",
        "gdsfw_alloc": "gdsfw_free", "gdsfw_register_buffer": "gdsfw_deregister_buffer",
        "gdsfw_register_file": "gdsfw_deregister_file",
    }  # fmt: skip
    recorder, manager = Recorder(), failing(hook, UnavailableError("absent"))
    manager.register(recorder.plugin(), "recorder")
    run(manager, tmp_path)
    before = STARTING[: STARTING.index(hook)]
    undone = [name for name, _ in recorder.calls if name in undone_by.values()]
    assert undone == [undone_by[name] for name in reversed(before) if name in undone_by]


def test_a_worker_that_is_left_behind_has_nothing_undone(tmp_path: Path) -> None:
    recorder, manager, gate = Recorder(), PluginManager(), threading.Event()

    class Stuck(Backend):
        @hookimpl
        def gdsfw_io(self, files: list[FileHandle]) -> IOPath:
            class Calls(noop.NoopIO):
                def read(self, file: FileHandle, size: int, file_offset: int, buffer_offset: int) -> int:
                    gate.wait(60)
                    return size

            return IOPath("stuck", files, python=Calls())

    manager.register(Stuck(recorder), "failing")
    manager.register(recorder.plugin(), "recorder")
    try:
        result = run(manager, tmp_path, ", io_timeout: 1s", "failing")
        called = [name for name, _ in recorder.calls]
    finally:
        gate.set()
    assert result.exit_code == 1
    assert [name for name in called if name in UNDOING] == []
    assert called[-1] == "gdsfw_job_finished"
