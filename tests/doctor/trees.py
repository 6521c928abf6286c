"""Machines as one YAML file each, expanded to a tree for `--root`.

`parts.yaml` has pieces that several machines share. A machine has `origin` (which parts were recorded and which were
composed, from what), `directory`, `use` (parts, a later one wins), `files`, `folders`, `links`, `drop`, and `expect`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent / "fixtures"
MACHINES = sorted(path.stem for path in FOLDER.glob("*.yaml") if path.stem != "parts")


def load(name: str) -> Any:
    return yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))


def expand(machine: dict[str, Any], root: Path) -> None:
    """Write the machine's tree below `root`."""
    parts = load("parts")
    pieces = [*(parts[name] for name in machine.get("use", [])), machine]
    files: dict[str, str] = {}
    links: dict[str, str] = {}
    for piece in pieces:
        files |= piece.get("files", {})
        links |= piece.get("links", {})
    for path, text in files.items():
        if path not in machine.get("drop", []):
            place = root / path.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(f"{text}\n" if text is not None else "", encoding="utf-8")
    for path in machine.get("folders", []):
        (root / path.lstrip("/")).mkdir(parents=True, exist_ok=True)
    for path, target in links.items():
        place = root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        if not (root / target.lstrip("/")).exists():
            (root / target.lstrip("/")).mkdir(parents=True)
        place.symlink_to(Path("../" * (path.count("/") - 1)) / target.lstrip("/"))
    (root / "gdsfw-directory").write_text(machine["directory"], encoding="utf-8")
