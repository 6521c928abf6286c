"""Errors as the user sees them: one message on stderr, an exit code, and a report file for what should not happen."""

from __future__ import annotations

import os
import platform
import shlex
import sys
import tempfile
import time
import traceback
from typing import Any

import typer

from gdsfw.error_texts import explain
from gdsfw.errors import BackendError, Domain, ExitCode, GdsfwError, InternalError, WorkloadError


def report(error: BaseException, arguments: list[str], debug: bool) -> int:
    """Print what `error` means to the user and return the exit code.

    Args:
        arguments: of the command line, for the report of an internal error.
        debug: print the traceback too.
    """
    if debug:
        typer.echo("".join(traceback.format_exception(error)), err=True, nl=False)
    if _is_of_command_line(error):
        error.show()  # type: ignore[attr-defined]
        return int(error.exit_code)  # type: ignore[attr-defined]
    if isinstance(error, GdsfwError) and not isinstance(error, InternalError):
        typer.echo(message_of(error), err=True)
        return error.exit_code
    if isinstance(error, OSError) and error.errno:
        typer.echo(f"error: {_os_error(error)}", err=True)
        return ExitCode.UNAVAILABLE
    return _internal(error, arguments, debug)


def message_of(error: GdsfwError) -> str:
    """The text for stderr. A workload's mistakes begin with their places, which editors and terminals can follow."""
    if isinstance(error, WorkloadError):
        return str(error)
    if isinstance(error, BackendError) and error.domain is Domain.ERRNO:
        info = explain(error.domain, error.code)
        about = f" ({error.detail})" if error.detail else ""
        return _with_hint(f"error: {error.operation}{about}: {info.text} ({info.name})", info.cause, info.fix)
    return f"error: {error}"


def _is_of_command_line(error: BaseException) -> bool:
    """Whether the command line library raised it for a wrong option or argument (its base class has moved)."""
    return hasattr(error, "show") and hasattr(error, "format_message") and hasattr(error, "exit_code")


def _os_error(error: OSError) -> str:
    info = explain(Domain.ERRNO, error.errno or 0)
    where = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, (str, bytes)) else ""
    return _with_hint(f"{where}{info.text} ({info.name})", info.cause, info.fix)


def _with_hint(text: str, cause: str, fix: str) -> str:
    hint = "; ".join(part for part in (cause, fix) if part)
    return f"{text}\n  hint: {hint}" if hint else text


def _internal(error: BaseException, arguments: list[str], debug: bool) -> int:
    what = str(error) if isinstance(error, InternalError) else f"{type(error).__name__}: {error}"
    typer.echo(f"internal error: {what}", err=True)
    place = _save(error, arguments)
    if place is not None:
        typer.echo(f"  a report for the developers is in {place}", err=True)
    if not debug:
        typer.echo("  --debug shows where it happened", err=True)
    return ExitCode.INTERNAL


def _save(error: BaseException, arguments: list[str]) -> str | None:
    from gdsfw import __version__

    facts: dict[str, Any] = {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "command": shlex.join(["gdsfw", *arguments]),
        "gdsfw": __version__,
        "python": sys.version.replace("\n", " "),
        "system": platform.platform(),
    }
    lines = [f"{name}: {value}\n" for name, value in facts.items()]
    try:
        descriptor, place = tempfile.mkstemp(prefix="gdsfw-report-", suffix=".txt")
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.writelines([*lines, "\n", *traceback.format_exception(error)])
    except OSError:
        return None
    return place
