"""`gdsfw new-backend`: write the distribution of a new backend."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from gdsfw.errors import UnavailableError, UsageError

#: Long enough for a name, short enough for the lines that it stands in.
LONGEST = 16
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_VALID = f"lower-case letters, digits and single hyphens, a letter first, at most {LONGEST} characters: my-disk"
#: Words that mean something else where a backend's name stands: core's own, and YAML's.
_RESERVED = {"auto", "core", "noop", "null", "true", "false"}


def command(
    name: Annotated[str, typer.Argument(help="Name of the backend, as in --backend NAME.")],
    native: Annotated[bool, typer.Option("--native", help="Move the bytes by C code, without Python.")] = False,
    directory: Annotated[Path, typer.Option("--directory", help="Where the new folder goes.")] = Path(),
) -> None:
    """Write gdsfw-NAME: a complete distribution of a backend that works, with tests, to put your own storage into."""
    from gdsfw.scaffold import render

    _check(name)
    place = directory / f"gdsfw-{name}"
    found = render(name, native)
    _write(place, found)
    typer.echo(f"wrote {place}: {len(found)} files, README.md says what to change\n{_next_steps(name, place)}")


def _check(name: str) -> None:
    """Raise UsageError unless a new backend may have the name."""
    import keyword

    if not _is_valid(name):
        near = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
        meant = f"did you mean {near!r}? " if _is_valid(near) else ""
        raise UsageError(f"{name!r} is no name for a backend", hint=f"{meant}valid: {_VALID}")
    if name.split("-")[0] == "gdsfw":
        rest = name.removeprefix("gdsfw").lstrip("-") or "my-disk"
        raise UsageError(
            f"{name!r} is the name of a distribution, not of a backend",
            hint=f"`gdsfw new-backend {rest}` writes gdsfw-{rest}",
        )
    if name in _RESERVED or keyword.iskeyword(name):
        raise UsageError(f"{name!r} has a meaning already and is no name for a backend", hint="choose another name")
    _check_installed(name)


def _is_valid(name: str) -> bool:
    return _NAME.fullmatch(name) is not None and len(name) <= LONGEST


def _check_installed(name: str) -> None:
    """Raise UsageError where a distribution has the name of the plugin, or that of the new distribution."""
    from importlib.metadata import PackageNotFoundError, version

    from gdsfw.plugin_discovery import offers

    for offer in offers():
        if offer.name == name:
            raise UsageError(
                f"{offer.source} is installed and has a plugin {name!r}: a second one would shut out both",
                hint=f"choose another name, or uninstall {offer.distribution}",
            )
    try:
        found = version(f"gdsfw-{name}")
    except PackageNotFoundError:
        return
    raise UsageError(
        f"gdsfw-{name} {found} is installed: to install a new gdsfw-{name} would replace it", hint="choose another name"
    )


def _write(place: Path, texts: dict[str, str]) -> None:
    """Write all of the files, or nothing: a folder beside `place` gets its name when it is complete."""
    import tempfile

    if place.is_symlink() or (place.exists() and not (place.is_dir() and not any(place.iterdir()))):
        raise UsageError(f"{place} exists already", hint="remove it, or choose another name or --directory")
    if not place.parent.is_dir():
        raise UsageError(f"{place.parent} is no folder", hint="--directory names a folder that exists")
    try:
        with tempfile.TemporaryDirectory(prefix=".gdsfw-new-", dir=place.parent) as scratch:
            made = Path(scratch) / place.name
            for name, text in texts.items():
                (made / name).parent.mkdir(parents=True, exist_ok=True)
                (made / name).write_text(text, encoding="utf-8")
            made.rename(place)
    except OSError as error:
        raise UnavailableError(
            f"{place} cannot be written: {(error.strerror or str(error)).lower()}",
            hint="--directory names a folder that you may write in",
        ) from None


def _next_steps(name: str, place: Path) -> str:
    import shlex

    steps = (
        f"cd {shlex.quote(str(place))} && pip install -e '.[test]'",
        "pytest",
        f"gdsfw run examples/quickstart.yaml --backend {name}",
    )
    return "next:\n" + "\n".join(f"  {step}" for step in steps)
