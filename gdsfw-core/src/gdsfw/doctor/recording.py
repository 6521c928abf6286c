"""Recordings of a machine: what the probes looked at, without personal details, as a tree for `--root`."""

from __future__ import annotations

import io
import os
import platform
import re
import tarfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gdsfw.errors import RefusedError, UsageError
from gdsfw.host import ENVIRONMENT, Host

#: Where a recording notes the directory it was made for.
NOTE = "gdsfw-directory"
_ZERO_UUID = "00000000-0000-0000-0000-000000000000"
#: What could name a person, a machine or a device: the form, and what stands in its place.
_PERSONAL = (
    (re.compile(r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b"), _ZERO_UUID),
    (re.compile(r"\b(LVM|CRYPT|mpath|DMRAID)-\S+"), r"\1-0"),
    (re.compile(r"\b(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}\b"), "00:00:00:00:00:00"),
    (re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])"), "0.0.0.0"),
    (re.compile(r"\b(?=[0-9a-fA-F:]*[0-9a-fA-F]{3})(?:[0-9a-fA-F]{1,4}:){3,7}[0-9a-fA-F]{1,4}\b"), "::"),
    (re.compile(r"\b[0-9a-fA-F:]{2,}::[0-9a-fA-F:.]*"), "::"),
    (re.compile(r"\b[0-9a-fA-F]{32,}\b"), "0"),
    (re.compile(r"/home/[^/\s,]+"), "/home/user"),
    (re.compile(r"\((?:builder|root|[\w.-]+)@[\w.-]+\)"), "(user@host)"),
)


def clean(text: str) -> str:
    """`text` without personal details."""
    for form, instead in _PERSONAL:
        text = form.sub(instead, text)
    names = {platform.node(), os.environ.get("USER", ""), os.environ.get("LOGNAME", "")} - {"", "root", "localhost"}
    for name in names:
        text = re.sub(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", "name", text)
    return text


@dataclass
class Recording:
    """A tree: texts by path, symbolic links by path, things that only exist; and environment variables."""

    files: dict[str, str] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)
    variables: dict[str, str] = field(default_factory=dict)

    def merge(self, data: dict[str, Any]) -> None:
        """Add what a child recorded; text wins over mere presence."""
        for path, text in data["files"].items():
            self.files[path] = text or self.files.get(path, "")
        self.links.update(data["links"])
        self.folders.update(data["folders"])
        self.variables.update(data["variables"])

    def data(self) -> dict[str, Any]:
        """As JSON data."""
        return {"files": self.files, "links": self.links, "folders": sorted(self.folders), "variables": self.variables}


class RecordingHost(Host):
    """This machine, remembering what was looked at."""

    def __init__(self, directory: str) -> None:
        super().__init__(asks=True)
        self.directory = directory
        self.recording = Recording()

    def read(self, path: str) -> str | None:
        """See Host; the text is kept."""
        text = super().read(path)
        if text is not None:
            self.recording.files[self._real(path)] = self._kept(path, text)
        return text

    def variable(self, name: str) -> str | None:
        """See Host; kept without personal details."""
        value = super().variable(name)
        if value is not None:
            self.recording.variables[name] = clean(value)
        return value

    def read_bytes(self, path: str, most: int = 4096) -> bytes:
        """See Host; not kept: a device's configuration holds its serial number."""
        return super().read_bytes(path, most)

    def has_word(self, path: str, word: str) -> bool | None:
        """See Host; the word alone is kept."""
        found = super().has_word(path, word)
        if found is not None:
            real = self._real(path)
            self.recording.files[real] = self.recording.files.get(real, "-\n") + (f"{word}\n" if found else "")
        return found

    def exists(self, path: str) -> bool:
        """See Host."""
        found = super().exists(path)
        if found:
            self._present(path)
        return found

    def listdir(self, path: str) -> list[str]:
        """See Host."""
        names = super().listdir(path)
        if names:
            self.recording.folders.add(self._real(path))
        for name in names:
            self._present(f"{path}/{name}")
        return names

    def resolve(self, path: str) -> str | None:
        """See Host."""
        found = super().resolve(path)
        if found is not None:
            self._present(path)
        return found

    def _present(self, path: str) -> None:
        real = self._real(path)
        if Path(real).is_dir():
            self.recording.folders.add(real)
        else:
            self.recording.files.setdefault(real, "")

    def _real(self, path: str) -> str:
        """Where `path` really is; the links on the way are kept. /proc/self is no link: it is everybody's own."""
        if path.startswith("/proc/self/"):
            return path
        place = ""
        for part in os.path.normpath(path).split("/")[1:]:
            place = f"{place}/{part}"
            if Path(place).is_symlink():
                target = os.path.realpath(place)
                self.recording.links[place] = target
                if Path(target).is_dir():
                    self.recording.folders.add(target)
                else:
                    self.recording.files.setdefault(target, "")
                place = target
        return place

    def _kept(self, path: str, text: str) -> str:
        """The lines that probes need, without personal details."""
        lines = text.splitlines()
        if path.endswith("/mountinfo"):
            lines = [line for line in lines if self._leads_here(line.split()[4])]
            lines = [re.sub(r" (\S+?):/\S* ", " server:/export ", line) for line in lines]
        elif path.startswith("/run/udev/"):
            lines = [line for line in lines if line.startswith(("I:", "E:ID_FS_TYPE=", "E:ID_FS_USAGE="))]
        elif path == "/proc/cpuinfo":
            lines = text.partition("\n\n")[0].splitlines()
        return clean("\n".join(lines)) + "\n"

    def _leads_here(self, point: str) -> bool:
        return point == "/" or self.directory == point or self.directory.startswith(f"{point}/")


def save(recording: Recording, path: Path, directory: str) -> None:
    """Write the tree as a tar file.

    Args:
        directory: what the recording was made for.

    Raises:
        RefusedError: there is something at `path`.
        UsageError: it cannot be written.
    """
    try:
        with path.open("xb") as raw, tarfile.open(fileobj=raw, mode="w") as tar:
            for folder in sorted(recording.folders):
                entry = tarfile.TarInfo(folder.lstrip("/"))
                entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                tar.addfile(entry)
            for place, target in sorted(recording.links.items()):
                link = tarfile.TarInfo(place.lstrip("/"))
                link.type, link.linkname = tarfile.SYMTYPE, os.path.relpath(target, os.path.dirname(place))  # noqa: PTH120
                tar.addfile(link)
            texts = recording.files | {f"/{NOTE}": clean(directory) + "\n"}
            texts[f"/{ENVIRONMENT}"] = "".join(f"{name}={value}\n" for name, value in recording.variables.items())
            for place, text in sorted(texts.items()):
                content = text.encode()
                entry = tarfile.TarInfo(place.lstrip("/"))
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
    except FileExistsError:
        raise RefusedError(f"{path} exists and is not overwritten", hint="name another file") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error
