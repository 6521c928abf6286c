"""Options of the hipFile backend. The library has no parameters yet but a few variables, read at its first use."""

from __future__ import annotations

import os
from typing import Any, Literal

from gdsfw.gpu.family import StagingOptions
from gdsfw.option_types import Size
from pydantic import Field

_ONCE: dict[str, Any] = {"once_per_process": True}
_ALLOW, _FORCE = "HIPFILE_ALLOW_COMPAT_MODE", "HIPFILE_FORCE_COMPAT_MODE"
_UNSUPPORTED = "HIPFILE_UNSUPPORTED_FILE_SYSTEMS"
_VARIABLES = (_ALLOW, _FORCE, _UNSUPPORTED, "HIPFILE_STATS_LEVEL", "HIPFILE_ASYNC_BUFFER_SIZE")


class HipFileOptions(StagingOptions):
    """`backend_options: {hipfile: {...}}`. What is left out stays as the environment has it."""

    compat: Literal["allow", "force", "forbid"] | None = Field(
        None, description="The library's own bounce: allowed, forced or forbidden.", json_schema_extra=_ONCE
    )
    async_buffer_bytes: Size | None = Field(
        None, ge=0, description="Bounce memory of stream-ordered transfers.", json_schema_extra=_ONCE
    )

    def variables(self) -> dict[str, str | None]:
        """The library's variables; None for one that stays as it is."""
        # The library takes `true` and `false` only; any other word counts as unset.
        allow, force = {
            "allow": ("true", "false"),
            "force": ("true", "true"),
            "forbid": ("false", "false"),
            None: (None, None),
        }[self.compat]
        room = str(self.async_buffer_bytes) if self.async_buffer_bytes is not None else None
        return {_ALLOW: allow, _FORCE: force, "HIPFILE_ASYNC_BUFFER_SIZE": room}


def forced() -> bool:
    """Whether the library is told to bounce everything."""
    return os.environ.get(_FORCE) == "true"


def in_force() -> list[str]:
    """The library's variables that are set, and a warning for the one that can corrupt data."""
    values = [f"{name}={os.environ[name]}" for name in _VARIABLES if name in os.environ]
    lines = [f"hipFile: {', '.join(values)}" if values else "hipFile: the library's defaults"]
    if os.environ.get(_UNSUPPORTED) == "true":
        lines.append(f"{_UNSUPPORTED}=true skips the library's check of the file system and can corrupt data")
    return lines
