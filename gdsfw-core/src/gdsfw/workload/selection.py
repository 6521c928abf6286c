"""Which backend, I/O path and depth a job gets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gdsfw.workload.options import check_backend_options, check_plugins

if TYPE_CHECKING:
    from gdsfw.backend import BackendInfo, IOPathInfo
    from gdsfw.workload.complaints import Complaints
    from gdsfw.workload.model import Job
    from gdsfw.workload.options import Plugins

#: The backend that moves nothing; it is never chosen without being named.
NOOP = "noop"
#: Capability of a backend whose paths can flush a file to storage.
FLUSH = "flush"


@dataclass(frozen=True)
class Chosen:
    """What a job runs on.

    Args:
        iodepth: what the job asked for, or the most the path can have.
    """

    backend: BackendInfo
    io_path: str
    iodepth: int
    notes: tuple[str, ...] = ()


class Selection:
    """Chooses among the installed backends."""

    def __init__(self, plugins: Plugins, complaints: Complaints) -> None:
        self._plugins = plugins
        self._installed = plugins.backends()
        self._complaints = complaints

    def choose(self, job: Job, override: str | None) -> Chosen | None:
        """What `job` runs on, or None when there is something to complain about.

        Args:
            override: backend from the command line, in place of the job's own.
        """
        backend = self._backend(job, override or job.backend)
        path = self._path(job, backend) if backend is not None else None
        if backend is None or path is None:
            return None
        self._check_memory(job, backend)
        self._check_flush(job, backend)
        check_backend_options(job, backend, self._complaints)
        check_plugins(job, self._plugins, self._complaints)
        notes: list[str] = []
        depth = job.iodepth
        if path.max_iodepth and depth > path.max_iodepth:
            depth = path.max_iodepth
            notes.append(
                f"iodepth {job.iodepth} is {depth}: path {path.name} of {backend.name} keeps no more in flight"
            )
        if job.iodepth_batch > depth:
            notes.append(f"iodepth_batch {job.iodepth_batch} is {depth}: a batch is at most the depth")
        return Chosen(backend, path.name, depth, tuple(notes))

    def _backend(self, job: Job, name: str | None) -> BackendInfo | None:
        installed = sorted(self._installed)
        if name is None:
            real = [candidate for candidate in installed if candidate != NOOP]
            if len(real) == 1:
                return self._installed[real[0]]
            if real:
                hint = f"installed: {', '.join(installed)}; write one in the job or in defaults, or use --backend"
                self._complaints.wrong(job.name, "", "backend is not given, and several are installed", hint)
            else:
                hint = f"pip install gdsfw-posix, or name the backend {NOOP}, which moves nothing"
                self._complaints.absent(job.name, "", "no backend that moves bytes is installed", hint)
            return None
        if name not in self._installed:
            error = self._plugins.missing_backend(name)
            self._complaints.absent(job.name, "backend", error.message, error.hint)
            return None
        return self._installed[name]

    def _path(self, job: Job, backend: BackendInfo) -> IOPathInfo | None:
        path = next((path for path in backend.io_paths if path.name == job.io_path), None)
        if path is None and job.io_path == "auto":
            path = backend.io_paths[0]
        if path is None:
            there = ", ".join(dict.fromkeys(["auto", *(path.name for path in backend.io_paths)]))
            message = f"backend {backend.name} has no io_path {job.io_path!r}"
            self._complaints.wrong(job.name, "io_path", message, f"valid: {there}")
            return None
        for direction, able in (("read", path.reads), ("write", path.writes)):
            if direction in job.directions and not able:
                able_paths = [other.name for other in backend.io_paths if getattr(other, f"{direction}s")]
                message = f"path {path.name} of {backend.name} cannot {direction}, which rw: {job.rw} needs"
                self._complaints.wrong(job.name, "rw", message, f"paths that can: {', '.join(able_paths) or 'none'}")
                return None
        return path

    def _check_memory(self, job: Job, backend: BackendInfo) -> None:
        if job.memory != "auto" and job.memory not in backend.memory:
            hint = f"valid: auto, {', '.join(backend.memory)}"
            self._complaints.wrong(job.name, "memory", f"backend {backend.name} has no {job.memory} memory", hint)

    def _check_flush(self, job: Job, backend: BackendInfo) -> None:
        """Flushes that a job asks for itself; the one at the end that is the default goes without saying."""
        asked = {"fsync": job.fsync > 0, "fdatasync": job.fdatasync > 0, "end_fsync": job.end_fsync is True}
        for key, wanted in asked.items():
            if wanted and job.writes and FLUSH not in backend.capabilities:
                self._complaints.wrong(job.name, key, f"backend {backend.name} cannot flush, which {key} asks for")
