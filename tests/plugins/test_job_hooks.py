"""Calling the hooks of one job: one backend, core's defaults, wrappers, checked results."""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from gdsfw import hookimpl
from gdsfw.backend import Buffer, Device, ErrorInfo, FileHandle, Mapped, Target, Transport
from gdsfw.errors import BackendError, Domain, PluginError, UnavailableError
from gdsfw.host import Host
from gdsfw.plugin_rules import hook_arguments, job_hooks
from gdsfw.plugins import JobHooks, PluginManager
from pydantic import BaseModel

MakePlugin = Callable[..., ModuleType]


def hooks_of(*plugins: tuple[str, Any], backend: str = "ram", active: tuple[str, ...] = ()) -> JobHooks:
    manager = PluginManager()
    for name, module in plugins:
        manager.register(module, name)
    return manager.job_hooks(backend, active)


def alloc(hooks: JobHooks, nbytes: int = 8) -> Any:
    return hooks.gdsfw_alloc(worker=None, nbytes=nbytes, memory="host", alignment=4096)


def recorder(calls: list[str]) -> list[Callable[..., Any]]:
    """A function for every job hook that notes its call and returns something of the right kind."""
    results: dict[str, Any] = {
        "gdsfw_alloc": Buffer(0, 1),
        "gdsfw_open_file": FileHandle(Target("x", 0, 0)),
        "gdsfw_transport": Transport("host"),
        "gdsfw_map": Mapped(0, 1, 0, 2),
        "gdsfw_probe": [],
        "gdsfw_devices": [],
    }
    made = []
    for name in (*job_hooks(), "gdsfw_job_started", "gdsfw_job_finished"):
        if name != "gdsfw_io":
            scope: dict[str, Any] = {"calls": calls, "result": results.get(name)}
            exec(f"def {name}():\n    calls.append({name!r})\n    return result", scope)
            made.append(scope[name])
    return made


def call_everything(hooks: JobHooks) -> list[str]:
    called = []
    for name, arguments in hook_arguments().items():
        if name in (*job_hooks(), "gdsfw_job_started", "gdsfw_job_finished") and name != "gdsfw_io":
            values: dict[str, Any] = dict.fromkeys(arguments)
            if name in ("gdsfw_close_file", "gdsfw_sync"):
                values["file"] = FileHandle(Target("x", 0, 0))
            getattr(hooks, name)(**values)
            called.append(name)
    return called


def test_a_job_calls_the_hooks_of_exactly_one_backend(make_backend: MakePlugin) -> None:
    mine: list[str] = []
    other: list[str] = []
    hooks = hooks_of(
        ("other", make_backend(*recorder(other), name="other")),
        ("ram", make_backend(*recorder(mine), name="ram")),
        ("third", make_backend(*recorder(other), name="third")),
    )
    called = call_everything(hooks)
    assert other == []
    assert mine == called
    assert len(called) > 15


def test_each_hook_that_a_backend_lacks_has_a_default(make_backend: MakePlugin, tmp_path: Path) -> None:
    hooks = hooks_of(("ram", make_backend()))
    assert hooks.gdsfw_open(options=None) is None
    assert hooks.gdsfw_close(session=None) is None
    assert hooks.gdsfw_probe(options=None, directory=tmp_path, host=Host()) == []
    assert hooks.gdsfw_devices() == []
    assert hooks.gdsfw_worker_start(session=None, worker=None) is None
    assert hooks.gdsfw_worker_stop(worker=None) is None
    assert hooks.gdsfw_register_buffer(worker=None, buffer=None) is None
    assert hooks.gdsfw_deregister_buffer(worker=None, buffer=None) is None
    assert hooks.gdsfw_register_file(worker=None, file=None, request=None) is None
    assert hooks.gdsfw_deregister_file(worker=None, file=None) is None
    assert hooks.gdsfw_error(domain=Domain.GPU, code=1) is None
    assert hooks.gdsfw_import(dialect="fio", options={}) is None
    before = hooks.gdsfw_transport(worker=None, path=None, before=None)
    assert hooks.gdsfw_transport(worker=None, path=None, before=before).kind == "unknown"


def test_the_default_copy_goes_through_the_host_view(make_backend: MakePlugin) -> None:
    hooks = hooks_of(("ram", make_backend()))
    buffer = Buffer(0, 8, "host", memoryview(bytearray(b"01234567")))
    here = memoryview(bytearray(3))
    hooks.gdsfw_copy(worker=None, buffer=buffer, offset=2, host_view=here, direction="to_host")
    assert bytes(here) == b"234"
    hooks.gdsfw_copy(worker=None, buffer=buffer, offset=5, host_view=here, direction="from_host")
    assert buffer.host_view is not None
    assert bytes(buffer.host_view) == b"01234234"


def test_the_default_copy_refuses_memory_that_the_host_cannot_touch(make_backend: MakePlugin) -> None:
    hooks = hooks_of(("ram", make_backend()))
    view = memoryview(bytearray(1))
    with pytest.raises(UnavailableError, match="the host cannot touch device memory"):
        hooks.gdsfw_copy(worker=None, buffer=Buffer(4096, 8, "device"), offset=0, host_view=view, direction="to_host")


@pytest.mark.parametrize("mode", ["device", "fsync", "fdatasync"])
def test_the_default_sync_flushes_an_open_file(make_backend: MakePlugin, tmp_path: Path, mode: str) -> None:
    hooks = hooks_of(("ram", make_backend()))
    with (tmp_path / "file").open("wb") as file:
        hooks.gdsfw_sync(worker=None, file=FileHandle(Target("x", 0, 0), fd=file.fileno()), mode=mode)
    hooks.gdsfw_sync(worker=None, file=FileHandle(Target("x", 0, 0)), mode=mode)


def test_a_default_does_not_run_behind_a_backends_own_function(make_backend: MakePlugin, tmp_path: Path) -> None:
    """pluggy goes on to the next implementation when one returns None; there must be none."""

    def gdsfw_sync(file: Any, mode: str) -> None: ...

    hooks = hooks_of(("ram", make_backend(gdsfw_sync)))
    with (tmp_path / "file").open("wb") as file:
        closed = file.fileno()
    hooks.gdsfw_sync(worker=None, file=FileHandle(Target("x", 0, 0), fd=closed), mode="fsync")


@pytest.mark.parametrize(
    ("hook", "due"),
    [
        ("gdsfw_alloc", "a Buffer"),
        ("gdsfw_io", "an IOPath"),
        ("gdsfw_open_file", "a FileHandle"),
        ("gdsfw_map", "a Mapped"),
        ("gdsfw_probe", "a list of Check"),
        ("gdsfw_devices", "a list of Device"),
        ("gdsfw_transport", "a snapshot"),
    ],
)
def test_none_where_a_value_is_due_names_plugin_and_hook(make_backend: MakePlugin, hook: str, due: str) -> None:
    scope: dict[str, Any] = {}
    exec(f"def {hook}(): return None", scope)
    hooks = hooks_of(("ram", make_backend(scope[hook])))
    with pytest.raises(PluginError) as caught:
        getattr(hooks, hook)(**dict.fromkeys(hook_arguments()[hook]))
    assert str(caught.value) == f"plugin 'ram', hook {hook}: returned None where {due} is due"


@pytest.mark.parametrize(
    ("hook", "wrong"),
    [
        ("gdsfw_alloc", b"memory"),
        ("gdsfw_devices", [Device(0, "gpu", 1), "gpu 1"]),
        ("gdsfw_error", "EIO"),
        ("gdsfw_import", ["rw=read"]),
    ],
)
def test_a_result_of_a_wrong_type_names_plugin_and_hook(make_backend: MakePlugin, hook: str, wrong: Any) -> None:
    scope: dict[str, Any] = {"wrong": wrong}
    exec(f"def {hook}(): return wrong", scope)
    hooks = hooks_of(("ram", make_backend(scope[hook])))
    with pytest.raises(PluginError, match=f"plugin 'ram', hook {hook}: returned {type(wrong).__name__} where"):
        getattr(hooks, hook)(**dict.fromkeys(hook_arguments()[hook]))


def test_the_second_transport_call_owes_a_transport(make_backend: MakePlugin) -> None:
    def gdsfw_transport(before: Any) -> Any:
        return 7

    hooks = hooks_of(("ram", make_backend(gdsfw_transport)))
    assert hooks.gdsfw_transport(worker=None, path=None, before=None) == 7
    with pytest.raises(PluginError, match="returned int where a Transport is due"):
        hooks.gdsfw_transport(worker=None, path=None, before=7)


def test_what_a_plugin_raises_passes_through(make_backend: MakePlugin) -> None:
    def gdsfw_open() -> None:
        raise BackendError("cuFileDriverOpen", Domain.FILE, 5001)

    hooks = hooks_of(("ram", make_backend(gdsfw_open)))
    with pytest.raises(BackendError, match="cuFileDriverOpen: file error 5001"):
        hooks.gdsfw_open(options=None)


def test_wrappers_see_the_backends_result_and_may_replace_it(make_backend: MakePlugin, make_plugin: MakePlugin) -> None:
    @hookimpl(wrapper=True)
    def gdsfw_alloc(nbytes: int) -> Generator[None, Buffer, Buffer]:
        buffer = yield
        assert buffer.nbytes == nbytes
        return Buffer(99, nbytes)

    @hookimpl(wrapper=True)
    def gdsfw_sync() -> Generator[None, None, None]:
        seen.append("default sync")
        return (yield)

    seen: list[str] = []
    hooks = hooks_of(("ram", make_backend()), ("fault", make_plugin(gdsfw_alloc, gdsfw_sync)))
    assert alloc(hooks).address == 99
    hooks.gdsfw_sync(worker=None, file=FileHandle(Target("x", 0, 0)), mode="fsync")
    assert seen == ["default sync"]


def test_a_wrapper_that_forgets_the_result_is_named(make_backend: MakePlugin, make_plugin: MakePlugin) -> None:
    @hookimpl(wrapper=True)
    def gdsfw_alloc() -> Generator[None, Buffer, None]:
        yield

    hooks = hooks_of(("ram", make_backend()), ("fault", make_plugin(gdsfw_alloc)))
    with pytest.raises(PluginError, match=r"hook gdsfw_alloc: returned None .*wrapped by 'fault'"):
        alloc(hooks)


def test_a_plugin_with_options_takes_part_only_in_jobs_that_name_it(
    make_backend: MakePlugin, make_plugin: MakePlugin
) -> None:
    class Options(BaseModel):
        rate: float = 0.5

    def gdsfw_options() -> type[BaseModel]:
        return Options

    @hookimpl(wrapper=True)
    def gdsfw_alloc() -> Generator[None, Buffer, Buffer]:
        yield
        return Buffer(99, 1)

    plugins = ("ram", make_backend()), ("fault", make_plugin(gdsfw_options, gdsfw_alloc))
    assert alloc(hooks_of(*plugins)).address == 0
    manager = PluginManager()
    for name, module in plugins:
        manager.register(module, name)
    assert alloc(manager.job_hooks("ram", ["fault"])).address == 99
    assert manager.validate_plugin_options("fault", {}).rate == 0.5


def test_naming_a_plugin_that_is_not_there_says_which_are(make_backend: MakePlugin, make_plugin: MakePlugin) -> None:
    def gdsfw_job_started() -> None: ...

    with pytest.raises(UnavailableError, match=r"plugin 'fault' is not installed\n  hint: installed: watch"):
        hooks_of(("ram", make_backend()), ("watch", make_plugin(gdsfw_job_started)), active=("fault",))
    with pytest.raises(PluginError, match=r"'ram' is a backend\n  hint: its options go under backend_options.ram"):
        hooks_of(("ram", make_backend()), active=("ram",))


def test_a_call_with_a_missing_or_unknown_argument_is_an_error(make_backend: MakePlugin) -> None:
    hooks = hooks_of(("ram", make_backend()))
    with pytest.raises(TypeError, match="gdsfw_sync is called with worker, file, mode; look at: mode"):
        hooks.gdsfw_sync(worker=None, file=None)
    with pytest.raises(AttributeError, match="there is no job hook gdsfw_flush"):
        hooks.gdsfw_flush  # noqa: B018


def test_observers_of_every_plugin_but_other_backends_are_called(
    make_backend: MakePlugin, make_plugin: MakePlugin
) -> None:
    seen: list[str] = []

    def observer(name: str) -> Callable[..., None]:
        def gdsfw_job_started(job: Any) -> None:
            seen.append(f"{name} {job}")

        return gdsfw_job_started

    hooks = hooks_of(
        ("ram", make_backend(observer("ram"))),
        ("other", make_backend(observer("other"), name="other")),
        ("one", make_plugin(observer("one"))),
        ("two", make_plugin(observer("two"))),
    )
    hooks.gdsfw_job_started(job="J")
    assert sorted(seen) == ["one J", "ram J", "two J"]


def test_a_backend_explains_its_own_codes_and_core_the_kernels(make_backend: MakePlugin) -> None:
    def gdsfw_error(domain: Domain, code: int) -> ErrorInfo | None:
        return ErrorInfo("FILE_NOT_REGISTERED", "not registered") if domain is Domain.FILE else None

    manager = PluginManager()
    manager.register(make_backend(gdsfw_error), "ram")
    assert manager.explain_error("ram", Domain.FILE, 5027).name == "FILE_NOT_REGISTERED"
    told = manager.explain_error("ram", Domain.ERRNO, 22)
    assert (told.name, told.text) == ("EINVAL", "invalid argument")
    assert "aligned" in told.cause
    assert manager.explain_error("ram", Domain.GPU, 719).name == "GPU_719"


def test_an_explanation_that_fails_does_not_hide_the_error(make_backend: MakePlugin) -> None:
    def gdsfw_error() -> ErrorInfo:
        raise RuntimeError("no texts")

    manager = PluginManager()
    manager.register(make_backend(gdsfw_error), "ram")
    told = manager.explain_error("ram", Domain.ERRNO, 5)
    assert told.name == "EIO"
    assert told.cause.endswith("(plugin 'ram', hook gdsfw_error: RuntimeError: no texts)")
