"""Options of this backend: how io_uring is set up."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class PosixOptions(BaseModel):
    """`backend_options: {posix: {...}}`; all of them are about io_path io_uring."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sqpoll: bool = Field(
        False, description="A kernel thread takes the submissions: fewer system calls, one more busy CPU."
    )
    sqpoll_idle_ms: int = Field(
        0, ge=0, le=2**31 - 1, description="Milliseconds without I/O after which it sleeps; 0: the kernel's default."
    )
    iopoll: bool = Field(
        False, description="Poll the device for completions instead of taking interrupts; direct I/O only."
    )
    fixed_files: bool | None = Field(
        None, description="Register the files with the kernel; left out: as register_buffers says."
    )

    @property
    def given(self) -> tuple[str, ...]:
        """Names of the options that were written down."""
        return tuple(sorted(self.model_fields_set))
