"""NVRTC, CUDA's run-time compiler, through cuda-python."""

from __future__ import annotations

from typing import Any

from gdsfw.errors import UnavailableError


class Nvrtc:
    """gdsfw.gpu.kernels.Compiler over NVRTC."""

    def __init__(self) -> None:
        try:
            from cuda.bindings import nvrtc

            result, major, minor = nvrtc.nvrtcVersion()
        except (ImportError, OSError, RuntimeError) as error:
            raise UnavailableError(
                f"NVRTC cannot be used: {error}", hint="pip install 'gdsfw-cufile[cuda13]' brings it"
            ) from error
        if int(result):
            raise UnavailableError(f"NVRTC cannot be used: {result.name}")
        self._nvrtc = nvrtc
        self.version = f"nvrtc {major}.{minor}"

    def compile(self, source: str, architecture: str) -> bytes:
        """A cubin."""
        nvrtc = self._nvrtc
        program = self._call("nvrtcCreateProgram", source.encode(), b"kernels.cpp", 0, [], [])
        try:
            options = [f"--gpu-architecture={architecture}".encode(), b"--std=c++17"]
            (result,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
            if int(result):
                raise UnavailableError(f"NVRTC: {result.name}: {self._log(program)}")
            code = b" " * int(self._call("nvrtcGetCUBINSize", program))
            self._call("nvrtcGetCUBIN", program, code)
            return code
        finally:
            nvrtc.nvrtcDestroyProgram(program)

    def _log(self, program: Any) -> str:
        text = b" " * int(self._call("nvrtcGetProgramLogSize", program))
        self._call("nvrtcGetProgramLog", program, text)
        return text.rstrip(b"\0 ").decode(errors="replace")

    def _call(self, name: str, *arguments: Any) -> Any:
        result, *values = getattr(self._nvrtc, name)(*arguments)
        if int(result):
            raise UnavailableError(f"{name}: {result.name}")
        return values[0] if values else None
