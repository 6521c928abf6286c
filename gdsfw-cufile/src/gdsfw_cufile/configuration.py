"""Which cufile.json is in force, and what is wrong with it: the library says so in its log only, or not at all."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gdsfw.backend import Check

if TYPE_CHECKING:
    from gdsfw.host import Host

#: Environment variable that names the file, and where the library looks without it.
VARIABLE, DEFAULT = "CUFILE_ENV_PATH_JSON", "/etc/cufile.json"
#: Variables of the library that change what the file or the defaults say.
OVERRIDES = ("CUFILE_ALLOW_COMPAT_MODE", "CUFILE_FORCE_COMPAT_MODE", "CUFILE_USE_PCIP2PDMA")


@dataclass(frozen=True)
class Configuration:
    """The file in force.

    Args:
        path: of it, or None when the library's defaults are in force.
        how: how it was found.
        problem: why the library cannot use it, or empty.
        overrides: variables of the environment that come before it.
    """

    path: str | None
    how: str
    problem: str = ""
    overrides: tuple[str, ...] = ()

    def line(self) -> str:
        """One line for results."""
        settings = f"settings of {self.path} ({self.how})" if self.path else f"the library's defaults ({self.how})"
        return f"cuFile: {', then '.join([settings, *self.overrides])}"


def in_force(environ: Mapping[str, str] | None = None) -> Configuration:
    """What the library of this process reads, or has read."""
    variables = os.environ if environ is None else environ
    overrides = tuple(f"{name}={variables[name]}" for name in OVERRIDES if name in variables)
    named = variables.get(VARIABLE)
    path = named or DEFAULT
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        if named:
            why = error.strerror if isinstance(error, OSError) else str(error)
            return Configuration(path, f"named by {VARIABLE}", f"{path} cannot be read: {why}", overrides)
        return Configuration(None, f"no {DEFAULT}, and {VARIABLE} is not set", "", overrides)
    how = f"named by {VARIABLE}" if named else "where the library looks"
    return Configuration(path, how, _problem(path, text), overrides)


def probe(host: Host) -> list[Check]:
    """The file in force, for `gdsfw backends`; only of this machine, since the environment is."""
    if not host.live:
        return []
    found = in_force()
    if found.problem:
        fix = f"correct it, or unset {VARIABLE} for the library's defaults"
        return [Check("cufile.json", "fail", found.problem, fix=fix)]
    return [Check("cufile.json", "ok", found.line())]


def _problem(path: str, text: str) -> str:
    """Where the file is no JSON; the library allows // comments."""
    bare = re.sub(r'("(?:\\.|[^"\\\n])*")|//[^\n]*', lambda match: match[1] or "", text)
    try:
        json.loads(bare)
    except json.JSONDecodeError as error:
        return f"{path}:{error.lineno}: {error.msg}"
    return ""
