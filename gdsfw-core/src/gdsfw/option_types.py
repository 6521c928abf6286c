"""Types for the options models of backends and plugins: a workload's spellings of sizes and durations, as numbers.

class MyOptions(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)
    cache: Size = Field(1 << 20, ge=4096, description="Bytes of ...")
    patience: Duration | None = None
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

from gdsfw.workload import units

#: Bytes: 4096, 4k or 4KiB (1024s), 4kB (1000s).
Size = Annotated[
    int,
    BeforeValidator(units.parse_size),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": units.SIZE_PATTERN}]}),
]
#: Nanoseconds: 500us, 5ms, 2s, 1m; a number without a unit is refused, except 0.
Duration = Annotated[
    int, BeforeValidator(units.parse_duration), WithJsonSchema({"type": "string", "pattern": units.DURATION_PATTERN})
]

__all__ = ["Duration", "Size"]
