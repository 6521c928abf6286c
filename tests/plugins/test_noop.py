"""The backend that moves nothing, and host memory for backends."""

from __future__ import annotations

import mmap
from types import SimpleNamespace
from typing import Any

import pytest
from gdsfw import host_memory, noop
from gdsfw.backend import Request, Target
from gdsfw.errors import UnavailableError
from gdsfw.plugins import JobHooks, PluginManager


@pytest.fixture
def hooks() -> JobHooks:
    manager = PluginManager()
    manager.register(noop, "noop")
    return manager.job_hooks("noop")


def request_for(rw: Any = "read") -> Request:
    return Request("noop", rw, 4096, 4096, [(0, 1 << 20)])


def test_it_goes_through_the_whole_life_of_a_job(hooks: JobHooks) -> None:
    worker = SimpleNamespace(session=hooks.gdsfw_open(options=None))
    file = hooks.gdsfw_open_file(session=None, target=Target("nowhere", 1, 1 << 20), mode="rw")
    assert file.fd == -1
    assert file.writable
    buffer = hooks.gdsfw_alloc(worker=worker, nbytes=8192, memory="host", alignment=mmap.PAGESIZE)
    path = hooks.gdsfw_io(worker=worker, files=[file], buffer=buffer, request=request_for())
    snapshot = hooks.gdsfw_transport(worker=worker, path=path, before=None)
    for io in (path.python, path.as_python(buffer)):
        assert io.read(file, 4096, 0, 0) == 4096
        assert io.write(file, 8192, 1 << 19, 0) == 8192
    assert hooks.gdsfw_transport(worker=worker, path=path, before=snapshot).kind == "none"
    path.close()
    hooks.gdsfw_free(worker=worker, buffer=buffer)
    hooks.gdsfw_close_file(session=None, file=file)


def test_it_has_a_native_path_where_the_engine_is_there(hooks: JobHooks) -> None:
    from gdsfw.engine import native

    file = hooks.gdsfw_open_file(session=None, target=Target("nowhere", 1, 1), mode="r")
    path = hooks.gdsfw_io(worker=None, files=[file, file], buffer=None, request=request_for())
    usable, reason = native.available()
    assert (path.native is not None) == usable
    assert path.notes == (() if usable else (reason,))
    assert len(path.file_values) == (2 if usable else 0)


@pytest.mark.parametrize("alignment", [1, 4096, 1 << 21])
def test_host_memory_is_aligned_and_writable(alignment: int) -> None:
    buffer = host_memory.allocate(5000, "host", alignment)
    assert buffer.address % alignment == 0
    assert buffer.nbytes == 5000
    assert buffer.host_view is not None
    buffer.host_view[0] = buffer.host_view[4999] = 7
    host_memory.free(buffer)
    host_memory.free(buffer)


def test_host_memory_stays_while_somebody_looks_at_it() -> None:
    buffer = host_memory.allocate(4096)
    assert buffer.host_view is not None
    view = buffer.host_view[:16]
    host_memory.free(buffer)
    view[0] = 1


def test_another_kind_of_memory_is_refused() -> None:
    with pytest.raises(UnavailableError, match="host memory is `host` or `hugepage`, not 'device'"):
        host_memory.allocate(4096, "device")
