"""HIP RTC, the run-time compiler, through hip-python."""

from __future__ import annotations

from typing import Any

from gdsfw.errors import UnavailableError


class HipRtc:
    """gdsfw.gpu.kernels.Compiler over HIP RTC."""

    def __init__(self) -> None:
        try:
            from rocm.bindings import hiprtc
        except ImportError as error:
            raise UnavailableError(
                f"HIP RTC cannot be used: {error}", hint="pip install 'gdsfw-hipfile[rocm]'"
            ) from error
        if not hiprtc.has_symbol("hiprtcCreateProgram"):  # a call without the library returns garbage
            raise UnavailableError("HIP RTC cannot be used: libhiprtc is not found", hint="it comes with ROCm")
        self._hiprtc: Any = hiprtc
        self.version = "hiprtc {}.{}".format(*self._call("hiprtcVersion"))

    def compile(self, source: str, architecture: str) -> bytes:
        """A code object."""
        program = self._call("hiprtcCreateProgram", source.encode(), b"kernels.cpp", 0, None, None)
        try:
            options = [f"--offload-arch={architecture}".encode(), b"-std=c++17"]
            (result,) = self._hiprtc.hiprtcCompileProgram(program, len(options), options)
            if int(result):
                raise UnavailableError(f"HIP RTC: {result.name}: {self._log(program)}")
            code = bytearray(int(self._call("hiprtcGetCodeSize", program)))
            self._call("hiprtcGetCode", program, code)
            return bytes(code)
        finally:
            self._hiprtc.hiprtcDestroyProgram(program.createRef())

    def _log(self, program: Any) -> str:
        text = bytearray(int(self._call("hiprtcGetProgramLogSize", program)))
        self._call("hiprtcGetProgramLog", program, text)
        return text.rstrip(b"\0 ").decode(errors="replace")

    def _call(self, name: str, *arguments: Any) -> Any:
        result, *values = getattr(self._hiprtc, name)(*arguments)
        if int(result):
            raise UnavailableError(f"{name}: {result.name}")
        return values[0] if len(values) == 1 else tuple(values)
