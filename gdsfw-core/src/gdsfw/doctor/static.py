"""Checks that a result keeps of the GPU backends that ran: files are read, nothing is written, no library is asked."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gdsfw.doctor.examine import blockers, with_id
from gdsfw.doctor.machine import file_system, machine_kind
from gdsfw.host import Host
from gdsfw.inventory import backend_status

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gdsfw.backend import Check
    from gdsfw.plugins import PluginManager
    from gdsfw.results.model import JobResult


def static_checks(
    manager: PluginManager, jobs: Sequence[JobResult], directories: Iterable[str]
) -> tuple[dict[str, list[dict[str, Any]]], list[str]]:
    """The checks by backend, and a note with the first blocker of each whose bytes did not go peer to peer.

    Backends without devices are not asked.

    Args:
        directories: where the jobs' files are; the first decides.
    """
    names = sorted({job.backend for job in jobs if "devices" in manager.backend(job.backend).capabilities})
    if not names:
        return {}, []
    directory = min(directories, default="/")
    host = Host()
    machine = [check(host, directory) for check in (machine_kind, file_system)]
    kept, notes = {}, []
    for name in names:
        status = backend_status(manager, name, Path(directory), host)
        checks = [*machine, *(with_id(check, name) for check in status.checks)]
        kept[name] = [asdict(check) for check in checks]
        first = next(iter(blockers(checks)), None)
        if first is not None and any(_bounced(job) for job in jobs if job.backend == name):
            notes.append(_note(name, first))
    return kept, notes


def _bounced(job: JobResult) -> bool:
    """Whether the job moved bytes and they are not known to have gone peer to peer."""
    return bool(job.total_bytes) and job.transport.kind != "p2p"


def _note(name: str, check: Check) -> str:
    fix = f"; fix: {check.fix}" if check.fix else ""
    return f"{name} was not direct: {check.name}: {check.seen}{fix} (gdsfw doctor says more)"
