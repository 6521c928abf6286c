"""Options of a backend against its model: every mistake at once, with what is valid."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, Literal

import pytest
from gdsfw.errors import WorkloadError
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
