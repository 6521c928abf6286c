"""Options of backends and plugins, checked against what is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from pydantic import ValidationError

from gdsfw.errors import GdsfwError
from gdsfw.plugin_options import option_names
from gdsfw.workload.messages import dotted, explain
from gdsfw.workload.names import unknown_key_hint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import BaseModel

    from gdsfw.backend import BackendInfo
    from gdsfw.workload.complaints import Complaints
    from gdsfw.workload.model import Job, Workload


class Plugins(Protocol):
    """What a plan needs of gdsfw.plugins.PluginManager."""

    def backends(self) -> Mapping[str, BackendInfo]:
        """Usable backends by name."""
        ...

    def missing_backend(self, name: str) -> GdsfwError:
        """Why there is no backend of this name, and what to do."""
        ...

    def options_model(self, name: str) -> type[BaseModel] | None:
        """What options a plugin that is no backend takes; raises when the plugin is not there or wrong."""
        ...


def check_backend_options(job: Job, backend: BackendInfo, complaints: Complaints) -> None:
    """Compare what the job says under `backend_options` for this backend with its options model."""
    given = job.backend_options.get(backend.name, {})
    _check_options(job, ("backend_options", backend.name), given, backend.options, complaints)


def check_plugins(job: Job, plugins: Plugins, complaints: Complaints) -> None:
    """Compare what the job says under `plugins` with the plugins that are there."""
    for name, given in job.plugins.items():
        try:
            model = plugins.options_model(name)
        except GdsfwError as error:
            complaints.absent(job.name, f"plugins.{name}", error.message, error.hint)
        else:
            _check_options(job, ("plugins", name), given, model, complaints)


def _check_options(
    job: Job,
    prefix: tuple[str, str],
    given: Mapping[str, Any],
    model: type[BaseModel] | None,
    complaints: Complaints,
) -> None:
    """Compare what a job gives under the keys `prefix` with an options model."""
    valid = [] if model is None else option_names(model)
    open_ended = model is not None and model.model_config.get("extra") == "allow"
    unknown = [key for key in given if key not in valid and not open_ended]
    for key in unknown:
        hint = unknown_key_hint(key, valid) if valid else f"{prefix[1]} has no options"
        message = f"{dotted(prefix)}: unknown key {key!r}"
        complaints.wrong(job.name, f"{dotted(prefix)}.{key}", message, hint)
    if model is None:
        return
    try:
        model.model_validate({key: value for key, value in given.items() if key not in unknown}, strict=True)
    except ValidationError as error:
        for found in explain(error, model):
            placed = found._replace(path=(*prefix, *found.path))
            complaints.wrong(job.name, dotted(placed.path), placed.text, placed.hint)


def check_installed(workload: Workload, plugins: Plugins, complaints: Complaints) -> list[str]:
    """Check the options of every job for each backend that is installed, whichever the job will run on.

    Returns:
        A note for each backend that the workload names and that is not installed here.
    """
    installed = plugins.backends()
    missing: dict[str, None] = {}
    for point in (point for points in workload.points for point in points):
        for name in dict.fromkeys([*([point.job.backend] if point.job.backend else []), *point.job.backend_options]):
            if name in installed:
                check_backend_options(point.job, installed[name], complaints)
            else:
                missing[name] = None
        check_plugins(point.job, plugins, complaints)
    return [f"backend {name!r} is not installed here, so its options were not checked" for name in missing]
