"""Where workers run: devices and CPUs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gdsfw.backend import BackendInfo, Device
    from gdsfw.workload.complaints import Complaints
    from gdsfw.workload.machine import Machine
    from gdsfw.workload.model import Job

#: Devices of the backend with this name, in order.
DeviceLister = Callable[[str], "Sequence[Device]"]


class Placement:
    """Puts the workers of one job after another on devices and CPUs."""

    def __init__(self, machine: Machine, devices: DeviceLister | None, complaints: Complaints) -> None:
        self._machine = machine
        self._devices = devices
        self._complaints = complaints

    def devices(self, job: Job, backend: BackendInfo) -> list[int | None]:
        """Device of each worker, in turn; None for a backend or a job without."""
        if job.devices is None:
            return [None] * job.numjobs
        if "device" not in backend.memory:
            self._complaints.wrong(job.name, "devices", f"backend {backend.name} has no devices", "leave devices out")
            return [None] * job.numjobs
        present = None if self._devices is None else [device.ordinal for device in self._devices(backend.name)]
        wanted = self._wanted(job, present)
        return [wanted[index % len(wanted)] if wanted else None for index in range(job.numjobs)]

    def _wanted(self, job: Job, present: list[int] | None) -> list[int]:
        if job.devices == "all":
            if not present:
                self._complaints.absent(job.name, "devices", "devices: all, but there is no device")
            return present or []
        asked = list(job.devices or ())
        if present is not None:
            for ordinal in asked:
                if ordinal not in present:
                    there = ", ".join(map(str, present)) or "none"
                    self._complaints.wrong(job.name, "devices", f"there is no device {ordinal}", f"present: {there}")
        return asked

    def cpus(self, job: Job, backend: BackendInfo, devices: Sequence[int | None]) -> list[tuple[int, ...]]:
        """CPUs each worker may run on; empty for all."""
        if job.cpus == "auto":
            return self._near(backend, devices)
        if job.numa is not None:
            nodes = self._machine.numa_nodes()
            if not nodes.get(job.numa):
                there = ", ".join(str(node) for node, cpus in nodes.items() if cpus) or "none"
                self._complaints.wrong(
                    job.name, "numa", f"there is no CPU on NUMA node {job.numa}", f"present: {there}"
                )
            return [nodes.get(job.numa, ())] * job.numjobs
        if job.cpus is not None:
            allowed = self._machine.cpus()
            missing = [cpu for cpu in job.cpus if cpu not in allowed]
            if missing:
                there = ", ".join(map(str, allowed))
                self._complaints.wrong(job.name, "cpus", f"CPU {missing[0]} cannot be used here", f"present: {there}")
            return [job.cpus] * job.numjobs
        return [()] * job.numjobs

    def _near(self, backend: BackendInfo, devices: Sequence[int | None]) -> list[tuple[int, ...]]:
        """One CPU for each worker, on the node of its device where that is known, each CPU as rarely as possible."""
        everywhere = self._machine.cpus()
        nodes = self._machine.numa_nodes()
        node_of = (
            {device.ordinal: device.numa_node for device in self._devices(backend.name)}
            if self._devices and any(device is not None for device in devices)
            else {}
        )
        used = dict.fromkeys(everywhere, 0)
        placed: list[tuple[int, ...]] = []
        for device in devices:
            node = node_of.get(device) if device is not None else None
            candidates = (nodes.get(node) if node is not None else None) or everywhere
            cpu = min(candidates, key=lambda candidate: used[candidate])
            used[cpu] += 1
            placed.append((cpu,))
        return placed
