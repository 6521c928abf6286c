"""What goes wrong is said once, with a name and a text, and the next job is not the worse for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gdsfw.engine.spec import EndedBy
from gdsfw.errors import Domain, ExitCode, GdsfwError
from gdsfw.testing.loops import run_loop
from gdsfw.testing.suite.common import data, each_way, fails, same

if TYPE_CHECKING:
    from gdsfw.testing.subject import Rig, Subject

KIB = 1024
#: Blocks of 4 KiB that are there, of those that a loop asks for.
THERE, ASKED = 4, 16


class TestErrors:
    """Errors of calls, of loops and of whole runs."""

    def test_writing_to_a_file_that_was_opened_for_reading_fails(self, subject: Subject) -> None:
        subject.need("data")
        for path in subject.paths():
            with subject.rig(io_path=path) as rig:
                rig.write(0, data(4096))
            with subject.rig(io_path=path, rw="read") as rig:
                for io in rig.calls.values():
                    rig.put(0, bytes(4096))
                    with fails():
                        io.write(rig.file, 4096, 0, 0)
                    same(rig.read(0, 4096, io=io), data(4096))

    def test_a_loop_reports_an_error_once(self, subject: Subject) -> None:
        subject.need("data")
        for rig, driver, _ in each_way(subject, nbytes=THERE * 4096, block=4096):
            _fill(rig)
            result = run_loop(rig, driver, rw="read", block=4096, nbytes=ASKED * 4096, random=False, verify=None)
            assert result.ended_by is EndedBy.ERROR
            assert result.error_count == len(result.errors) == result.read.errors == 1
            assert result.read.bytes == THERE * 4096
            (error,) = result.errors
            assert (error.operation, error.file_offset, error.size) == ("read", THERE * 4096, 4096)
            assert error.domain is not Domain.NONE
            told = subject.plugins.explain_error(subject.name, error.domain, error.code)
            assert told.name.strip()
            assert told.text.strip()

    def test_a_loop_that_goes_on_counts_every_error(self, subject: Subject) -> None:
        subject.need("data")
        for rig, driver, _ in each_way(subject, nbytes=THERE * 4096, block=4096):
            _fill(rig)
            terms = {"nbytes": ASKED * 4096, "error_limit": 1000, "verify": None}
            result = run_loop(rig, driver, rw="read", block=4096, **terms)
            assert result.ended_by is EndedBy.IO_SIZE
            assert result.error_count == len(result.errors) == ASKED - THERE
            assert result.read.bytes == THERE * 4096

    def test_after_an_error_the_path_still_works(self, subject: Subject) -> None:
        subject.need("data")
        for rig, driver, io in each_way(subject, nbytes=THERE * 4096, block=4096):
            _fill(rig)
            run_loop(rig, driver, rw="read", block=4096, nbytes=ASKED * 4096, random=False, verify=None)
            same(rig.read(4096, 4096, io=io), data(THERE * 4096)[4096:8192])

    def test_a_run_on_a_missing_file_tells_it_once(self, subject: Subject) -> None:
        subject.need("data")
        code, messages = _run_on_missing_file(subject)
        assert code in (ExitCode.USAGE, ExitCode.UNAVAILABLE)
        assert len(messages) == 1
        assert messages[0].count("absent") == 1


def _run_on_missing_file(subject: Subject) -> tuple[int, list[str]]:
    """Exit code and messages; core knows that a file is missing before anything is opened, only it can say so."""
    try:
        (job,) = subject.run({"name": "lost", "rw": "read", "filename": "absent", "size": "64KiB"})
    except GdsfwError as refusal:
        return refusal.exit_code, [refusal.message]
    return job.exit_code, [error.message for error in job.errors]


def _fill(rig: Rig) -> None:
    """The first blocks of the file, and no more."""
    for block in range(THERE):
        rig.write(block * 4096, data(THERE * 4096)[block * 4096 : (block + 1) * 4096])
