"""The examination: every probe in a process of its own, then the proof, then the verdict."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from gdsfw.backend import Check
from gdsfw.doctor.children import Answer, ask
from gdsfw.doctor.recording import Recording

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gdsfw.plugins import PluginManager

SCHEMA = "gdsfw-doctor/1"
#: Seconds for the probes, and for probes and proof together; what is left of ten is for starting and removing files.
PROBES, ALL = 4.0, 9.0
#: Rank of a piece without which the backend does not work at all.
_MISSING_PIECE = 10


@dataclass
class BackendReport:
    """One backend.

    Args:
        gpu: it moves bytes into GPU memory, so that it can be direct.
        stores: it keeps the data that is written, so that a proof means something.
        reason: why it cannot be used; empty when it can.
        blockers: what keeps it from being direct, first one first.
        proof: what became of each path that was tried.
    """

    name: str
    gpu: bool
    stores: bool
    checks: list[Check] = field(default_factory=list)
    reason: str = ""
    blockers: list[Check] = field(default_factory=list)
    proof: list[dict[str, Any]] = field(default_factory=list)

    @property
    def direct(self) -> bool:
        """Whether nothing is known that keeps it from being direct."""
        return self.gpu and not self.blockers


@dataclass
class Report:
    """The whole examination."""

    directory: str
    live: bool
    machine: list[Check] = field(default_factory=list)
    backends: list[BackendReport] = field(default_factory=list)
    hung: list[str] = field(default_factory=list)
    recording: Recording = field(default_factory=Recording)

    @property
    def possible(self) -> bool:
        """Whether some backend can do direct GPU I/O there."""
        return any(backend.direct for backend in self.backends)

    @property
    def blockers(self) -> list[tuple[str, Check]]:
        """(backend, check), the backend that is nearest to being direct first."""
        if self.possible:
            return []
        near = sorted((b for b in self.backends if b.gpu), key=lambda one: (bool(one.reason), len(one.blockers)))
        usable = any(backend.gpu and not backend.reason for backend in self.backends)
        # Beside a GPU that is there, what keeps another vendor's backend from starting is one line, not ten.
        found = [
            (backend.name, check)
            for backend in near
            for check in backend.blockers[: 1 if backend.reason and usable else None]
        ]
        return found or [("", _no_backend())]

    def works(self) -> list[str]:
        """What works anyway, one line a backend."""
        lines = []
        for backend in self.backends:
            good = [f"{one['io_path']} ({one['transport']})" for one in backend.proof if one["ok"]]
            if good:
                lines.append(f"{backend.name}: {', '.join(good)}")
            elif backend.stores and not backend.reason and not backend.proof:
                lines.append(f"{backend.name}: usable" + (", staged" if backend.gpu else ""))
        return lines

    def to_json(self) -> dict[str, Any]:
        """The document."""
        return {
            "schema": SCHEMA,
            "directory": self.directory,
            "live": self.live,
            "direct": self.possible,
            "blockers": [{"backend": name, **asdict(check)} for name, check in self.blockers],
            "works": self.works(),
            "machine": [asdict(check) for check in self.machine],
            "backends": [{**asdict(one), "direct": one.direct} for one in self.backends],
            "hung": self.hung,
        }


def _no_backend() -> Check:
    return Check(
        "GPU backend", "fail", "none is installed", "a backend for the GPU's vendor", verify="gdsfw backends",
        fix="install the GPU vendor's distribution of gdsfw", id="machine.backend",
    )  # fmt: skip


def with_id(check: Check, backend: str) -> Check:
    """A check that has an id; made from backend and name where its author gave none."""
    if check.id:
        return check
    return replace(check, id=f"{backend}.{re.sub(r'[^a-z0-9]+', '_', check.name.lower()).strip('_')}")


def blockers(checks: Sequence[Check]) -> list[Check]:
    """What keeps I/O from being direct, in the order in which it is to be mended."""
    found = [check for check in checks if check.state == "fail"]
    return sorted(found, key=lambda check: check.rank if check.blocks_direct else _MISSING_PIECE)


def examine(
    manager: PluginManager, names: Sequence[str], directory: str, root: Path, *, live: bool, io: bool, record: bool
) -> Report:
    """Look at everything.

    Args:
        names: backends to ask.
        directory: absolute path on the machine looked at.
        root: `/`, or a recorded tree.
        io: also write, read and verify a small file in a temporary folder in `directory`.
        record: remember what the probes look at.
    """
    began = time.monotonic()
    common = {"directory": directory, "root": str(root), "live": live, "record": record}
    requests = [{"what": "machine", **common}, *({"what": "backend", "name": name, **common} for name in names)]
    machine, *others = ask(requests, PROBES)
    report = Report(directory, live)
    report.machine = _checks(machine, "machine", report)
    for name, answer in zip(names, others, strict=True):
        report.backends.append(_backend(manager, name, answer, report))
    if io and live:
        _prove(report, ALL - (time.monotonic() - began))
    return report


def _checks(answer: Answer, name: str, report: Report) -> list[Check]:
    for data in answer.all("recorded"):
        report.recording.merge(data)
    found = [with_id(Check(**data), name) for batch in answer.all("checks") for data in batch]
    if answer.hung:
        report.hung.append(answer.hung)
        seen = f"{answer.hung} did not answer within its time; a driver may hang"
        found.append(Check(name, "unknown", seen, verify="dmesg | tail -50", id="machine.hung"))
    if answer.error:
        found.append(Check(name, "unknown", f"the probe's process died: {answer.error}", id="machine.hung"))
    return found


def _backend(manager: PluginManager, name: str, answer: Answer, report: Report) -> BackendReport:
    capabilities = manager.backend(name).capabilities
    gpu, stores = "devices" in capabilities, "data" in capabilities
    found = BackendReport(name, gpu, stores, _checks(answer, name, report), next(iter(answer.all("reason")), ""))
    if gpu:
        found.blockers = blockers([*report.machine, *found.checks])
        if answer.hung or answer.error:
            found.reason = found.checks[-1].seen
            found.blockers.append(replace(found.checks[-1], state="fail"))
    return found


def _prove(report: Report, seconds: float) -> None:
    usable = [backend for backend in report.backends if backend.stores and not backend.reason]
    try:
        folder = tempfile.mkdtemp(prefix="gdsfw-doctor-", dir=report.directory)
    except OSError as error:
        seen = f"no folder can be made in {report.directory}: {os.strerror(error.errno or 0)}"
        report.machine.append(
            Check("proof", "unknown", seen, fix="choose a directory you may write to", id="machine.proof")
        )
        return
    try:
        answers = ask([{"what": "proof", "name": one.name, "folder": folder} for one in usable], seconds, folder)
        for backend, answer in zip(usable, answers, strict=True):
            backend.proof = answer.all("proof")
            if answer.hung or answer.error:
                report.hung += [answer.hung] if answer.hung else []
                seen = answer.error or "no end within its time"
                backend.proof.append({"io_path": answer.hung or "?", "ok": False, "seen": seen})
    finally:
        shutil.rmtree(folder, ignore_errors=True)
