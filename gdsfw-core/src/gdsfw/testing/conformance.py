"""The tests of the kit. They know a backend by its hooks and by what it declares, and nothing else."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from gdsfw.backend import HOOK_VERSION, BackendInfo, Check, Device
from gdsfw.engine import native
from gdsfw.engine.spec import EndedBy, LoopResult
from gdsfw.errors import BackendError, GdsfwError
from gdsfw.host import Host
from gdsfw.testing.subject import Rig, Subject, loop

SIZES = (1, 511, 512, 4095, 4096, 4097, 65536, 1 << 20, (1 << 20) + 1, 16 << 20)
FAILURE = (OSError, BackendError, GdsfwError)


def need(subject: Subject, capability: str) -> None:
    """Skip unless the backend declares the capability."""
    if capability not in subject.info.capabilities:
        pytest.skip(f"backend {subject.name} does not declare the capability {capability!r}")


def data(size: int, seed: int = 1) -> bytes:
    """Bytes that differ from place to place."""
    import random

    return random.Random(seed).randbytes(size)


class TestHooks:
    """The backend says what it is."""

    def test_it_describes_itself(self, subject: Subject) -> None:
        info = subject.info
        assert isinstance(info, BackendInfo)
        assert info.name == subject.name
        assert info.hook_version == HOOK_VERSION
        assert info.title
        assert info.version
        assert info.memory

    def test_its_paths_have_names_of_their_own_and_move_something(self, subject: Subject) -> None:
        paths = subject.info.io_paths
        assert paths
        assert len({path.name for path in paths}) == len(paths)
        assert all(path.reads or path.writes for path in paths)
        assert all(path.max_iodepth >= 0 for path in paths)

    def test_its_probe_answers_within_five_seconds_and_never_raises(self, subject: Subject) -> None:
        hooks = subject.plugins.job_hooks(subject.name)
        options = subject.plugins.validate_options(subject.name, {})
        for place in (subject.directory, Path("/nonexistent")):
            began = time.monotonic()
            found = hooks.gdsfw_probe(options=options, directory=place, host=Host())
            assert time.monotonic() - began < 5
            assert all(isinstance(check, Check) for check in found)
        hooks.gdsfw_probe(options=options, directory=Path("/"), host=Host(subject.directory, live=False))

    def test_its_devices_are_numbered_once(self, subject: Subject) -> None:
        devices = subject.plugins.job_hooks(subject.name).gdsfw_devices()
        assert all(isinstance(device, Device) for device in devices)
        assert len({device.ordinal for device in devices}) == len(devices)


class TestLifecycle:
    """What is opened can be closed, twice over, with and without I/O in between."""

    def test_a_session_opens_and_closes_twice(self, subject: Subject) -> None:
        for _ in range(2):
            with subject.rig():
                pass

    def test_every_path_opens_and_closes(self, subject: Subject) -> None:
        for name in subject.path_names():
            with subject.rig(io_path=name) as rig:
                assert rig.path.name == name

    def test_a_buffer_is_as_large_as_asked_and_aligned(self, subject: Subject) -> None:
        for nbytes in (1, 4096, 1 << 20):
            with subject.rig(block=nbytes) as rig:
                assert rig.buffer.nbytes >= nbytes
                assert rig.buffer.address
                assert rig.buffer.address % 4096 == 0
                assert rig.buffer.memory in subject.info.memory

    def test_two_workers_buffers_do_not_overlap(self, subject: Subject) -> None:
        with subject.rig() as one, subject.rig(worker=1) as two:
            first, second = sorted((rig.buffer.address, rig.buffer.nbytes) for rig in (one, two))
            assert first[0] + first[1] <= second[0]

    def test_copies_reach_the_buffer_at_their_offset(self, subject: Subject) -> None:
        with subject.rig(block=8192) as rig:
            rig.put(0, b"\0" * 8192)
            rig.put(4097, b"marker")
            assert rig.get(4096, 8) == b"\0marker\0"

    def test_the_transport_is_told_after_a_snapshot(self, subject: Subject) -> None:
        with subject.rig() as rig:
            before = rig.hooks.gdsfw_transport(worker=rig.worker, path=rig.path, before=None)
            told = rig.hooks.gdsfw_transport(worker=rig.worker, path=rig.path, before=before)
            assert told.kind
            assert told.cache in ("bypassed", "cold", "warm", "unknown")


class TestFiles:
    """Names: what is there, what is not."""

    def test_a_missing_file_cannot_be_opened_for_reading(self, subject: Subject) -> None:
        need(subject, "data")
        with pytest.raises(FAILURE), subject.rig(name="absent", rw="read", create=False):
            pass

    def test_what_one_session_wrote_another_reads(self, subject: Subject) -> None:
        need(subject, "data")
        expected = data(65536)
        with subject.rig(nbytes=65536) as rig:
            rig.write(0, expected)
        with subject.rig(nbytes=65536, rw="read") as rig:
            assert rig.read(0, 65536) == expected

    def test_two_names_are_two_files(self, subject: Subject) -> None:
        need(subject, "data")
        with subject.rig(name="one") as one, subject.rig(name="two") as two:
            one.write(0, b"1" * 4096)
            two.write(0, b"2" * 4096)
            assert one.read(0, 4096) == b"1" * 4096

    def test_an_open_file_tells_its_size(self, subject: Subject) -> None:
        need(subject, "data")
        with subject.rig(nbytes=10_000) as rig:
            rig.write(0, data(10_000))
        with subject.rig(nbytes=10_000, rw="read") as rig:
            assert rig.file.target.nbytes == 10_000


class TestIntegrity:
    """The bytes that come back are those that went in, at their place and nowhere else."""

    @pytest.mark.parametrize("size", SIZES)
    def test_blocks_of_any_size(self, subject: Subject, size: int) -> None:
        need(subject, "data")
        for path in subject.path_names():
            with subject.rig(io_path=path, name=f"{path}-{size}", nbytes=size, block=size) as rig:
                rig.write(0, data(size))
                assert rig.read(0, size) == data(size), path

    @pytest.mark.parametrize("offset", [1, 511, 4095, 4096, 65537])
    def test_offsets_of_the_file(self, subject: Subject, offset: int) -> None:
        need(subject, "data")
        for path in subject.path_names():
            with subject.rig(io_path=path, name=path) as rig:
                for place in range(0, 1 << 20, 65536):
                    rig.write(place, b"\x11" * 65536)
                rig.write(offset, data(5000))
                assert rig.read(offset, 5000) == data(5000)
                assert rig.read(offset - 1, 1) == b"\x11"
                assert rig.read(offset + 5000, 1) == b"\x11"

    @pytest.mark.parametrize("offset", [512, 4096, 12288])
    def test_offsets_of_the_buffer(self, subject: Subject, offset: int) -> None:
        need(subject, "data")
        for path in subject.path_names():
            with subject.rig(io_path=path, name=path) as rig:
                rig.put(0, b"\x22" * 65536)
                rig.write(0, data(4096), buffer_offset=offset)
                rig.put(0, b"\x33" * 65536)
                assert rig.read(0, 4096, buffer_offset=offset) == data(4096)
                assert rig.get(offset - 1, 1) == b"\x33"
                assert rig.get(offset + 4096, 1) == b"\x33"

    def test_the_end_of_a_file_is_a_short_count_and_then_none(self, subject: Subject) -> None:
        need(subject, "data")
        for path in subject.path_names():
            with subject.rig(io_path=path, name=path, nbytes=10_000) as rig:
                rig.write(0, data(10_000))
                assert rig.read(8192, 8192) == data(10_000)[8192:]
                assert rig.io.read(rig.file, 4096, 12288, 0) == 0

    def test_a_rewrite_replaces(self, subject: Subject) -> None:
        need(subject, "data")
        with subject.rig() as rig:
            rig.write(0, data(65536, 1))
            rig.write(4096, data(4096, 2))
            assert rig.read(0, 65536) == data(65536, 1)[:4096] + data(4096, 2) + data(65536, 1)[8192:]

    def test_holes_read_as_zeros(self, subject: Subject) -> None:
        need(subject, "data")
        need(subject, "sparse")
        with subject.rig(nbytes=1 << 20) as rig:
            rig.write((1 << 20) - 4096, data(4096))
            assert rig.read(65536, 4096) == bytes(4096)

    def test_a_flush_keeps_the_data(self, subject: Subject) -> None:
        need(subject, "data")
        need(subject, "flush")
        with subject.rig() as rig:
            rig.write(0, data(65536))
            for mode in ("fsync", "fdatasync"):
                rig.hooks.gdsfw_sync(worker=rig.worker, file=rig.file, mode=mode)
            flush: Any = rig.io
            flush.flush(rig.file, True)
            assert rig.read(0, 65536) == data(65536)


class TestLoops:
    """Under the loops that measure: the same bytes, whichever loop drives the path."""

    def test_every_block_is_written_and_verified(self, subject: Subject) -> None:
        need(subject, "data")
        for path in subject.path_names():
            for driver in _drivers(subject, path):
                with subject.rig(io_path=path, name=f"{path}-{driver}", block=4096) as rig:
                    for rw in ("write", "read"):
                        result = _run(rig, driver, rw)
                        assert result.ended_by is EndedBy.IO_SIZE, (path, driver, result.errors)
                        assert result.total_bytes == 1 << 20
                    assert result.verify is not None
                    assert result.verify.checked_bytes == result.verify.expected_bytes == 1 << 20
                    assert result.verify.bad_blocks == 0

    def test_verification_can_fail(self, subject: Subject) -> None:
        need(subject, "data")
        for path in subject.path_names():
            driver = _drivers(subject, path)[0]
            with subject.rig(io_path=path, name=path, block=4096) as rig:
                _run(rig, driver, "write")
                block = bytearray(rig.read(8192, 4096))
                block[1000] ^= 1
                rig.write(8192, bytes(block))
                verify = _run(rig, driver, "read").verify
                assert verify is not None
                (bad,) = verify.mismatches
                assert (bad.file_offset, bad.bad_bytes) == (9192, 1)

    def test_thirty_two_workers_share_a_file(self, subject: Subject) -> None:
        need(subject, "data")
        need(subject, "shared_files")
        with subject.rig(nbytes=1 << 20) as rig:
            rig.write(0, data(65536))
        failures: list[BaseException] = []

        def work(index: int) -> None:
            try:
                with subject.rig(rw="read", worker=index) as mine:
                    for _ in range(5):
                        assert mine.read(0, 65536) == data(65536)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(index,)) for index in range(32)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []


class TestQueues:
    """Paths that keep several requests in flight."""

    def test_requests_in_flight_keep_their_data_apart(self, subject: Subject) -> None:
        need(subject, "data")
        for path in _queue_paths(subject):
            with subject.rig(io_path=path, name=path, block=4096, iodepth=8) as rig:
                for rw in ("write", "read"):
                    result = _run(rig, _drivers(subject, path)[0], rw, iodepth=8)
                    assert result.ended_by is EndedBy.IO_SIZE, (path, result.errors)
                assert result.verify is not None
                assert result.verify.checked_bytes == 1 << 20
                assert result.verify.bad_blocks == 0

    def test_a_stop_drains_the_queue(self, subject: Subject) -> None:
        for path in _queue_paths(subject):
            with subject.rig(io_path=path, name=path, block=4096, iodepth=8) as rig:
                driver = _drivers(subject, path)[0] == "native"
                endless = loop(
                    rig, native=driver, nbytes=1 << 20, block=4096, rw="write", iodepth=8, runtime_ns=60_000_000_000
                )
                timer = threading.Timer(0.2, endless.stop)
                timer.start()
                assert endless.run().ended_by is EndedBy.STOP
                timer.join()


class TestErrors:
    """What goes wrong is said, once."""

    def test_writing_to_a_file_that_was_opened_for_reading_fails(self, subject: Subject) -> None:
        need(subject, "data")
        with subject.rig() as rig:
            rig.write(0, data(4096))
        for path in subject.path_names():
            with subject.rig(io_path=path, rw="read") as rig:
                with pytest.raises(FAILURE):
                    rig.io.write(rig.file, 4096, 0, 0)
                assert rig.read(0, 4096) == data(4096)

    def test_a_loop_reports_the_end_of_a_file_as_an_error(self, subject: Subject) -> None:
        need(subject, "data")
        with subject.rig(nbytes=65536, block=4096) as rig:
            rig.write(0, data(4096))
        short = subject.info.namespace == "files"
        with subject.rig(nbytes=65536, block=4096, create=True) as rig:
            if short:
                os.ftruncate(rig.file.fd, 4096)
            driver = _drivers(subject, subject.path_names()[0])[0] == "native"
            result = loop(rig, native=driver, nbytes=1 << 20, block=4096, rw="read").run()
            assert result.ended_by is EndedBy.ERROR
            assert result.error_count == len(result.errors) == 1
            assert result.errors[0].operation == "read"

    def test_every_code_it_knows_has_a_name(self, subject: Subject) -> None:
        from gdsfw.errors import Domain

        for domain, code in ((Domain.ERRNO, 5), (Domain.GPU, 1), (Domain.FILE, 5001)):
            info = subject.plugins.explain_error(subject.name, domain, code)
            assert info.name
            assert info.text


class TestLeaks:
    """Nothing is left behind."""

    def test_five_hundred_cycles_leave_nothing_open(self, subject: Subject) -> None:
        for _ in range(20):
            _cycle(subject)
        before = _footprint()
        for _ in range(500):
            _cycle(subject)
        after = _footprint()
        assert after[0] <= before[0], "descriptors"
        assert after[1] <= before[1], "threads"
        assert after[2] <= before[2] + 20, "memory mappings"

    def test_a_failed_open_leaves_nothing_open(self, subject: Subject) -> None:
        need(subject, "data")
        before = _footprint()
        for _ in range(20):
            with pytest.raises(FAILURE), subject.rig(name="absent", rw="read", create=False):
                pass
        assert _footprint()[:2] <= before[:2]


def _cycle(subject: Subject) -> None:
    with subject.rig(nbytes=4096, block=4096):
        pass


def _footprint() -> tuple[int, int, int]:
    mappings = len(Path("/proc/self/maps").read_text().splitlines())
    return len(list(Path("/proc/self/fd").iterdir())), threading.active_count(), mappings


def _queue_paths(subject: Subject) -> list[str]:
    names = [path.name for path in subject.info.io_paths if path.max_iodepth != 1 and path.name != "auto"]
    if not names:
        pytest.skip(f"backend {subject.name} has no io_path with max_iodepth other than 1")
    return names


def _drivers(subject: Subject, path: str) -> list[str]:
    """The loops that can drive a path."""
    info = subject.info.io_path(path)
    drivers = ["native"] if info is not None and info.native and native.available()[0] else []
    with subject.rig(io_path=path, name="drivers") as rig:
        if rig.path.python is not None or not drivers:
            drivers.append("python")
    return drivers


def _run(rig: Rig, driver: str, rw: str, iodepth: int = 1) -> LoopResult:
    return loop(rig, native=driver == "native", nbytes=1 << 20, block=4096, rw=rw, iodepth=iodepth).run()
