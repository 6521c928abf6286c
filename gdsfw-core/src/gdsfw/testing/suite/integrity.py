"""The bytes that come back are those that went in, at their place and nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gdsfw.testing.suite.common import SIZES, data, each_way, fails, same

if TYPE_CHECKING:
    from gdsfw.testing.subject import Rig, Subject

MIB = 1 << 20


class TestFiles:
    """Names: what is there, what is not, how long it is."""

    def test_a_missing_file_cannot_be_opened_for_reading(self, subject: Subject) -> None:
        subject.need("data")
        with fails(), subject.rig(names=["absent"], rw="read"):
            pass

    def test_a_job_that_only_reads_makes_no_file(self, subject: Subject) -> None:
        subject.need("data")
        for _ in range(2):
            with fails(), subject.rig(names=["absent"], rw="read"):
                pass

    def test_what_one_session_wrote_another_reads(self, subject: Subject) -> None:
        subject.need("data")
        for path in subject.paths():
            with subject.rig(io_path=path, nbytes=65536) as rig:
                rig.write(0, data(65536))
            with subject.rig(io_path=path, nbytes=65536, rw="read") as rig:
                same(rig.read(0, 65536), data(65536), path)

    def test_what_one_path_wrote_every_path_reads(self, subject: Subject) -> None:
        subject.need("data")
        for writer in subject.paths("write"):
            with subject.rig(io_path=writer, nbytes=100_000, block=131072) as rig:
                rig.write(0, data(100_000))
            for reader in subject.paths("read"):
                with subject.rig(io_path=reader, nbytes=100_000, rw="read", block=131072) as rig:
                    same(rig.read(0, 100_000), data(100_000), f"written by {writer}, read by {reader}")

    def test_two_names_are_two_files(self, subject: Subject) -> None:
        subject.need("data")
        for path in subject.paths():
            with subject.rig(io_path=path, names=["one", "two"]) as rig:
                rig.write(0, b"1" * 4096, file=0)
                rig.write(0, b"2" * 4096, file=1)
                same(rig.read(0, 4096, file=0), b"1" * 4096, path)
                same(rig.read(0, 4096, file=1), b"2" * 4096, path)

    def test_an_open_file_tells_its_size(self, subject: Subject) -> None:
        """The file's own, not what the job works with: a job whose size is not given takes it from here."""
        subject.need("data")
        with subject.rig(nbytes=10_000) as rig:
            rig.write(0, data(10_000))
        with subject.rig(nbytes=0, rw="read") as rig:
            assert rig.file.target.nbytes == 10_000

    def test_opening_a_file_to_write_keeps_what_is_in_it(self, subject: Subject) -> None:
        subject.need("data")
        with subject.rig(nbytes=10_000) as rig:
            rig.write(0, data(10_000))
        with subject.rig(nbytes=10_000) as rig:
            rig.write(5000, b"new")
            same(rig.read(0, 10_000), data(10_000)[:5000] + b"new" + data(10_000)[5003:])


class TestIntegrity:
    """Blocks of any size at any place of file and buffer."""

    @pytest.mark.parametrize("size", SIZES)
    def test_blocks_of_any_size(self, subject: Subject, size: int) -> None:
        subject.need("data")
        for rig, driver, io in each_way(subject, nbytes=size, block=size):
            expected = data(size, len(driver))
            rig.write(0, expected, io=io)
            same(rig.read(0, size, io=io), expected)

    @pytest.mark.parametrize("offset", [1, 511, 4095, 4096, 65537])
    def test_offsets_of_the_file(self, subject: Subject, offset: int) -> None:
        subject.need("data")
        for rig, _, io in each_way(subject, nbytes=3 * 65536):
            for place in range(0, 3 * 65536, 65536):
                rig.write(place, b"\x11" * 65536, io=io)
            rig.write(offset, data(5000), io=io)
            same(rig.read(offset, 5000, io=io), data(5000))
            same(rig.read(offset - 1, 1, io=io), b"\x11", "the byte before a write has changed")
            same(rig.read(offset + 5000, 1, io=io), b"\x11", "the byte after a write has changed")

    @pytest.mark.parametrize("offset", [1, 512, 4096, 12289])
    def test_offsets_of_the_buffer(self, subject: Subject, offset: int) -> None:
        subject.need("data")
        for rig, _, io in each_way(subject):
            at = -(-offset // rig.file.alignment.memory) * rig.file.alignment.memory
            rig.put(0, b"\x22" * 65536)
            rig.write(0, data(4096), at=at, io=io)
            rig.put(0, b"\x33" * 65536)
            same(rig.read(0, 4096, at=at, io=io), data(4096))
            same(rig.get(at - 1, 1), b"\x33", "a read has changed the byte before its place in the buffer")
            same(rig.get(at + 4096, 1), b"\x33", "a read has changed the byte after its place in the buffer")

    def test_a_write_leaves_the_buffer_as_it_is(self, subject: Subject) -> None:
        subject.need("data")
        for rig, _, io in each_way(subject):
            rig.write(0, data(65536), io=io)
            same(rig.get(0, 65536), data(65536))

    def test_a_rewrite_replaces(self, subject: Subject) -> None:
        subject.need("data")
        for rig, _, io in each_way(subject):
            rig.write(0, data(65536, 1), io=io)
            rig.write(4096, data(4096, 2), io=io)
            expected = data(65536, 1)[:4096] + data(4096, 2) + data(65536, 1)[8192:]
            same(rig.read(0, 65536, io=io), expected)

    def test_holes_read_as_zeros(self, subject: Subject) -> None:
        subject.need("data", "sparse")
        for rig, _, io in each_way(subject, nbytes=MIB):
            rig.write(MIB - 4096, data(4096), io=io)
            same(rig.read(65536, 4096, io=io), bytes(4096))
            same(rig.read(MIB - 8192, 8192, io=io), bytes(4096) + data(4096))

    def test_a_flush_keeps_the_data(self, subject: Subject) -> None:
        subject.need("data", "flush")
        for rig, _, io in each_way(subject):
            for data_only in (False, True):
                rig.write(0, data(65536, int(data_only)), io=io)
                io.flush(rig.file, data_only)
                same(rig.read(0, 65536, io=io), data(65536, int(data_only)))

    def test_after_a_flush_another_session_sees_the_data(self, subject: Subject) -> None:
        subject.need("data", "flush")
        for rig, _, io in each_way(subject, nbytes=65536):
            rig.write(0, data(65536), io=io)
            io.flush(rig.file, False)
            name = rig.file.target.name.rpartition("/")[2]
            with subject.rig(io_path=rig.request.io_path, names=[name], nbytes=65536, rw="read") as other:
                same(other.read(0, 65536), data(65536))


class TestCounts:
    """What a call says that it moved is what it moved."""

    def test_a_count_is_never_more_than_was_asked(self, subject: Subject) -> None:
        subject.need("data")
        for rig, _, io in each_way(subject):
            rig.put(0, data(65536))
            assert 0 < io.write(rig.file, 65536, 0, 0) <= 65536
            assert 0 < io.read(rig.file, 4096, 0, 0) <= 4096

    @pytest.mark.parametrize("size", [1, 100, 4096, 8191])
    def test_a_read_across_the_end_moves_what_is_there(self, subject: Subject, size: int) -> None:
        subject.need("data")
        for rig, _, io in each_way(subject, nbytes=8192 + size):
            _write_all(rig, 8192 + size, io)
            rig.clear()
            moved = io.read(rig.file, 16384, 8192, 0)
            assert 0 < moved <= size, f"{moved} bytes read where {size} are left"
            same(rig.get(0, moved), data(8192 + size)[8192 : 8192 + moved])

    def test_behind_the_end_there_is_nothing(self, subject: Subject) -> None:
        subject.need("data")
        for rig, _, io in each_way(subject, nbytes=10_000):
            _write_all(rig, 10_000, io)
            for offset in (10_000, 12_288, MIB):
                assert io.read(rig.file, 4096, offset, 0) == 0, f"read at {offset} of a file of 10000 bytes"

    def test_a_read_changes_the_buffer_at_its_place_only(self, subject: Subject) -> None:
        subject.need("data")
        for rig, _, io in each_way(subject, nbytes=10_000):
            _write_all(rig, 10_000, io)
            rig.clear()
            moved = io.read(rig.file, 4096, 4096, 8192)
            same(rig.get(8192, moved), data(10_000)[4096 : 4096 + moved])
            assert set(rig.get(0, 8192)) == set(rig.get(8192 + 4096, 4096)) == {0xA5}


def _write_all(rig: Rig, nbytes: int, io: object) -> None:
    rig.write(0, data(nbytes), io=io)
