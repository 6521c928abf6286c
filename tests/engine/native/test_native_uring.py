from __future__ import annotations

import ctypes as c
import errno
import os
import random
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from gdsfw.backend import Buffer, FileHandle, IOPath, QueueRequest, Target
from gdsfw.engine import native_uring
from gdsfw.engine.native import FdFile, NativeLoop, UringOptions, table_io, try_uring, uring_table
from gdsfw.engine.spec import BlockSizes, EndedBy, LoopFile, Verify

Make = Callable[..., Any]
KIB = 1024
MIB = 1 << 20


@pytest.fixture(autouse=True)
def _io_uring_works(buffer: Buffer) -> None:
    refusal = try_uring(UringOptions(), buffer, [], 4)
    if refusal is not None:
        pytest.skip(refusal.message)


@pytest.fixture
def uring_path(open_path: Make, buffer: Buffer) -> Callable[..., IOPath]:
    def make(*paths: Path, **options: int) -> IOPath:
        chosen = UringOptions(**options)
        refusal = try_uring(chosen, buffer, [], 4)
        if refusal is not None:
            pytest.skip(refusal.message)
        path = open_path(*paths, table=uring_table(chosen), name="io_uring", iodepth=16)
        path.keep = (*path.keep, chosen)
        return path  # type: ignore[no-any-return]

    return make


OPTIONS = [{}, {"fixed_buffers": 1}, {"fixed_files": 1}, {"fixed_buffers": 1, "fixed_files": 1}, {"sqpoll": 1}]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: "+".join(o) or "plain")
def test_bytes_arrive_where_they_belong(
    run: Make, make_spec: Make, uring_path: Make, tmp_path: Path, options: dict[str, int]
) -> None:
    path = uring_path(tmp_path / "f", **options)
    deep = {"iodepth": 16, "batch_submit": 4, "batch_complete": 4, "slot_stride": 64 * KIB}
    wrote = run(
        make_spec(rw="write", random=True, length=MIB, write_fill="pattern", **deep),
        path,
    )
    assert (wrote.write.bytes, wrote.written) == (MIB, ((0, 0, MIB),))
    sizes = BlockSizes(((512, 1), (4096, 2), (20_480, 1)))
    read = run(make_spec(random=True, length=MIB, block=sizes, verify=Verify(), loops=3, **deep), path)
    assert read.errors == ()
    assert read.verify.bad_blocks == 0
    assert read.verify.checked_bytes == read.verify.expected_bytes == 3 * MIB
    assert sum(read.depth_histogram) == read.read.ios


def test_flipped_bit_is_found_through_the_queue(run: Make, make_spec: Make, uring_path: Make, tmp_path: Path) -> None:
    path = uring_path(tmp_path / "f")
    run(make_spec(rw="write", write_fill="pattern", iodepth=8), path)
    data = bytearray((tmp_path / "f").read_bytes())
    data[100_000] ^= 1
    (tmp_path / "f").write_bytes(data)
    result = run(make_spec(verify=Verify(), iodepth=8, batch_submit=8), path)
    (bad,) = result.verify.mismatches
    assert (bad.file_offset, bad.bad_bytes) == (100_000, 1)


def test_mixed_job_with_generations_verifies_at_depth(
    run: Make, make_spec: Make, uring_path: Make, tmp_path: Path
) -> None:
    path = uring_path(tmp_path / "f")
    run(make_spec(rw="write", write_fill="pattern"), path)
    spec = make_spec(
        rw="readwrite",
        random=True,
        loops=40,
        iodepth=16,
        batch_submit=8,
        write_fill="pattern",
        verify=Verify(generations=True),
    )
    result = run(spec, path)
    assert result.errors == ()
    assert result.verify.bad_blocks == 0
    assert result.verify.checked_bytes == result.read.bytes > 0


def test_end_of_file_is_an_error_with_its_offset(run: Make, make_spec: Make, uring_path: Make, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(bytes(10_000))
    result = run(make_spec(iodepth=1), uring_path(tmp_path / "f"))
    (error,) = result.errors
    assert (error.operation, error.file_offset, error.code) == ("read", 8192, errno.ENODATA)


def test_kernel_error_is_reported_as_errno(run: Make, make_spec: Make, buffer: Buffer, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(bytes(8192))
    fd = os.open(tmp_path / "f", os.O_RDONLY)
    file = FdFile(fd, -1, 1, 0)
    options = UringOptions()
    path = IOPath(
        "io_uring", [FileHandle(Target("f", 1, 0))], native=uring_table(options), file_values=[c.addressof(file)]
    )
    result = run(make_spec(rw="write", iodepth=4), path)
    os.close(fd)
    assert result.errors[0].code == errno.EBADF
    assert result.ended_by is EndedBy.ERROR


@pytest.mark.parametrize("fixed", [0, 1])
def test_odd_tail_of_a_direct_file_goes_to_the_tail_descriptor(
    run: Make, make_spec: Make, tmp_path: Path, fixed: int
) -> None:
    whole, tail = tmp_path / "whole", tmp_path / "tail"
    descriptors = [os.open(p, os.O_RDWR | os.O_CREAT, 0o600) for p in (whole, tail)]
    file = FdFile(*descriptors, 4096, 0)
    options = UringOptions(fixed_files=fixed)
    path = IOPath(
        "io_uring", [FileHandle(Target("f", 1, 0))], native=uring_table(options), file_values=[c.addressof(file)]
    )
    result = run(make_spec(rw="write", length=3 * 4096 + 100, iodepth=4), path)
    for fd in descriptors:
        os.close(fd)
    assert result.write.bytes == 3 * 4096 + 100
    assert (whole.stat().st_size, tail.stat().st_size) == (3 * 4096, 3 * 4096 + 100)


def test_many_files_are_told_apart_when_registered(
    run: Make, make_spec: Make, uring_path: Make, tmp_path: Path
) -> None:
    names = [tmp_path / f"f{i}" for i in range(9)]
    path = uring_path(*names, fixed_files=1)
    files = tuple(LoopFile(i, 0, 16 * KIB, 5) for i in range(9))
    deep = {"iodepth": 8, "batch_submit": 8, "file_service": "random"}
    run(make_spec(rw="write", files=files, write_fill="pattern", **deep), path)
    result = run(make_spec(files=files, verify=Verify(), **deep), path)
    assert result.verify.bad_blocks == 0
    assert result.verify.checked_bytes == 9 * 16 * KIB


def test_odd_sized_file_is_read_to_its_last_byte(run: Make, make_spec: Make, uring_path: Make, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(bytes(64 * KIB - 10))
    spec = make_spec(length=64 * KIB - 10, block=16 * KIB, iodepth=4, batch_submit=4)
    assert run(spec, uring_path(tmp_path / "f")).read.bytes == 64 * KIB - 10


def test_stop_ends_a_deep_loop(make_spec: Make, uring_path: Make, buffer: Buffer, tmp_path: Path) -> None:
    import threading
    import time

    (tmp_path / "f").write_bytes(bytes(256 * KIB))
    loop = NativeLoop(
        make_spec(random=True, runtime_ns=10**13, iodepth=16, batch_submit=16), uring_path(tmp_path / "f"), buffer
    )
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(loop.run()))
    thread.start()
    while loop.live().ios[0] == 0:
        time.sleep(0.001)
    loop.stop()
    thread.join(30)
    assert results[0].ended_by is EndedBy.STOP
    assert results[0].errors == ()


def test_stop_withdraws_reads_that_would_never_end(make_spec: Make, buffer: Buffer) -> None:
    import threading
    import time

    reader, writer = os.pipe()
    file = FdFile(reader, -1, 1, 0)
    options = UringOptions()
    path = IOPath(
        "io_uring", [FileHandle(Target("f", 1, 0))], native=uring_table(options), file_values=[c.addressof(file)]
    )
    loop = NativeLoop(make_spec(length=4096, iodepth=1), path, buffer)
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(loop.run()))
    thread.start()
    while loop.live().in_flight is None and thread.is_alive():
        time.sleep(0.001)
    loop.stop()
    thread.join(30)
    alive = thread.is_alive()
    os.close(writer)
    thread.join(30)
    os.close(reader)
    assert not alive
    assert results[0].ended_by is EndedBy.STOP
    assert results[0].errors == ()


def test_queue_in_python_calls_moves_the_same_bytes(uring_path: Make, buffer: Buffer, tmp_path: Path) -> None:
    data = random.Random(1).randbytes(64 * KIB)
    (tmp_path / "f").write_bytes(data)
    path = uring_path(tmp_path / "f")
    calls: Any = path.as_python(buffer)
    requests = [QueueRequest("read", path.files[0], 4096, i * 8192, i * 4096, 100 + i) for i in range(8)]
    assert calls.submit(requests) == 8
    done: list[int] = []
    while len(done) < 8:
        done += [completion.cookie for completion in calls.reap(1, 10**9) if completion.result == 4096]
    calls.close()
    assert sorted(done) == list(range(100, 108))
    assert buffer.host_view is not None
    for i in range(8):
        assert bytes(buffer.host_view[i * 4096 : (i + 1) * 4096]) == data[i * 8192 : i * 8192 + 4096]


def test_table_without_read_reads_through_its_queue(uring_path: Make, buffer: Buffer, tmp_path: Path) -> None:
    from gdsfw.engine import native_table as abi

    (tmp_path / "f").write_bytes(b"x" * 5000)
    path = uring_path(tmp_path / "f")
    assert path.native is not None
    path.native.read = abi.IO_FN()
    calls: Any = table_io(path.native, {id(path.files[0]): path.file_values[0]}, buffer)
    assert calls.read(path.files[0], 4096, 0, 0) == 4096
    assert calls.read(path.files[0], 4096, 4096, 0) == 904
    calls.close()


def test_limit_on_locked_memory_is_explained() -> None:
    program = textwrap.dedent("""
        import ctypes, mmap, os, resource, sys
        from gdsfw.backend import Buffer
        from gdsfw.engine.native import UringOptions, try_uring
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (32768, 32768))
        if os.geteuid() == 0:
            os.setuid(65534)
        memory = mmap.mmap(-1, 1 << 20)
        held = (ctypes.c_uint8 * len(memory)).from_buffer(memory)
        refusal = try_uring(UringOptions(fixed_buffers=1), Buffer(ctypes.addressof(held), len(memory)), [], 4)
        print(refusal.message if refusal else "registered")
        print(refusal.hint if refusal else "")
    """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    if "registered" in done.stdout:
        pytest.skip("this kernel does not count registered buffers against RLIMIT_MEMLOCK")
    if "PermissionError" in done.stderr:
        pytest.skip("the interpreter cannot be run by another user here")
    assert "the limit on locked memory is 32768 bytes" in done.stdout, done.stderr
    assert "ulimit -l" in done.stdout


@pytest.mark.parametrize(
    ("error", "setting", "sqpoll", "says"),
    [
        (errno.EPERM, "2", 0, "switched off for everybody"),
        (errno.EPERM, "1", 0, "switched off for users outside"),
        (errno.EPERM, "0", 1, "sqpoll is not permitted"),
        (errno.EPERM, "0", 0, "seccomp"),
        (errno.EPERM, None, 0, "seccomp"),
        (errno.ENOSYS, "0", 0, "has no io_uring"),
        (errno.EOPNOTSUPP, "0", 0, "too old"),
        (errno.ENOMEM, "0", 0, "cannot allocate its rings"),
        (errno.EMFILE, "0", 0, "Too many open files"),
    ],
)
def test_refusals_of_the_kernel_are_told_apart(
    tmp_path: Path, error: int, setting: str | None, sqpoll: int, says: str
) -> None:
    if setting is not None:
        place = tmp_path / "proc/sys/kernel"
        place.mkdir(parents=True)
        (place / "io_uring_disabled").write_text(f"{setting}\n")
    refusal = native_uring.explain(native_uring.SETUP, error, UringOptions(sqpoll=sqpoll), 4096, root=tmp_path)
    assert says in refusal.message
    assert refusal.hint
    assert refusal.error == error


def test_queue_leaves_no_descriptor_and_no_memory_behind(
    run: Make, make_spec: Make, uring_path: Make, tmp_path: Path
) -> None:
    path = uring_path(tmp_path / "f", fixed_buffers=1, fixed_files=1)
    spec = make_spec(rw="write", iodepth=16, batch_submit=16)
    run(spec, path)
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    mapped = len(Path("/proc/self/maps").read_text().splitlines())
    for _ in range(20):
        run(spec, path)
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
    assert len(Path("/proc/self/maps").read_text().splitlines()) <= mapped + 2
