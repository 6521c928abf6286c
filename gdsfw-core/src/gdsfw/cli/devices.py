"""`gdsfw devices`: GPUs and other devices that workers can be put on."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from gdsfw.backend import Device
    from gdsfw.plugins import PluginManager


def command(
    backend: Annotated[str | None, typer.Argument(help="Only this backend's; default: every backend's.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """List the devices that workers can be put on (`devices:` in a workload), by backend."""
    from gdsfw.plugins import PluginManager

    manager = PluginManager.installed(os.environ)
    if backend is not None:
        manager.backend(backend)
    names = [backend] if backend is not None else list(manager.backends())
    found, failures = _ask(manager, names, strict=backend is not None)
    if as_json:
        _print_json(found, failures)
        return
    for name, devices in found.items():
        for device in devices:
            typer.echo(f"{name} {device.ordinal}: {_line(device)}")
    if not any(found.values()):
        typer.echo("no devices: the backends here use host memory only")
    for name, reason in failures.items():
        typer.echo(f"{name} could not be asked: {reason}", err=True)


def _ask(manager: PluginManager, names: list[str], strict: bool) -> tuple[dict[str, list[Device]], dict[str, str]]:
    """Devices by backend, and why a backend could not say. With `strict` that is an error."""
    from gdsfw.inventory import devices, error_text

    found: dict[str, list[Device]] = {}
    failures: dict[str, str] = {}
    for name in names:
        try:
            found[name] = devices(manager, name)
        except Exception as error:
            if strict:
                raise
            failures[name] = error_text(error)
    return found, failures


def _print_json(found: dict[str, list[Device]], failures: dict[str, str]) -> None:
    import json
    from dataclasses import asdict

    rows: list[dict[str, Any]] = [
        {"backend": name, **asdict(device)} for name, devices in found.items() for device in devices
    ]
    errors = [{"backend": name, "reason": reason} for name, reason in failures.items()]
    typer.echo(json.dumps({"devices": rows, "failures": errors}, indent=2))


def _line(device: Device) -> str:
    parts = [device.name, f"{device.nbytes / 2**30:.1f} GiB"]
    if device.pci_address:
        parts.append(f"PCI {device.pci_address}")
    if device.numa_node is not None:
        parts.append(f"NUMA node {device.numa_node}")
    return ", ".join(parts)
