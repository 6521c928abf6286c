"""A small set of backends, a machine with known limits, and a way to plan YAML text."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest
from gdsfw.backend import Alignment, BackendInfo, Device, IOPathInfo
from gdsfw.hookspecs import hookimpl
from gdsfw.plugins import PluginManager
from gdsfw.workload.loader import load_text
from gdsfw.workload.machine import Machine
from gdsfw.workload.plan import make_plan
from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gdsfw.workload.model import Workload
    from gdsfw.workload.plan_model import Plan


class GpuOptions(BaseModel):
    """Options of the test's device backend."""

    model_config = ConfigDict(extra="forbid")

    chunk_kb: int = Field(
        1024, ge=4, description="KiB per internal request.", json_schema_extra={"once_per_process": True}
    )
    polling: bool = Field(False, description="Poll instead of waiting.")


NOOP = BackendInfo("noop", "nothing", "1", (IOPathInfo("noop", native=True, max_iodepth=0),))
DISK = BackendInfo(
    "disk",
    "files of this machine",
    "1",
    (
        IOPathInfo("sync", native=True),
        IOPathInfo("queue", native=True, max_iodepth=64),
        IOPathInfo("mapped", native=True, writes=False),
    ),
    memory=("host", "hugepage"),
    capabilities=frozenset({"flush"}),
)
GPU = BackendInfo(
    "gpu",
    "device memory",
    "1",
    (IOPathInfo("sync", native=True),),
    memory=("device", "pinned"),
    options=GpuOptions,
)
STORE = BackendInfo("store", "names of its own", "1", (IOPathInfo("put", native=False),), namespace="own")


class Backend:
    """A backend that says what it is and never runs."""

    def __init__(self, info: BackendInfo) -> None:
        self.info = info

    @hookimpl
    def gdsfw_backend(self) -> BackendInfo:
        return self.info

    @hookimpl
    def gdsfw_alloc(self) -> None:
        """Never called."""

    @hookimpl
    def gdsfw_free(self) -> None:
        """Never called."""

    @hookimpl
    def gdsfw_io(self) -> None:
        """Never called."""


class Store(Backend):
    """One with names of its own."""

    @hookimpl
    def gdsfw_open_file(self) -> None:
        """Never called."""


class Tracer:
    """A plugin that is no backend and has options."""

    @hookimpl
    def gdsfw_options(self) -> type[BaseModel]:
        return GpuOptions


@lru_cache
def manager(*backends: BackendInfo) -> PluginManager:
    plugins = PluginManager()
    for info in backends:
        plugins.register(Store(info) if info.namespace == "own" else Backend(info), info.name)
    plugins.register(Tracer(), "tracer")
    return plugins


@dataclass
class KnownMachine(Machine):
    """A machine with given limits; everything else is as here."""

    space: int = 2**50
    memory: int | None = 2**50
    block: int = 1
    cpu_list: tuple[int, ...] = (0, 1, 2, 3)
    nodes: dict[int, tuple[int, ...]] = field(default_factory=lambda: {0: (0, 1), 1: (2, 3)})

    def __post_init__(self) -> None:
        super().__init__()

    def free_space(self, path: Path) -> tuple[int, int]:
        return 7, self.space

    def alignment(self, path: Path) -> Alignment:
        return Alignment(self.block, self.block, "test device")

    def free_memory(self) -> int | None:
        return self.memory

    def cpus(self) -> tuple[int, ...]:
        return self.cpu_list

    def numa_nodes(self) -> dict[int, tuple[int, ...]]:
        return self.nodes


def devices(backend: str) -> list[Device]:
    return [Device(0, "one", 2**34, numa_node=0), Device(1, "two", 2**34, numa_node=1)]


@pytest.fixture(scope="session")
def plan_workload() -> Callable[..., Plan]:
    """Plan a workload on known backends and a known machine; keyword arguments go to these and to make_plan."""

    def plan(workload: Workload, *, backends: tuple[BackendInfo, ...] = (NOOP, DISK), **options: Any) -> Plan:
        limits = {key: options.pop(key) for key in list(options) if key in KnownMachine.__annotations__}
        return make_plan(workload, plugins=manager(*backends), machine=KnownMachine(**limits), **options)

    return plan


@pytest.fixture
def plan_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plan_workload: Callable[..., Plan]) -> Callable[..., Plan]:
    """Plan YAML text in an empty current directory; keyword arguments as for plan_workload."""
    monkeypatch.chdir(tmp_path)

    def plan(text: str, **options: Any) -> Plan:
        return plan_workload(load_text(dedent(text), "w.yaml", environ={}), **options)

    return plan


@dataclass(frozen=True)
class Known:
    """The backends of these tests."""

    noop: BackendInfo = NOOP
    disk: BackendInfo = DISK
    gpu: BackendInfo = GPU
    store: BackendInfo = STORE


@pytest.fixture(scope="session")
def known() -> Known:
    return Known()


@pytest.fixture(scope="session")
def list_devices() -> Callable[[str], list[Device]]:
    return devices
