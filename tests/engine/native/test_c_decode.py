from __future__ import annotations

import ctypes as c
import errno

import pytest
from gdsfw.errors import Domain

TWINS = 5000  # first error code of the known file libraries


@pytest.mark.parametrize(
    ("r", "error", "base", "domain", "code"),
    [
        (0, 5, TWINS, Domain.NONE, 0),
        (4096, 0, TWINS, Domain.NONE, 0),
        (2**63 - 1, 0, 0, Domain.NONE, 0),
        (-1, 0, TWINS, Domain.GPU, 1),
        (-1, 0, 0, Domain.GPU, 1),
        (-1, errno.EIO, TWINS, Domain.ERRNO, errno.EIO),
        (-1, 4999, TWINS, Domain.ERRNO, 4999),
        (-1, 5000, TWINS, Domain.FILE, 5000),
        (-1, 5027, TWINS, Domain.FILE, 5027),
        (-1, 5027, 0, Domain.ERRNO, 5027),
        (-2, 0, TWINS, Domain.GPU, 2),
        (-2, errno.EIO, TWINS, Domain.GPU, 2),
        (-4999, 0, TWINS, Domain.GPU, 4999),
        (-5000, 0, TWINS, Domain.FILE, 5000),
        (-5022, errno.EIO, TWINS, Domain.FILE, 5022),
        (-5022, 0, 0, Domain.GPU, 5022),
        (-(2**63), 0, TWINS, Domain.FILE, 2**63 - 1),
    ],
)
def test_result_of_a_call_names_who_speaks_and_the_code(
    library: c.CDLL, r: int, error: int, base: int, domain: Domain, code: int
) -> None:
    verdict = library.gdsfw_decode(r, error, base)
    assert (Domain(verdict.domain), verdict.code) == (domain, code)


@pytest.mark.parametrize(
    ("answer", "domain", "code"),
    [(-1, Domain.GPU, 1), (-700, Domain.GPU, 700), (-5030, Domain.FILE, 5030)],
)
def test_loop_reports_the_code_with_call_and_place(run, make_spec, scripted, answer, domain, code) -> None:  # type: ignore[no-untyped-def]
    table = scripted(lambda direction, size, offset: answer if offset == 8192 else size, file_code_base=TWINS)
    result = run(make_spec(), table.path())
    (error,) = result.errors
    assert (error.operation, error.file_index, error.file_offset, error.size) == ("read", 0, 8192, 4096)
    assert (error.domain, error.code) == (domain, code)


def test_stale_errno_of_an_earlier_call_is_not_reported(run, make_spec, scripted) -> None:  # type: ignore[no-untyped-def]
    def answer(direction: str, size: int, offset: int) -> int:
        if offset == 0:
            raise OSError(errno.EIO, "")
        c.set_errno(0)
        return -1

    result = run(make_spec(error_limit=1), scripted(answer).path())
    assert [(e.domain, e.code) for e in result.errors] == [(Domain.ERRNO, errno.EIO), (Domain.GPU, 1)]
