"""Options: `plugins: {trace: {...}}` in a workload."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class TraceOptions(BaseModel):
    """Where the trace goes and how much it holds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    file: str = Field(min_length=1, description="JSON file for the trace; jobs that name one file share it.")
    io: bool = Field(
        True, description="Trace each I/O too. The Python loop drives the path then, so figures are not comparable."
    )
    max_events: int = Field(
        100_000, ge=1, description="Most I/Os and other calls of the loop that a job traces; hooks always are."
    )
