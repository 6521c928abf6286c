"""Options of a backend against its model: every mistake at once, with what is valid."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, Literal

import pytest
from gdsfw.errors import WorkloadError
from gdsfw.option_types import Duration, Size
from gdsfw.plugins import PluginManager
from pydantic import BaseModel, Field

MakePlugin = Callable[..., ModuleType]


class Options(BaseModel):
    queue: Literal["fixed", "plain"] = "plain"
    slabs: int = Field(default=4, ge=1)


def mistakes(manager: PluginManager, options: dict[str, Any]) -> list[str]:
    with pytest.raises(WorkloadError) as caught:
        manager.validate_options("ram", options)
    return [str(problem) for problem in caught.value.problems]


@pytest.fixture
def manager(make_backend: MakePlugin) -> PluginManager:
    manager = PluginManager()
    manager.register(make_backend(options=Options), "ram")
    return manager


def test_valid_options_are_an_instance_of_the_model(manager: PluginManager) -> None:
    assert manager.validate_options("ram", {"slabs": 8}) == Options(slabs=8)
    assert manager.validate_options("ram", {}) == Options()


def test_all_mistakes_come_at_once_with_what_is_valid(manager: PluginManager) -> None:
    found = mistakes(manager, {"queue": "fast", "slabs": 0, "slab": 1})
    assert found == [
        "backend_options.ram: unknown option 'slab' (did you mean 'slabs'?)",
        "backend_options.ram: queue: 'fast' is not known (valid: fixed, plain)",
        "backend_options.ram: slabs: 0 is outside its range (valid: at least 1)",
    ]


def test_types_are_strict(manager: PluginManager) -> None:
    (found,) = mistakes(manager, {"slabs": "8"})
    assert found.startswith("backend_options.ram: slabs: '8' is no whole number")


class Sizes(BaseModel):
    window: Size | None = Field(None, ge=4096)
    patience: Duration = 0


def test_sizes_and_durations_are_spelt_as_in_the_rest_of_a_workload(make_backend: MakePlugin) -> None:
    manager = PluginManager()
    manager.register(make_backend(options=Sizes), "ram")
    found = manager.validate_options("ram", {"window": "64MiB", "patience": "5ms"})
    assert isinstance(found, Sizes)
    assert (found.window, found.patience) == (64 << 20, 5_000_000)
    assert manager.validate_options("ram", {"window": 4096}) == Sizes(window=4096)
    assert mistakes(manager, {"window": "64Mib"})[0].startswith(
        "backend_options.ram: window: '64Mib' has an unknown unit 'Mib' (valid: 4096, 4k or 4KiB"
    )
    assert mistakes(manager, {"window": "1k"}) == [
        "backend_options.ram: window: '1k' is outside its range (valid: at least 4096)"
    ]
    assert mistakes(manager, {"patience": 5})[0].startswith("backend_options.ram: patience: 5 has no unit")


def test_a_backend_without_options_takes_none(make_backend: MakePlugin) -> None:
    manager = PluginManager()
    manager.register(make_backend(), "ram")
    assert manager.validate_options("ram", {}) is None
    assert mistakes(manager, {"queue": 1}) == ["backend_options.ram: unknown option 'queue' (there are no options)"]


def test_a_plugins_options_come_from_its_hook(make_plugin: MakePlugin) -> None:
    def gdsfw_options() -> type[BaseModel]:
        return Options

    manager = PluginManager()
    manager.register(make_plugin(gdsfw_options), "fault")
    assert manager.validate_plugin_options("fault", {"slabs": 2}) == Options(slabs=2)
    with pytest.raises(WorkloadError, match=r"plugins\.fault: unknown option 'x'"):
        manager.validate_plugin_options("fault", {"x": 2})
