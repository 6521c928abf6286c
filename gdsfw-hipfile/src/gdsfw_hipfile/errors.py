"""What hipFile's and HIP's error codes mean, and what to do."""

from __future__ import annotations

from gdsfw.backend import ErrorInfo
from gdsfw.errors import Domain

#: Cause and fix, from hipFile's documentation and sources (0.2 to 0.5).
_ADVICE = {
    5001: ("the driver was not opened, or HIP does not start", "look at `rocminfo`"),
    5008: ("the library has no such transfer yet, or not for this kind of file", "io_path sync or staged"),
    5013: ("the memory is no device memory", "use `memory: device`"),
    5022: ("an argument is out of range, or host memory that is not registered", ""),
    5023: ("the buffer was registered twice", ""),
    5027: ("the file was not registered, or the driver was closed since", ""),
    5028: ("the same descriptor was registered twice", ""),
    5030: (
        "an internal error: no fast path for this transfer while the bounce is forbidden, or the file is closed",
        "allow the bounce (backend option compat), or use io_path staged",
    ),
    5031: ("the library opens every file a second time and could not", "raise the limit on open files (ulimit -n)"),
    5037: ("more entries than the batch has room for", "lower iodepth"),
    5038: ("this version has no stream-ordered transfers", "io_path sync, batch or staged"),
}


def explain(domain: Domain, code: int) -> ErrorInfo | None:
    """Meaning of a code, or None for errno."""
    if domain is Domain.FILE:
        return _file_error(code)
    if domain is Domain.GPU:
        return _gpu_error(code)
    return None


def _file_error(code: int) -> ErrorInfo:
    cause, fix = _ADVICE.get(code, ("", ""))
    try:
        from rocm.bindings import hipfile

        name = hipfile.hipFileOpError(code).name
    except Exception:  # without bindings, and for codes that they do not know
        return ErrorInfo(f"hipFile code {code}", cause if cause else f"unlisted hipFile code {code}", cause, fix)
    return ErrorInfo(name, _text("hipfile", "hipFileGetOpErrorString", hipfile.hipFileOpError(code)), cause, fix)


def _gpu_error(code: int) -> ErrorInfo:
    try:
        from rocm.bindings import hip

        error = hip.hipError_t(code)
    except Exception:
        return ErrorInfo(f"HIP error {code}", f"unlisted HIP error {code}")
    return ErrorInfo(error.name, _text("hip", "hipDrvGetErrorString", error) or f"HIP error {code}")


def _text(module: str, function: str, code: object) -> str:
    """The library's own text; empty without the library, whose calls would return garbage."""
    from importlib import import_module

    bindings = import_module(f"rocm.bindings.{module}")
    if not bindings.has_symbol(function):
        return ""
    try:
        answer = getattr(bindings, function)(code)[-1]
    except Exception:
        return ""
    return answer.decode(errors="replace") if isinstance(answer, bytes) else str(answer or "")
