"""Workloads to start from: one YAML file each, with comments."""

from __future__ import annotations

from importlib.resources import files

from gdsfw.errors import UsageError


def names() -> dict[str, str]:
    """Summary of each preset by name, from the first line of its file."""
    found = {}
    for file in sorted(files(__name__).iterdir(), key=lambda entry: entry.name):
        if file.name.endswith(".yaml"):
            found[file.name.removesuffix(".yaml")] = file.read_text(encoding="utf-8").splitlines()[0].lstrip("# ")
    return found


def text(name: str) -> str:
    """The preset called `name`.

    Raises:
        UsageError: there is none of that name.
    """
    known = names()
    if name not in known:
        raise UsageError(f"there is no preset {name!r}", hint=f"valid: {', '.join(known)}")
    return files(__name__).joinpath(f"{name}.yaml").read_text(encoding="utf-8")
