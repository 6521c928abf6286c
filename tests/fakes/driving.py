"""Runs gdsfw on a stand-in as a user does: as a process."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from helpers.running import Ended, Gdsfw

from fakes.standins import Standin


class OnStandin:
    """`gdsfw run` in a folder of its own, with one vendor's stand-in in place of its libraries.

    Every run is checked: nothing undefined was done to the libraries, no crash, and no log in the working folder.
    """

    def __init__(self, standin: Standin, folder: Path) -> None:
        self.standin = standin
        self.backend = standin.backend
        self.hip = standin.vendor == "hip"
        self.folder = folder
        self.gdsfw = Gdsfw(folder)

    def environ(self, *rules: str, **settings: object) -> dict[str, str]:
        """Environment of a run: the libraries, a cache of its own, what they do traced into a file."""
        found = self.standin.environ(*rules, trace=self.folder / "trace", **settings)
        found.pop("CUFILE_LOGFILE_PATH", None)
        return {**found, "XDG_CACHE_HOME": str(self.standin.root.parent / "cache"), "TMPDIR": str(self.folder / "tmp")}

    def process_environ(self) -> dict[str, str]:
        """The whole environment of a process that is no run of gdsfw."""
        (self.folder / "tmp").mkdir(exist_ok=True)
        return {**os.environ, **self.environ()}

    def run(
        self,
        *jobs: Mapping[str, Any],
        rules: Sequence[str] = (),
        settings: Mapping[str, object] | None = None,
        environ: Mapping[str, str] | None = None,
        arguments: Sequence[str] = (),
        code: int = 0,
        **defaults: Any,
    ) -> Ended:
        """Run these jobs and check how they end."""
        workload = self.gdsfw.write(
            *jobs, **{"backend": self.backend, "size": "256KiB", "block_size": "16KiB"} | defaults
        )
        return self.ended(self.start(workload, rules, settings, environ, arguments), code)

    def start(
        self,
        workload: Path,
        rules: Sequence[str] = (),
        settings: Mapping[str, object] | None = None,
        environ: Mapping[str, str] | None = None,
        arguments: Sequence[str] = (),
    ) -> Any:
        """Start a run."""
        (self.folder / "tmp").mkdir(exist_ok=True)
        (self.folder / "trace").unlink(missing_ok=True)
        variables = {**self.environ(*rules, **(settings or {})), **(environ or {})}
        return self.gdsfw.start(workload, *arguments, **variables)

    def ended(self, process: Any, code: int = 0) -> Ended:
        """Wait for a run and check it."""
        ended = self.gdsfw.ended(process)
        assert ended.code == code, ended.stderr + ended.stdout
        assert "misuse" not in ended.stderr, ended.stderr
        assert "Traceback" not in ended.stderr, ended.stderr
        assert not list(self.folder.glob("*.log"))
        return ended

    def calls(self, name: str) -> int:
        """How often the last run called a function."""
        text = (self.folder / "trace").read_text()
        return len(re.findall(rf"^call {self.standin.symbol(name)} tid", text, re.MULTILINE))

    def devices_used(self) -> set[int]:
        """Devices that the last run moved bytes to or from."""
        return {int(number) for number in re.findall(r"^(?:io|copy) .* device=(\d+)", self.trace(), re.MULTILINE)}

    def trace(self) -> str:
        """What the last run's libraries did."""
        return (self.folder / "trace").read_text()

    def options(self, **options: Any) -> dict[str, Any]:
        """Options of this vendor's backend, for a job."""
        return {"backend_options": {self.backend: options}}


def written_and_read(path: str, **more: Any) -> list[dict[str, Any]]:
    """A job that writes by one path, and one that reads it back by the same, both verified."""
    only_read = {key: more.pop(key) for key in ("share",) if key in more}
    common = {"io_path": path, "verify": True, **more}
    return [
        {"name": f"w-{path}", "rw": "write", **common},
        {"name": f"r-{path}", "rw": "randread", "files_from": f"w-{path}", **common, **only_read},
    ]


def said(ended: Ended) -> str:
    """Everything that a run told the user, as one line."""
    return " ".join((ended.stdout + ended.stderr).split())


def has_direct_io(folder: Path) -> bool:
    """Whether files here can be opened for direct I/O."""
    probe = folder / "direct"
    probe.touch()
    try:
        os.close(os.open(probe, os.O_RDWR | os.O_DIRECT))
    except OSError:
        return False
    finally:
        probe.unlink()
    return True
