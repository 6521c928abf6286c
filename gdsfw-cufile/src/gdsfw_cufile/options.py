"""Options of the cuFile backend: what users of gdsio and cufile.json tune.

The library reads its own when the driver opens, once a process; those of staging may differ from job to job.
"""

from __future__ import annotations

from typing import Any, Literal

from gdsfw.gpu.family import StagingOptions
from pydantic import Field

_ONCE: dict[str, Any] = {"once_per_process": True}


class CuFileOptions(StagingOptions):
    """`backend_options: {cufile: {...}}`. What is left out stays as cufile.json or the library has it."""

    compat: Literal["allow", "force", "forbid"] | None = Field(
        None, description="The library's own bounce: allowed, forced or forbidden.", json_schema_extra=_ONCE
    )
    p2pdma: bool | None = Field(
        None, description="Use the kernel's PCI peer-to-peer DMA instead of nvidia-fs.", json_schema_extra=_ONCE
    )
    poll_mode: bool | None = Field(None, description="Poll for small transfers.", json_schema_extra=_ONCE)
    poll_threshold_kib: int | None = Field(
        None, ge=1, description="Largest transfer that is polled for, in KiB.", json_schema_extra=_ONCE
    )
    parallel_io: bool | None = Field(
        None, description="Let the library split large transfers over its threads.", json_schema_extra=_ONCE
    )
    io_threads: int | None = Field(None, ge=1, description="Threads of the library.", json_schema_extra=_ONCE)
    max_direct_io_kib: int | None = Field(
        None, ge=4, description="Largest piece of one transfer, in KiB.", json_schema_extra=_ONCE
    )
    max_cache_kib: int | None = Field(
        None, ge=4, description="Bounce memory on each device, in KiB.", json_schema_extra=_ONCE
    )
    max_pinned_kib: int | None = Field(
        None, ge=4, description="Most device memory that may be registered, in KiB.", json_schema_extra=_ONCE
    )
    batch_size: int | None = Field(
        None, ge=1, description="Most entries of one batch (io_batchsize).", json_schema_extra=_ONCE
    )
    statistics: bool = Field(
        False,
        description="Let the library count its transfers, which tells direct ones from others without nvidia-fs; "
        "costs a little time for each.",
        json_schema_extra=_ONCE,
    )
    log_level: Literal["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"] | None = Field(
        None, description="Level of cufile.log.", json_schema_extra=_ONCE
    )
