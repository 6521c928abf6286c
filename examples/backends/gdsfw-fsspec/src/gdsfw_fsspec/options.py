"""What a workload can say about the backend."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator


class FsspecOptions(BaseModel):
    """`backend_options: {fsspec: {...}}`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    base: str = Field(
        "memory://gdsfw",
        description="URL that names of files are put under; a name that is a URL itself is taken as it is.",
    )
    storage_options: dict[str, Any] = Field(
        default_factory=dict,
        description="Arguments of the file system's class, as fsspec's storage_options (endpoint_url, anon, profile). "
        "Results record them: keep secrets in the environment or in the vendor's own configuration file.",
    )
    cache: Literal["none", "readahead", "bytes", "blockcache", "all"] = Field(
        "none",
        description="fsspec's cache in front of the storage; none: every read is a request. memory:// and file:// have "
        "none.",
    )

    @field_validator("base")
    @classmethod
    def _is_url(cls, value: str) -> str:
        if "://" not in value:
            raise ValueError(
                f"{value!r} is no URL; for instance memory://gdsfw, file:///mnt/data or s3://bucket/prefix"
            )
        return value
