"""`gdsfw doctor`: why direct GPU I/O is not happening, and what would mend it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from gdsfw.backend import Check
    from gdsfw.doctor.examine import Report


def command(
    backend: Annotated[str | None, typer.Option("--backend", help="Ask this backend only.")] = None,
    directory: Annotated[
        Path | None, typer.Option("--directory", help="Ask about files here.", show_default="this folder")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
    root: Annotated[
        Path | None, typer.Option("--root", help="Look at a recorded tree of another machine instead of this one.")
    ] = None,
    record: Annotated[
        Path | None, typer.Option("--record", help="Write what was looked at, without personal details, as a tar file.")
    ] = None,
    no_io: Annotated[bool, typer.Option("--no-io", help="Write and read nothing.")] = False,
) -> int:
    """Say why direct GPU I/O is not happening in a directory, and what would mend it.

    Ends with 0 if some backend can do direct GPU I/O there, 3 if none can, 2 for wrong options.
    """
    from gdsfw.doctor.examine import examine
    from gdsfw.doctor.recording import save
    from gdsfw.errors import ExitCode, UsageError
    from gdsfw.plugins import PluginManager

    if root is not None and record is not None:
        raise UsageError("--root and --record exclude each other", hint="record on the machine itself")
    place = _directory(directory, root)
    _refuse_existing(record)
    manager = PluginManager.installed(os.environ)
    names = [manager.backend(backend).name] if backend is not None else sorted(manager.backends())
    report = examine(
        manager, names, place, root or Path("/"), live=root is None, io=not no_io, record=record is not None
    )
    if record is not None:
        save(report.recording, record, place)
    if as_json:
        import json

        typer.echo(json.dumps(report.to_json(), indent=2))
    else:
        _print(report)
    return int(ExitCode.DONE if report.possible else ExitCode.UNAVAILABLE)


def _directory(directory: Path | None, root: Path | None) -> str:
    """The directory as an absolute path on the machine that is looked at."""
    from gdsfw.doctor.recording import NOTE
    from gdsfw.errors import UsageError
    from gdsfw.host import Host

    if root is None:
        place = (directory or Path()).absolute()
        if not place.is_dir():
            raise UsageError(f"{place} is no directory", hint="name one that exists with --directory")
        return str(place.resolve())
    if not root.is_dir():
        raise UsageError(f"{root} is no directory", hint="unpack the recording first: mkdir DIR; tar -xf FILE -C DIR")
    noted = Host(root, live=False).read(f"/{NOTE}")
    return os.path.normpath(f"/{directory}" if directory is not None else (noted or "/"))


def _refuse_existing(record: Path | None) -> None:
    from gdsfw.errors import RefusedError

    if record is not None and os.path.lexists(record):
        raise RefusedError(f"{record} exists and is not overwritten", hint="name another file")


def _print(report: Report) -> None:
    typer.echo(f"{'this machine' if report.live else 'recorded machine'}, {report.directory}")
    for check in report.machine:
        _print_check(check)
    for backend in report.backends:
        state = "not usable" if backend.reason else ("direct" if backend.direct else "usable")
        typer.echo(f"\n{backend.name}: {state}")
        for check in backend.checks:
            _print_check(check)
        for one in backend.proof:
            how = f"{one.get('transport')}, cache {one.get('cache')}, {one.get('seconds')} s" if one["ok"] else "FAILED"
            typer.echo(f"  proof    {one['io_path']}: {how}: {one['seen']}")
    typer.echo("")
    if report.possible:
        names = ", ".join(one.name for one in report.backends if one.direct)
        typer.echo(f"Direct GPU I/O is possible here: {names}")
    else:
        typer.echo("Why not direct, first what is to be mended first:")
        for number, (name, check) in enumerate(report.blockers, 1):
            _print_blocker(number, name, check)
    for line in report.works():
        typer.echo(f"works: {line}")
    for name in report.hung:
        typer.echo(f"HUNG: {name}")


def _print_check(check: Check) -> None:
    typer.echo(f"  {check.state:<8} {check.name}: {check.seen}  [{check.id}]")
    if check.state in ("warn", "fail"):
        for label, text in (
            ("needed", check.needed),
            ("means", check.meaning),
            ("verify", check.verify),
            ("fix", check.fix),
        ):
            if text:
                typer.echo(f"           {label:<6} {text}")


def _print_blocker(number: int, name: str, check: Check) -> None:
    owner = f"{name}: " if name else ""
    typer.echo(f"  {number}. {owner}{check.name}: {check.seen}")
    if check.needed:
        typer.echo(f"     needed {check.needed}")
    if check.verify:
        typer.echo(f"     verify {check.verify}")
    if check.fix:
        typer.echo(f"     fix    {check.fix}")
