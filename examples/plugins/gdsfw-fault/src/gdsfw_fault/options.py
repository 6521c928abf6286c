"""Options: `plugins: {fault: {...}}` in a workload. Each mistake is told with what is valid."""

from __future__ import annotations

import errno
import re
from difflib import get_close_matches
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

#: Calls of the data plane that a rule can be about.
PATH_CALLS = ("read", "write", "flush")
#: All that a rule can be about: those, and hooks by their names without gdsfw_, as far as a run calls them.
Call = Literal[
    "read",
    "write",
    "flush",
    "open",
    "close",
    "open_file",
    "close_file",
    "worker_start",
    "worker_stop",
    "alloc",
    "free",
    "register_buffer",
    "deregister_buffer",
    "register_file",
    "deregister_file",
    "io",
    "transport",
]

_ERRNO = {name: code for code, name in errno.errorcode.items()} | {"ENOTSUP": errno.ENOTSUP}
_UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9}
_SIZES = {"": 1, "k": 1 << 10, "KiB": 1 << 10, "M": 1 << 20, "MiB": 1 << 20}


class Rule(BaseModel):
    """At which calls something happens, and what."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    on: Call = Field(description="The call: read, write, flush, or a hook's name without gdsfw_.")
    nth: int | None = Field(None, ge=1, description="At this call of each worker, the first being 1.")
    every: int | None = Field(None, ge=1, description="At each so-many-th call of each worker.")
    probability: float | None = Field(None, gt=0, le=1, description="At each call with this probability.")
    error: str | None = Field(None, description="The call fails with this errno: EIO, ENOSPC ...")
    code: int | None = Field(None, ge=1, description="The call fails with this code of `domain`.")
    domain: Literal["gpu", "file"] | None = Field(None, description="Who speaks in `code`: GPU runtime, file library.")
    delay: str | None = Field(None, description="The call takes this much longer: 500us, 5ms, 2s.")
    short: int | str | None = Field(None, description="The read or write moves at most this many bytes.")

    @field_validator("error")
    @classmethod
    def _known(cls, name: str | None) -> str | None:
        if name is not None and name not in _ERRNO:
            near = sorted(get_close_matches(name.upper(), _ERRNO, 5), key=lambda known: abs(len(known) - len(name)))
            meant = f"did you mean {near[0]}? " if near else ""
            raise ValueError(f"{name!r} is no errno ({meant}valid: the names in errno(3), such as EIO, ENOSPC, EAGAIN)")
        return name

    @field_validator("delay", mode="before")
    @classmethod
    def _duration(cls, value: object) -> object:
        if value is not None and not (isinstance(value, str) and _scaled(value, _UNITS)):
            raise ValueError(f"{value!r} is no delay (valid: 500us, 5ms, 2s; units {' '.join(_UNITS)})")
        return value

    @field_validator("short", mode="before")
    @classmethod
    def _size(cls, value: object) -> object:
        given = isinstance(value, (int, str)) and not isinstance(value, bool)
        if value is not None and not (given and _scaled(str(value), _SIZES)):
            raise ValueError(f"{value!r} is no size (valid: bytes from 1, such as 512 or 4KiB)")
        return value

    @model_validator(mode="after")
    def _fits(self) -> Rule:
        if sum(value is not None for value in (self.nth, self.every, self.probability)) != 1:
            raise ValueError("a rule says when: one of nth, every, probability")
        if (self.code is None) != (self.domain is None):
            raise ValueError("code and domain go together; valid domains: gpu, file (`error` is for errno)")
        what = [name for name in ("error", "code", "short") if getattr(self, name) is not None]
        if len(what) > 1:
            raise ValueError(f"{' and '.join(what)} exclude each other: make two rules")
        if not what and self.delay is None:
            raise ValueError("a rule says what happens: error, code with domain, delay, or short")
        if self.short is not None and self.on not in ("read", "write"):
            raise ValueError(f"short is for reads and writes, not for {self.on} (valid: on: read, on: write)")
        return self

    @property
    def errno(self) -> int:
        """The number of `error`, 0 without one."""
        return _ERRNO[self.error] if self.error is not None else 0

    @property
    def delay_ns(self) -> int:
        """`delay` in nanoseconds, 0 without one."""
        return _scaled(self.delay or "", _UNITS)

    @property
    def short_bytes(self) -> int:
        """`short` in bytes, 0 without one."""
        return _scaled(str(self.short or ""), _SIZES)

    def __str__(self) -> str:
        """As a workload writes it."""
        given = self.model_dump(exclude_none=True)
        return ", ".join(f"{name}: {value}" for name, value in given.items())


class FaultOptions(BaseModel):
    """What goes wrong."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rules: list[Rule] = Field(min_length=1, description="What happens at which calls; all that fit a call apply.")
    seed: int = Field(1, ge=0, description="Of `probability`: with one seed it happens at the same calls again.")


def _scaled(text: str, units: dict[str, int]) -> int:
    """`text` times its unit as a whole number; 0 where it is nothing of the kind."""
    match = re.fullmatch(r"([0-9]{1,12}(?:\.[0-9]{1,9})?) ?([A-Za-z]*)", text, re.ASCII)
    return round(float(match[1]) * units[match[2]]) if match is not None and match[2] in units else 0
