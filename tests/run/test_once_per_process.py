"""Options that a library reads once per process must not be taken for set when they are not."""

from __future__ import annotations

from helpers.running import Gdsfw
from helpers.site import Site

SOURCE = """
from pydantic import BaseModel, Field
from gdsfw import hookimpl, host_memory
from gdsfw.backend import BackendInfo, FileHandle, IOPath, IOPathInfo

class Options(BaseModel):
    mode: int = Field(0, description="A mode, no unit.", json_schema_extra={"once_per_process": True})

class IO:
    def read(self, file, size, file_offset, buffer_offset):
        return size
    def write(self, file, size, file_offset, buffer_offset):
        return size

@hookimpl
def gdsfw_backend():
    return BackendInfo("once", "Once", "1", (IOPathInfo("once", native=False),), options=Options, namespace="own")
@hookimpl
def gdsfw_open_file(target, mode):
    return FileHandle(target, writable=True)
@hookimpl
def gdsfw_close_file():
    pass
@hookimpl
def gdsfw_alloc(nbytes, memory, alignment):
    return host_memory.allocate(nbytes, memory, alignment)
@hookimpl
def gdsfw_free(buffer):
    host_memory.free(buffer)
@hookimpl
def gdsfw_io(files):
    return IOPath("once", files, python=IO())
"""


def test_jobs_that_differ_in_them_are_refused(gdsfw: Gdsfw, site: Site) -> None:
    site.distribution("gdsfw-once", SOURCE, entry_points={"once": "gdsfw_once"})
    job = {"backend": "once", "rw": "read", "size": "64KiB"}
    workload = gdsfw.write(
        {"name": "a", **job, "backend_options": {"once": {"mode": 1}}},
        {"name": "b", **job, "backend_options": {"once": {"mode": 2}}},
    )
    ended = gdsfw.ended(gdsfw.start(workload, PYTHONPATH=str(site.folder)))
    assert ended.code == 2
    assert "once per process" in ended.stderr
    assert ended.result is None


def test_jobs_that_agree_run_in_one_process(gdsfw: Gdsfw, site: Site) -> None:
    site.distribution("gdsfw-once", SOURCE, entry_points={"once": "gdsfw_once"})
    job = {"backend": "once", "rw": "read", "size": "64KiB", "backend_options": {"once": {"mode": 1}}}
    workload = gdsfw.write({"name": "a", **job}, {"name": "b", **job})
    ended = gdsfw.ended(gdsfw.start(workload, PYTHONPATH=str(site.folder)))
    assert ended.code == 0, ended.stderr
