"""The command line: one module a command, imported when it is called."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any, NoReturn

import typer

from gdsfw.cli.group import LazyGroup

app = typer.Typer(
    name="gdsfw",
    cls=LazyGroup,
    help="Move bytes between storage and memory through pluggable backends, and measure it.",
    epilog="gdsfw COMMAND --help shows the options of a command.",
    no_args_is_help=True,
    rich_markup_mode=None,  # rich costs as much time as everything else a help text needs
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from gdsfw import __version__

        typer.echo(f"gdsfw {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error; may also come after the command.")
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Options before the command. --debug is taken out by `main`, so that it may stand anywhere."""


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run `gdsfw`; always ends with SystemExit, whose codes are errors.ExitCode.

    Args:
        arguments: without the program's name; sys.argv by default.
    """
    _fill_standard_streams()
    given = sys.argv[1:] if arguments is None else arguments
    debug, left = _take_debug(given)
    # A file name may hold bytes that are no text: show them escaped instead of failing.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    raise SystemExit(_run(left, given, debug))


def _fill_standard_streams() -> None:
    """With a standard stream closed (`>&-`), the next file to be opened would take its number and what is printed."""
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(fd)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: PTH123, SIM115 - for as long as the process


def _take_debug(arguments: list[str]) -> tuple[bool, list[str]]:
    """Whether --debug is there, and the arguments without it. Behind `--` everything is a plain argument."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    left = [argument for argument in arguments[:end] if argument != "--debug"]
    return len(left) < end, left + arguments[end:]


def _run(arguments: list[str], given: list[str], debug: bool) -> int:
    try:
        code = _call(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        return _output_closed()
    except SystemExit as error:  # what rich and typer make of it
        if isinstance(error.__context__, BrokenPipeError):
            return _output_closed()
        raise
    except typer.Abort:
        return _interrupted()
    except Exception as error:
        from gdsfw.cli.failure import report

        return report(error, given, debug)
    return code


def _call(arguments: list[str]) -> int:
    """The exit code of a command: what it gives typer.Exit, or returns as a number."""
    result: Any = typer.main.get_command(app).main(arguments, prog_name="gdsfw", standalone_mode=False)
    return result if isinstance(result, int) else 0


def _interrupted() -> int:
    from gdsfw.errors import ExitCode

    typer.echo("stopped", err=True)
    return ExitCode.INTERRUPTED


def _output_closed() -> int:
    """Nobody reads stdout any more (`gdsfw ... | head`). Python must not find out again when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return 128 + 13  # what a shell says of a program that SIGPIPE ended
