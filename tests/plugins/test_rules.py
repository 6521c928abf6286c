"""The calling rules: what a plugin may not do, and that the message names plugin and hook."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
from gdsfw import hookimpl
from gdsfw.errors import ExitCode, PluginError
from gdsfw.plugins import PluginManager

if TYPE_CHECKING:
    from gdsfw.backend import BackendInfo

MakePlugin = Callable[..., ModuleType]


def refused(module: Any, name: str = "ram") -> str:
    """The message that registering `module` ends with; nothing of it stays behind."""
    manager = PluginManager()
    with pytest.raises(PluginError) as caught:
        manager.register(module, name)
    assert caught.value.exit_code is ExitCode.UNAVAILABLE
    assert manager.plugins() == {}
    assert manager.backends() == {}
    return str(caught.value)


def test_a_complete_backend_is_accepted(make_backend: MakePlugin) -> None:
    manager = PluginManager()
    manager.register(make_backend(), "ram", distribution="gdsfw-ram", version="1.2")
    assert list(manager.backends()) == ["ram"]
    plugin = manager.plugins()["ram"]
    assert (plugin.distribution, plugin.version, plugin.is_backend) == ("gdsfw-ram", "1.2", True)
    assert manager.failures() == []


@pytest.mark.parametrize("hook", ["gdsfw_alloc", "gdsfw_free", "gdsfw_io"])
def test_a_backend_must_implement_every_required_hook(make_backend: MakePlugin, hook: str) -> None:
    module = make_backend()
    delattr(module, hook)
    assert f"plugin 'ram' is a backend (it implements gdsfw_backend) but lacks {hook}" in refused(module)


def test_wrapping_a_required_hook_is_not_implementing_it(make_backend: MakePlugin) -> None:
    @hookimpl(wrapper=True)
    def gdsfw_io() -> Generator[None, Any, Any]:
        return (yield)

    assert "lacks gdsfw_io" in refused(make_backend(gdsfw_io))


def test_optionalhook_is_refused(make_backend: MakePlugin) -> None:
    @hookimpl(optionalhook=True)
    def gdsfw_sync() -> None: ...

    message = refused(make_backend(gdsfw_sync))
    assert message.startswith("plugin 'ram', hook gdsfw_sync: optionalhook=True is not allowed")


def test_an_unmarked_function_is_refused(make_backend: MakePlugin) -> None:
    def gdsfw_sync() -> None: ...

    module = make_backend()
    module.gdsfw_sync = gdsfw_sync  # type: ignore[attr-defined]
    assert "plugin 'ram': function gdsfw_sync is not marked" in refused(module)


def test_a_misspelt_hook_is_refused_with_the_nearest_name(make_backend: MakePlugin) -> None:
    def gdsfw_register_bufer() -> None: ...

    message = refused(make_backend(gdsfw_register_bufer))
    assert "plugin 'ram': there is no hook gdsfw_register_bufer" in message
    assert "did you mean gdsfw_register_buffer?" in message


def test_an_unknown_argument_is_refused_with_the_valid_ones(make_backend: MakePlugin) -> None:
    def gdsfw_sync(worker: Any, handle: Any) -> None: ...

    message = refused(make_backend(gdsfw_sync))
    assert "plugin 'ram', hook gdsfw_sync: unknown argument 'handle'" in message
    assert "its arguments are: worker, file, mode" in message


def test_an_argument_with_a_default_is_refused(make_backend: MakePlugin) -> None:
    def gdsfw_transport(worker: Any, path: Any, before: Any = None) -> None: ...

    assert "hook gdsfw_transport: argument 'before' has a default" in refused(make_backend(gdsfw_transport))


@pytest.mark.parametrize("kind", ["*args", "**kwargs"])
def test_arguments_that_would_stay_empty_are_refused(make_backend: MakePlugin, kind: str) -> None:
    scope: dict[str, Any] = {}
    exec(f"def gdsfw_sync({kind}): ...", scope)
    assert f"hook gdsfw_sync: {kind} would receive nothing" in refused(make_backend(scope["gdsfw_sync"]))


def test_two_functions_for_one_hook_are_refused(make_backend: MakePlugin) -> None:
    @hookimpl(specname="gdsfw_alloc")
    def second_alloc() -> None: ...

    assert "both implement gdsfw_alloc" in refused(make_backend(second_alloc))


def test_a_plugin_without_hooks_is_refused() -> None:
    assert "plugin 'ram' implements no hook" in refused(ModuleType("empty"))


@pytest.mark.parametrize("hook", ["gdsfw_io", "gdsfw_alloc", "gdsfw_open", "gdsfw_transport", "gdsfw_error"])
def test_a_plugin_that_is_no_backend_may_only_wrap_job_hooks(make_plugin: MakePlugin, hook: str) -> None:
    scope: dict[str, Any] = {}
    exec(f"def {hook}(): ...", scope)
    message = refused(make_plugin(scope[hook]), "fault")
    assert f"plugin 'fault', hook {hook}: only the job's backend implements it" in message
    assert "wrapper=True" in message


def test_a_plugin_that_is_no_backend_may_wrap_observe_and_add(make_plugin: MakePlugin) -> None:
    @hookimpl(wrapper=True)
    def gdsfw_io() -> Generator[None, Any, Any]:
        return (yield)

    @hookimpl(hookwrapper=True)
    def gdsfw_alloc() -> Generator[None, Any, None]:
        yield

    def gdsfw_job_started(job: Any) -> None: ...

    def gdsfw_commands(app: Any) -> None: ...

    manager = PluginManager()
    manager.register(make_plugin(gdsfw_io, gdsfw_alloc, gdsfw_job_started, gdsfw_commands), "trace")
    assert manager.plugins()["trace"].wraps == {"gdsfw_io", "gdsfw_alloc"}
    assert manager.backends() == {}
    assert manager.command_plugins() == ["trace"]


def test_wrapping_gdsfw_backend_is_refused(make_plugin: MakePlugin) -> None:
    @hookimpl(wrapper=True)
    def gdsfw_backend() -> Generator[None, Any, Any]:
        return (yield)

    assert "gdsfw_backend can be implemented, not wrapped" in refused(make_plugin(gdsfw_backend), "fake")


def test_a_wrapper_without_yield_is_refused(make_plugin: MakePlugin) -> None:
    @hookimpl(wrapper=True)
    def gdsfw_io() -> None: ...

    assert "plugin 'fault', hook gdsfw_io: a wrapper must be a generator" in refused(make_plugin(gdsfw_io), "fault")


def test_the_entry_point_must_have_the_name_of_the_backend(make_backend: MakePlugin) -> None:
    message = refused(make_backend(name="ram"), "memory")
    assert message == (
        "plugin 'memory', hook gdsfw_backend: BackendInfo.name is 'ram', but the entry point is named 'memory'"
    )


def test_another_hook_version_is_refused_naming_both(make_backend: MakePlugin) -> None:
    message = refused(make_backend(hook_version=7))
    assert "plugin 'ram' was written for hook interface 7, this gdsfw has 1" in message


def test_gdsfw_backend_must_return_a_backend_info(make_backend: MakePlugin) -> None:
    def gdsfw_backend() -> Any:
        return {"name": "ram"}

    expected = "plugin 'ram', hook gdsfw_backend: returned dict where a BackendInfo is due"
    assert refused(make_backend(gdsfw_backend)) == expected


def test_gdsfw_backend_that_raises_is_refused_with_its_error(make_backend: MakePlugin) -> None:
    def gdsfw_backend() -> BackendInfo:
        raise RuntimeError("no idea")

    assert refused(make_backend(gdsfw_backend)) == "plugin 'ram', hook gdsfw_backend: RuntimeError: no idea"


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"io_paths": ()}, "at least one IOPathInfo"),
        ({"memory": ("gpu",)}, "BackendInfo.memory is ('gpu',)"),
        ({"memory": ()}, "BackendInfo.memory is ()"),
        ({"namespace": "mine"}, "BackendInfo.namespace is 'mine'"),
        ({"namespace": "own"}, "lacks gdsfw_open_file"),
        ({"options": dict}, "is no pydantic model class"),
    ],
)
def test_a_description_that_makes_no_sense_is_refused(
    make_backend: MakePlugin, facts: dict[str, Any], message: str
) -> None:
    text = refused(make_backend(**facts))
    assert message in text
    assert "plugin 'ram'" in text


def test_options_of_a_backend_belong_into_its_description(make_backend: MakePlugin) -> None:
    def gdsfw_options() -> Any: ...

    message = refused(make_backend(gdsfw_options))
    assert "plugin 'ram', hook gdsfw_options" in message
    assert "BackendInfo.options" in message


def test_a_name_can_be_registered_once(make_backend: MakePlugin) -> None:
    manager = PluginManager()
    manager.register(make_backend(), "ram", distribution="gdsfw-ram")
    with pytest.raises(PluginError, match=re.escape("a plugin named 'ram' is already there (gdsfw-ram)")):
        manager.register(make_backend(), "ram")
    assert list(manager.backends()) == ["ram"]


def test_methods_of_an_object_can_be_hooks(make_backend: MakePlugin) -> None:
    class Observer:
        def __init__(self) -> None:
            self.jobs: list[Any] = []

        @hookimpl
        def gdsfw_job_started(self, job: Any) -> None:
            self.jobs.append(job)

    observer = Observer()
    manager = PluginManager()
    manager.register(make_backend(), "ram")
    manager.register(observer, "observer")
    manager.job_hooks("ram").gdsfw_job_started(job="a job")
    assert observer.jobs == ["a job"]
