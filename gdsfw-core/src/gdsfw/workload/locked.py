"""Registered buffers against the limit on locked memory, before anything is registered."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gdsfw.backend import IOPathInfo
    from gdsfw.workload.model import Job

HINT = "raise it (ulimit -l, LimitMEMLOCK=), or set register_buffers: none"


def beyond_limit(job: Job, path: IOPathInfo | None, iodepth: int, nbytes: int, limit: int | None) -> str | None:
    """What to say when the job's buffers cannot all be registered; None when they can, or are not.

    Args:
        nbytes: buffers of all workers. limit: bytes that may be locked, None for no limit.
    """
    if path is None or not path.locks_buffers or job.register_buffers != "once" or limit is None or nbytes <= limit:
        return None
    if path.name == "auto" and iodepth == 1:
        return None
    return f"io_path {path.name} registers {nbytes} bytes of buffers, and this user may lock {limit} bytes"


def insists(job: Job) -> bool:
    """Whether the job itself asks for the registration; what is only the default may be left out."""
    return job.io_path != "auto" and "register_buffers" in job.model_fields_set
