"""Result files: one whole document or none, and never over a file that is no result."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path

from gdsfw.errors import UsageError
from gdsfw.results.model import SCHEMA


def default_path(source: str, folder: Path = Path("gdsfw-results")) -> Path:
    """`gdsfw-results/<UTC time>-<workload>.json`, with a number behind it if there is one already."""
    stem = f"{datetime.now(timezone.utc):%Y%m%dT%H%M%SZ}-{Path(source).stem or 'workload'}"
    names = (f"{stem}.json" if number == 1 else f"{stem}-{number}.json" for number in range(1, 10_000))
    return next(folder / name for name in names if not (folder / name).exists())


def check_output(path: Path, force: bool) -> None:
    """Refuse a place before the run rather than after it.

    Raises:
        UsageError: a directory, a file that is no result (without `force`), or no folder to write in.
    """
    if path.is_dir():
        raise UsageError(f"-o {path} is a directory", hint=f"-o {path / 'result.json'}")
    if path.exists() and not force and not _is_result(path):
        raise UsageError(
            f"-o {path} exists and is not a result of gdsfw", hint="choose another name, or --force to replace it"
        )
    if path.exists() and not path.is_file():
        return
    if not path.parent.is_dir():
        raise UsageError(f"-o {path}: there is no folder {path.parent}", hint=f"mkdir -p {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise UsageError(f"-o {path}: the folder {path.parent} cannot be written to")


def save(text: str, path: Path) -> Path:
    """Write a result and return where it is: at `path`, whose folder is made, or else in the temporary folder."""
    if path.exists() and not path.is_file():  # /dev/stdout, a FIFO
        path.write_text(text, encoding="utf-8")
        return path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return _replace(text, path)
    except OSError as error:
        rescued = Path(tempfile.gettempdir()) / f"gdsfw-{os.getpid()}-{path.name}"
        print(f"the result cannot be written to {path} ({error.strerror}); it is in {rescued}", file=sys.stderr)
        return _replace(text, rescued)


def _replace(text: str, path: Path) -> Path:
    fd, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with open(fd, "w", encoding="utf-8") as file:  # noqa: PTH123 - the descriptor mkstemp opened
            file.write(text)
            file.flush()
            os.fsync(fd)
        os.chmod(name, 0o666 & ~_umask())  # noqa: PTH101 - mkstemp makes it private
        os.replace(name, path)  # noqa: PTH105
    except BaseException:
        with suppress(OSError):
            os.unlink(name)  # noqa: PTH108
        raise
    return path


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _is_result(path: Path) -> bool:
    try:
        with path.open(encoding="utf-8") as file:
            return SCHEMA in file.read(200)
    except (OSError, UnicodeDecodeError):
        return False
