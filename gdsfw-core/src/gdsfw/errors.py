"""Every error gdsfw raises on purpose, and the exit code that each ends a command with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of the command line (docs/reference/exit-codes.md)."""

    DONE = 0
    FAILED = 1  # I/O, verification or a gate failed after measuring began
    USAGE = 2  # the text, options or numbers are wrong or do not fit what the plan sees
    UNAVAILABLE = 3  # something is absent or refuses before the first measured I/O
    REFUSED = 4  # refused for the safety of the user's data
    INTERNAL = 70  # a defect of gdsfw or of a plugin
    INTERRUPTED = 130  # SIGINT or SIGTERM; partial results were written


#: Which exit code wins when jobs end differently, strongest first.
EXIT_PRIORITY = (
    ExitCode.INTERNAL,
    ExitCode.INTERRUPTED,
    ExitCode.REFUSED,
    ExitCode.UNAVAILABLE,
    ExitCode.FAILED,
    ExitCode.USAGE,
    ExitCode.DONE,
)


def worst(codes: Sequence[int]) -> ExitCode:
    """The exit code of a run whose parts ended with `codes` (DONE for none)."""
    present = set(codes) or {ExitCode.DONE}
    return next(code for code in EXIT_PRIORITY if code in present)


class Domain(IntEnum):
    """Who speaks in an error code: the kernel, the GPU runtime or the vendor's file library.

    Values are part of the C interface (gdsfw_backend.h).
    """

    NONE = 0
    ERRNO = 1
    GPU = 2
    FILE = 3


class GdsfwError(Exception):
    """Root of all errors raised on purpose: one message for the user, and an exit code.

    Args:
        message: what was wrong, with the name of the thing it was wrong about.
        hint: what is valid or how to fix it; printed after the message.
    """

    exit_code: ExitCode = ExitCode.INTERNAL

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  hint: {self.hint}" if self.hint else self.message


class UsageError(GdsfwError):
    """The text, options or numbers are wrong (exit 2)."""

    exit_code = ExitCode.USAGE


@dataclass(frozen=True)
class Problem:
    """One mistake in a workload: `where` is file:line:column, or the name of a --set or variable."""

    where: str
    message: str
    hint: str | None = None

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}"
        return f"{text} ({self.hint})" if self.hint else text


class WorkloadError(UsageError):
    """A workload file with mistakes, all of them at once."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = tuple(problems)


class UnavailableError(GdsfwError):
    """A library, device, permission, file or transport is absent before the first measured I/O (exit 3)."""

    exit_code = ExitCode.UNAVAILABLE


class PluginError(UnavailableError):
    """A plugin breaks the rules of hookspecs.py or cannot be loaded; the message names plugin and hook."""


class RefusedError(GdsfwError):
    """gdsfw will not touch this target, because it may be the user's data (exit 4)."""

    exit_code = ExitCode.REFUSED


class IOFailedError(GdsfwError):
    """I/O or verification failed after measuring began (exit 1)."""

    exit_code = ExitCode.FAILED


class StoppedError(Exception):
    """The user stopped what was going on; it has cleaned up behind itself. Never shown."""


class InternalError(GdsfwError):
    """A defect of gdsfw itself (exit 70)."""

    exit_code = ExitCode.INTERNAL


class BackendError(GdsfwError):
    """What a backend raises from a hook or a Python path when a library call failed.

    Core adds the error's name, cause and fix (hook `gdsfw_error`) and decides the exit code by the
    moment: 3 before the first measured I/O, 1 after it.

    Args:
        operation: the call, for instance "handle_register" or "read".
        domain: who speaks in `code`.
        code: errno, GPU runtime code or file library code, positive.
        detail: what the call was about (path, bytes, offset), for the message.
    """

    exit_code = ExitCode.UNAVAILABLE

    def __init__(self, operation: str, domain: Domain, code: int, detail: str = "") -> None:
        about = f" ({detail})" if detail else ""
        super().__init__(f"{operation}{about}: {domain.name.lower()} error {code}")
        self.operation = operation
        self.domain = domain
        self.code = code
        self.detail = detail
