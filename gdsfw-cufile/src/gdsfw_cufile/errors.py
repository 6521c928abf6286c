"""What cuFile's and CUDA's error codes mean, and what to do."""

from __future__ import annotations

from gdsfw.backend import ErrorInfo
from gdsfw.errors import Domain

#: cufile.h and its API reference: name and text come from the bindings, cause and fix from experience.
_ADVICE = {
    5001: ("the driver was not opened", ""),
    5005: ("nvidia-fs is not loaded or of another version", "compare `modinfo nvidia-fs` with the toolkit"),
    5008: ("the file system or the file's flags allow no such I/O", "use io_path staged, or a supported file system"),
    5019: ("the file was opened with a flag that cuFile refuses", ""),
    5020: ("the file was opened without O_DIRECT and compatibility mode is forbidden", "use `direct: true`"),
    5022: ("an argument is out of range", ""),
    5025: ("no permission", ""),
    5027: (
        (
            "libudev has no record of the volume (a container without /run/udev, a machine without a udev daemon), "
            "or the file system has no block device (tmpfs)"
        ),
        "mount the host's /run/udev into the container read-only; or use io_path staged, which needs no registration",
    ),
    5028: ("the same descriptor was registered twice", ""),
    5030: (
        "an internal error, for files on a volume that libudev does not know or on tmpfs",
        "mount the host's /run/udev into the container read-only; or use io_path staged",
    ),
    5034: ("the device under the file system is not supported and compatibility mode is forbidden", ""),
    5036: ("device memory could not be pinned: BAR space or the limit on pinned memory", "register_buffers: none"),
    5037: ("more entries than the batch has room for", "lower iodepth"),
}

#: cuda.h: cause and fix of the driver's codes that are about the machine and not about a mistake of gdsfw's.
_GPU_ADVICE = {
    2: (
        "the device's memory is full",
        "look at `nvidia-smi` for who has it; smaller blocks, less iodepth or fewer jobs",
    ),
    46: (
        "another process holds the device, whose compute mode is exclusive, or prohibited",
        "`nvidia-smi -q -d COMPUTE` shows the mode, `nvidia-smi -c DEFAULT` (as root) lets processes share the device",
    ),
    100: ("no device is visible", "look at `nvidia-smi` and at CUDA_VISIBLE_DEVICES"),
    802: ("the system is not ready: on machines with NVSwitch its fabric manager has to run", "look at `nvidia-smi`"),
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
        from cuda.bindings import cufile

        name, text = cufile.OpError(code).name, str(cufile.op_status_error(code))
    except Exception:  # without bindings or library, and for codes that neither knows
        return ErrorInfo(f"cuFile code {code}", cause if cause else f"unlisted cuFile code {code}", cause, fix)
    return ErrorInfo(f"CU_FILE_{name}", text, cause, fix)


def _gpu_error(code: int) -> ErrorInfo:
    cause, fix = _GPU_ADVICE.get(code, ("", ""))
    try:
        from cuda.bindings import driver

        result = driver.CUresult(code)
        _, text = driver.cuGetErrorString(result)
    except Exception:
        return ErrorInfo(f"CUDA error {code}", cause or f"unlisted CUDA error {code}", cause, fix)
    return ErrorInfo(result.name, text.decode() if isinstance(text, bytes) else f"CUDA error {code}", cause, fix)
