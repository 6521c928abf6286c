"""The GPU backends on stand-ins with two devices: workers are spread over them, each in its own context."""

from __future__ import annotations

import re

from fakes.driving import OnStandin, said, written_and_read


def test_workers_take_the_devices_in_turn(on: OnStandin) -> None:
    choices: dict[str, tuple[object, list[int]]] = {
        "sync": ([0, 1], [0, 1, 0, 1]),
        "batch": ("all", [0, 1, 0, 1]),
        "stream": ([1], [1, 1, 1, 1]),
        "staged": ([1, 0], [1, 0, 1, 0]),
    }
    jobs = [
        job
        for path, (devices, _) in choices.items()
        for job in written_and_read(path, devices=devices, numjobs=4, iodepth=2, share="split")
    ]
    ended = on.run(*jobs)
    assert all(job["verify"]["checked_bytes"] == 1 << 20 for job in ended.jobs[1::2])
    for job in ended.jobs:
        assert [worker["device"] for worker in job["workers"]] == choices[job["io_path"]][1]
    assert on.devices_used() == {0, 1}
    name = ended.jobs[0]["transport"]["details"]["device 1"]
    assert name["pci_address"].startswith("0000:")
    assert name["uuid"].startswith("GPU-")


def test_a_context_is_made_on_the_named_devices_only(on: OnStandin) -> None:
    on.run(*written_and_read("sync", devices=[1]), settings={"devices": 3})
    assert on.devices_used() == {1}
    if on.hip:
        return
    assert on.calls("primary_retain") == 1


def test_the_vendors_variable_renumbers_devices(on: OnStandin) -> None:
    variable = "HIP_VISIBLE_DEVICES" if on.hip else "CUDA_VISIBLE_DEVICES"
    ended = on.run(*written_and_read("staged", devices=[0]), environ={variable: "1"})
    assert ended.code == 0
    ended = on.run({"name": "r", "rw": "read", "devices": [1]}, environ={variable: "1"}, code=2)
    assert "present: 0" in said(ended)


def test_a_wrong_context_is_caught(on: OnStandin) -> None:
    """What the tests above rest on: memory of one device used from another's context is an error, not a copy."""
    code = """
import os, sys
from importlib import import_module
from gdsfw.gpu.library_use import _READ
vendor = import_module(sys.argv[1]).plugin._vendor()
runtime, library = vendor.runtime(), vendor.library()
runtime.enter(0)
library.open(None)
here = runtime.allocate(4096)
handle = library.register_file(os.open(sys.argv[2], os.O_RDONLY))
read = _READ(library.symbols()["read"])
stream = runtime.create_stream()
print(read(handle, here, 4096, 0, 0))
runtime.enter(1)
there = runtime.allocate(4096)
print(read(handle, here, 4096, 0, 0), read(handle, there, 4096, 0, 0))
import ctypes as c
copy = c.CFUNCTYPE(c.c_int, c.c_uint64, c.c_uint64, c.c_size_t, c.c_uint64)(runtime.symbols()["copy_to_device"])
print(copy(there, runtime.allocate_host(4096), 4096, stream))
"""
    data = on.folder / "file"
    data.write_bytes(bytes(4096))
    done = on.standin.run(code, f"gdsfw_{on.backend}", data)
    assert done.returncode == 0, done.stderr
    right, wrong, back, foreign_stream = map(int, re.findall(r"-?\d+", done.stdout))
    assert (right, back) == (4096, 4096)
    assert wrong == (4096 if on.hip else -5015)  # hipFile finds the device by the address
    assert foreign_stream != 0
