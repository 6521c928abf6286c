"""What a run and its child processes say to each other, over a pipe that only the two of them hold."""

from __future__ import annotations

import io
import pickle
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gdsfw.backend import BackendInfo

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gdsfw.plugins import PluginManager
    from gdsfw.workload.plan_model import StagePlan


@dataclass(frozen=True)
class RunStage:
    """To the child: run this stage. Its answer is an engine.in_process.StageEnd, or a Failed."""

    packed: bytes


@dataclass(frozen=True)
class Stop:
    """To the child: end what you are doing and answer with what there is."""


@dataclass(frozen=True)
class Hello:
    """From the child, first: the plugins that it found, with their versions."""

    plugins: Mapping[str, str]


@dataclass(frozen=True)
class Shown:
    """From the child: call this method of results.progress.Progress."""

    method: str
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class Failed:
    """From the child: an error outside of any job."""

    message: str
    hint: str | None
    exit_code: int


def pack(stage: StagePlan) -> bytes:
    """A stage for another process, with the names of backends in the place of what they say of themselves."""
    buffer = io.BytesIO()
    _Packer(buffer).dump(stage)
    return buffer.getvalue()


def unpack(packed: bytes, plugins: PluginManager) -> StagePlan:
    """The stage that was packed, with this process's own backends.

    Raises:
        UnavailableError: a backend is not there.
    """
    stage: StagePlan = _Unpacker(io.BytesIO(packed), plugins).load()
    return stage


class _Packer(pickle.Pickler):
    def persistent_id(self, obj: Any) -> str | None:
        return obj.name if isinstance(obj, BackendInfo) else None


class _Unpacker(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, plugins: PluginManager) -> None:
        super().__init__(file)
        self._plugins = plugins

    def persistent_load(self, pid: Any) -> BackendInfo:
        return self._plugins.backend(pid)
