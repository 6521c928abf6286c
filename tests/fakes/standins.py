"""A built stand-in, and processes that use it instead of the vendor's libraries."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata, util
from pathlib import Path
from typing import TYPE_CHECKING

from fakes.build import PARTS
from fakes.symbols import SYMBOLS

if TYPE_CHECKING:
    from fakes.build import Builder

TESTS = Path(__file__).parents[1]

_INDEX = {"cuda": 0, "hip": 1}
_BINDINGS = {"cuda": ("cuda-bindings", "numpy"), "hip": ("rocm-bindings-hip", "rocm-bindings-systems")}


@dataclass(frozen=True)
class Standin:
    """A vendor's runtime and file library, or what a test wants there to be of them.

    Args:
        vendor: `cuda` or `hip`.
        root: folder of the libraries.
    """

    vendor: str
    root: Path
    _builder: Builder = field(repr=False, compare=False)

    @classmethod
    def build(cls, builder: Builder, vendor: str) -> Standin:
        """The whole of it."""
        return cls(vendor, builder.root(vendor), builder)

    def variant(self, *, without: Sequence[str] = (), parts: Sequence[str] = PARTS) -> Standin:
        """The same with functions (names as in `symbol`, or the vendor's own) or whole libraries missing."""
        lacking = [self.symbol(name) if name in SYMBOLS else name for name in without]
        return Standin(self.vendor, self._builder.root(self.vendor, without=lacking, parts=parts), self._builder)

    @property
    def backend(self) -> str:
        """Name of the gdsfw backend that uses these libraries."""
        return ("cufile", "hipfile")[_INDEX[self.vendor]]

    def symbol(self, name: str) -> str:
        """The vendor's name of a function that both have, as rules want it; names of kinds of work stay as they are."""
        return SYMBOLS[name][_INDEX[self.vendor]] if name in SYMBOLS else name

    def control(self, *rules: str, **settings: object) -> str:
        """Text for the environment or for `Api.control`.

        Args:
            rules: `fail=read:2:-5022`, `delay=stream_copy:*:1000000`, `short=read:1:512`, `clear`: functions by the
                name that both vendors share.
            settings: `devices=1`, `p2p="nvfs"`; see README.md.
        """
        return ";".join([*(self._rule(rule) for rule in rules), *(f"{key}={value}" for key, value in settings.items())])

    def environ(self, *rules: str, **settings: object) -> dict[str, str]:
        """Environment variables for a process that is to find these libraries, and how they shall behave."""
        found = {}
        if self.vendor == "cuda":
            found["LD_LIBRARY_PATH"] = os.pathsep.join(
                [str(self.root), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
            )
            found["CUFILE_LOGFILE_PATH"] = os.devnull
            if _has("nvidia-cufile", "nvidia-cufile-cu12") and (self.root / "libcufile.so.0").exists():
                found["LD_PRELOAD"] = str(self.root / "libcufile.so.0")  # the wheel's library would be found first
        else:
            found["ROCM_PATH"] = str(self.root)
            found.pop("ROCM_HOME", None)
        found[("CUDA_STANDIN", "HIP_STANDIN")[_INDEX[self.vendor]]] = self.control(*rules, **settings)
        return found

    def run(
        self,
        code: str,
        *arguments: object,
        rules: Sequence[str] = (),
        settings: Mapping[str, object] | None = None,
        environ: Mapping[str, str] | None = None,
        folder: Path | None = None,
        timeout: float = 60,
    ) -> subprocess.CompletedProcess[str]:
        """Run Python code in a process of its own that finds these libraries."""
        return subprocess.run(
            [sys.executable, "-c", code, *map(str, arguments)],
            env={**os.environ, **self.environ(*rules, **(settings or {})), **(environ or {}), "PYTHONPATH": str(TESTS)},
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def lacking(self) -> str | None:
        """Why the vendor's Python bindings cannot be used with this, or None."""
        missing = [name for name in _BINDINGS[self.vendor] if not _has(name)]
        if missing:
            return f"not installed: {', '.join(missing)}"
        if self.vendor == "hip" and util.find_spec("rocm_sdk"):
            return "ROCm's own wheels (rocm_sdk) are installed and would be found first"
        return None

    def _rule(self, rule: str) -> str:
        kind, equals, rest = rule.partition("=")
        name, colon, numbers = rest.partition(":")
        return f"{kind}{equals}{self.symbol(name)}{colon}{numbers}"


def _has(*distributions: str) -> bool:
    for name in distributions:
        try:
            metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
        return True
    return False
