"""What core does for a hook that a backend lacks.

They are no trylast implementations of one plugin: pluggy would run those after a backend's own function that returns
None. Each backend gets a companion plugin that holds just the hooks it lacks.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from types import ModuleType
from typing import TYPE_CHECKING, Any

from gdsfw.errors import UnavailableError
from gdsfw.hookspecs import REQUIRED, hookimpl
from gdsfw.plugin_rules import job_hooks

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from gdsfw import backend as b
    from gdsfw.errors import Domain
    from gdsfw.host import Host


@hookimpl
def gdsfw_probe(options: Any, directory: Path, host: Host) -> list[b.Check]:
    """Nothing to say."""
    return []


@hookimpl
def gdsfw_devices() -> list[b.Device]:
    """No devices."""
    return []


@hookimpl
def gdsfw_open(options: Any) -> None:
    """An empty session."""


@hookimpl
def gdsfw_close(session: Any) -> None:
    """Nothing to undo."""


@hookimpl
def gdsfw_open_file(session: Any, target: b.Target, mode: str) -> b.FileHandle:
    """Core's safe open."""
    from gdsfw.storage.safe_open import open_target

    return open_target(target, mode)


@hookimpl
def gdsfw_close_file(session: Any, file: b.FileHandle) -> None:
    """Close the descriptors."""
    from gdsfw.storage.safe_open import close_file

    close_file(file)


@hookimpl
def gdsfw_worker_start(session: Any, worker: b.Worker) -> None:
    """No state."""


@hookimpl
def gdsfw_worker_stop(worker: b.Worker) -> None:
    """Nothing to undo."""


@hookimpl
def gdsfw_register_buffer(worker: b.Worker, buffer: b.Buffer) -> None:
    """Nothing to register with."""


@hookimpl
def gdsfw_deregister_buffer(worker: b.Worker, buffer: b.Buffer) -> None:
    """Nothing to undo."""


@hookimpl
def gdsfw_register_file(worker: b.Worker, file: b.FileHandle, request: b.Request) -> None:
    """Nothing to register with."""


@hookimpl
def gdsfw_deregister_file(worker: b.Worker, file: b.FileHandle) -> None:
    """Nothing to undo."""


@hookimpl
def gdsfw_sync(worker: b.Worker, file: b.FileHandle, mode: str) -> None:
    """Flush the file's descriptor; there is no device to wait for."""
    if file.fd >= 0 and mode != "device":
        (os.fdatasync if mode == "fdatasync" else os.fsync)(file.fd)


@hookimpl
def gdsfw_copy(worker: b.Worker, buffer: b.Buffer, offset: int, host_view: memoryview, direction: str) -> None:
    """Copy through the buffer's host view."""
    if buffer.host_view is None:
        raise UnavailableError(f"the host cannot touch {buffer.memory} memory, and the backend has no gdsfw_copy")
    there = buffer.host_view.cast("B")[offset : offset + host_view.nbytes]
    here = host_view.cast("B")
    if direction == "to_host":
        here[:] = there
    else:
        there[:] = here


@hookimpl
def gdsfw_transport(worker: b.Worker, path: b.IOPath, before: Any) -> b.Transport:
    """Nobody knows."""
    from gdsfw.backend import Transport

    return Transport("unknown", evidence=("the backend does not say which way the bytes took",))


@hookimpl
def gdsfw_map(session: Any, file: b.FileHandle, device: int, writable: bool) -> b.Mapped:
    """There is no device."""
    raise UnavailableError("this backend has no memory of devices to map a file into")


@hookimpl
def gdsfw_unmap(session: Any, mapped: b.Mapped) -> None:
    """Nothing to undo."""


@hookimpl
def gdsfw_error(domain: Domain, code: int) -> None:
    """Leave it to core."""


@hookimpl
def gdsfw_import(dialect: str, options: Mapping[str, str]) -> None:
    """No other tool's options."""


def companion(name: str, implemented: Collection[str]) -> ModuleType:
    """A plugin with core's default of every job hook that is not in `implemented`.

    Args:
        name: of the backend.
        implemented: hooks the backend implements itself.
    """
    module = ModuleType(f"gdsfw defaults for {name}")
    for hook in job_hooks():
        if hook not in implemented and hook not in REQUIRED:
            setattr(module, hook, globals()[hook])
    return module
