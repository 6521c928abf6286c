"""Sessions for programs: views of a file's pages and lists of blocks, on both vendors' stand-ins."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.standins import Standin

PRELUDE = """
import ctypes as c, gc, os, sys
import gdsfw
from gdsfw import dlpack
from gdsfw.errors import BackendError, UnavailableError, UsageError
from gdsfw.gpu.copying import copy
from gdsfw.backend import Buffer
path, backend = sys.argv[1], sys.argv[2]
content = open(path, "rb").read()

def fails(kind, call, *words):
    try:
        call()
    except kind as error:
        assert all(word in str(error) for word in words), str(error)
        return
    raise AssertionError(f"no {kind.__name__}")

class Memory:
    def __init__(self, session, nbytes):
        self.runtime = session._session.runtime
        self.entered = self.runtime.enter(0)
        self.address, self.nbytes = self.runtime.allocate(nbytes), nbytes
        self.stream = self.runtime.create_stream()
        self.__cuda_array_interface__ = {"shape": (nbytes,), "typestr": "|u1", "data": (self.address, False),
                                         "version": 3}
    def content(self):
        found = bytearray(self.nbytes)
        copy(self.runtime, self.stream, Buffer(self.address, self.nbytes, "device"), 0, memoryview(found), "to_host")
        return bytes(found)
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "weights.bin"
    path.write_bytes(os.urandom(1 << 20))
    return path


@pytest.fixture
def tmpfs() -> Iterator[Path]:
    if not Path("/dev/shm").is_dir():
        pytest.skip("no /dev/shm")
    path = Path(f"/dev/shm/gdsfw-session-{os.getpid()}")
    path.write_bytes(os.urandom(1 << 20))
    yield path
    path.unlink()


def check(standin: Standin, file: Path, tmp_path: Path, code: str, *, devices: int = 1) -> None:
    if lacking := standin.lacking():
        pytest.skip(lacking)
    environ = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    settings = {"devices": devices}
    done = standin.run(PRELUDE + code, file, standin.backend, environ=environ, settings=settings, folder=tmp_path)
    assert done.returncode == 0, done.stderr + done.stdout


def test_a_view_is_device_memory_for_others(standin: Standin, file: Path, tmp_path: Path) -> None:
    kind = {"cufile": 2, "hipfile": 10}[standin.backend]
    check(
        standin,
        file,
        tmp_path,
        f"""
with gdsfw.open_session(backend) as session:
    view = session.map(path)
    assert len(view) == view.nbytes == len(content) and view.read_only and view.device == 0
    interface = view.__cuda_array_interface__
    assert interface["data"] == (view.address, True) and interface["shape"] == (len(content),)
    assert view.__dlpack_device__() == ({kind}, 0)
    fails(BufferError, view.__dlpack__, "read-only")
    fails(BufferError, lambda: view.__dlpack__(max_version=(1, 0), copy=True), "copied")
    fails(BufferError, lambda: view.__dlpack__(max_version=(1, 0), dl_device=(1, 0)), "another device")
    view.close()
    view.close()
    fails(BufferError, lambda: view.__cuda_array_interface__, "closed")
""",
    )


def test_an_error_is_not_hidden_by_the_view_it_leaves_open(standin: Standin, file: Path, tmp_path: Path) -> None:
    check(
        standin,
        file,
        tmp_path,
        """
def fail():
    with gdsfw.open_session(backend) as session:
        view = session.map(path)
        raise LookupError("the program's own")
fails(LookupError, fail, "own")
with gdsfw.open_session(backend) as session:
    view = session.map(path)
    try:
        with session:
            raise LookupError
    except LookupError:
        pass
    session.map(path).close()
    view.close()
    fails(UsageError, lambda: session.map(path), "closed")
""",
    )


def test_a_capsule_says_what_it_is(standin: Standin, file: Path, tmp_path: Path) -> None:
    check(
        standin,
        file,
        tmp_path,
        """
session = gdsfw.open_session(backend)
view = session.map(path)
capsule = view.__dlpack__(max_version=(1, 1))
managed = dlpack.ManagedVersioned.from_address(dlpack._pointer(id(capsule), b"dltensor_versioned"))
assert (managed.major, managed.flags) == (1, dlpack.READ_ONLY)
tensor = managed.tensor
assert (tensor.data, tensor.ndim, tensor.shape[0]) == (view.address, 1, len(content))
assert (tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes) == (1, 8, 1)
assert (tensor.device.type, tensor.device.id) == view.__dlpack_device__()
fails(BufferError, view.close, "1 exports", "weights.bin")
fails(BufferError, session.close, "1 views")
del tensor, managed, capsule
view.close()
session.close()
session.close()
fails(UsageError, lambda: session.map(path), "closed")
""",
    )


def test_who_takes_a_capsule_lets_go_of_it(standin: Standin, tmpfs: Path, tmp_path: Path) -> None:
    """A consumer renames the capsule, drops it, and calls the deleter when its tensor goes."""
    check(
        standin,
        tmpfs,
        tmp_path,
        """
session = gdsfw.open_session(backend)
view = session.map(path, writable=True)
capsule = view.__dlpack__()
taken = dlpack._pointer(id(capsule), b"dltensor")
managed = dlpack.Managed.from_address(taken)
rename = c.pythonapi.PyCapsule_SetName
rename.argtypes = (c.py_object, c.c_char_p)
used = b"used_dltensor"
rename(capsule, used)
del capsule
fails(BufferError, view.close, "1 exports")
managed.deleter(taken)
view.close()
session.close()
""",
    )


def test_the_last_reference_unregisters(standin: Standin, file: Path, tmp_path: Path) -> None:
    check(
        standin,
        file,
        tmp_path,
        """
session = gdsfw.open_session(backend)
view = session.map(path)
other = session.map(path)
assert view.address == other.address, "one registration for both"
capsule = view.__dlpack__(max_version=(1, 0))
del view, other
gc.collect()
fails(BufferError, session.close, "1 views")
del capsule
gc.collect()
session.close()
""",
    )


def test_lists_of_blocks_land_behind_each_other(standin: Standin, file: Path, tmp_path: Path) -> None:
    check(
        standin,
        file,
        tmp_path,
        """
offsets = [4096 * i for i in (7, 3, 200, 3, 0, 255)] * 20 + [777, 12345]
sizes = [4096] * 120 + [1000, 1]
expected = b"".join(content[o : o + s] for o, s in zip(offsets, sizes))
with gdsfw.open_session(backend) as session:
    for way in ("mapped", "staged", "sync", "auto"):
        out = Memory(session, len(expected))
        assert session.read_many(path, offsets, sizes, out, io_path=way, iodepth=16) == len(expected)
        assert out.content() == expected, way
        again = offsets[::-1]
        assert session.read_many(path, again[2:], 4096, out, io_path=way, iodepth=16) == 120 * 4096
        assert out.content()[: 4096] == content[again[2] : again[2] + 4096]
""",
    )


def test_wrong_lists_say_what_is_wrong(standin: Standin, file: Path, tmp_path: Path) -> None:
    check(
        standin,
        file,
        tmp_path,
        """
with gdsfw.open_session(backend) as session:
    out = Memory(session, 8192)
    fails(UsageError, lambda: session.read_many(path, [0, 1], [1], out), "2 offsets, but 1 sizes")
    fails(UsageError, lambda: session.read_many(path, [0, 1], 8192, out), "16384 bytes", "`out` has 8192")
    fails(UsageError, lambda: session.read_many(path, [0], 1, object()), "no device memory")
    assert session.read_many(path, [], [], out) == 0
    for way in ("mapped", "staged"):
        call = lambda: session.read_many(path, [0, len(content) + 4096], 4096, out, io_path=way)
        fails(BackendError, call, "4096 bytes at", str(len(content) + 4096))
    fails(OSError, lambda: session.read_many(path + ".not", [0], 1, out))
    fails(UnavailableError, lambda: session.map(path, device=5), "no device 5", "there are: 0")
    fails(UnavailableError, lambda: session.map(path, writable=True), "tmpfs")
""",
    )


def test_a_session_leaves_the_threads_device_as_it_was(standin: Standin, file: Path, tmp_path: Path) -> None:
    check(
        standin,
        file,
        tmp_path,
        """
with gdsfw.open_session(backend) as session:
    runtime = session._session.runtime
    runtime.enter(1)
    before = int(runtime._do("current"))
    session.map(path, device=0).close()
    assert int(runtime._do("current")) == before
""",
        devices=2,
    )


def test_a_backend_without_devices_says_so(tmp_path: Path) -> None:
    import gdsfw
    from gdsfw.errors import UnavailableError

    (tmp_path / "f").write_bytes(b"1")
    with gdsfw.open_session("posix") as session, pytest.raises(UnavailableError, match="no memory of devices"):
        session.map(tmp_path / "f")
