"""What the tests share."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from gdsfw.errors import GdsfwError

if TYPE_CHECKING:
    from gdsfw.testing.subject import Rig, Subject

#: How a backend says that something failed; anything else is a defect of it.
FAILURES = (OSError, GdsfwError)
#: 1 byte to 16 MiB, at and beside sectors and pages.
SIZES = (1, 511, 512, 4095, 4096, 4097, 65536, (1 << 20) + 1, 16 << 20)


def data(size: int, seed: int = 1) -> bytes:
    """Bytes that differ from place to place."""
    return random.Random(seed).randbytes(size)


def same(found: bytes, expected: bytes, what: object = "") -> None:
    """Fail unless the bytes are equal; the message says where they part.

    A bare comparison of megabytes is no option: where the environment has CI set, pytest works out
    the whole difference, for hours.
    """
    if found == expected:
        return
    common = min(len(found), len(expected))
    at = next((place for place in range(common) if found[place] != expected[place]), common)
    where = f"{what}: " if what else ""
    if at == common:
        pytest.fail(f"{where}{len(found)} bytes instead of {len(expected)}")
    got, wanted = found[at : at + 16].hex(" "), expected[at : at + 16].hex(" ")
    pytest.fail(f"{where}of {common} bytes, those at {at} are the first that differ: {got} instead of {wanted}")


def note(*what: object) -> None:
    """Say what is being tried: tests go over paths inside, so that all backends have the same tests.

    Pytest shows the output of a test that fails; its last line is what failed.
    """
    print("trying", *what)


def each_way(subject: Subject, rw: Any = "readwrite", **how: Any) -> Iterator[tuple[Rig, str, Any]]:
    """A fresh rig and file for every path, with every way to call it: (rig, driver, calls).

    Args:
        how: as in Subject.job.
    """
    for path in subject.paths(rw):
        with subject.rig(io_path=path, names=[f"{path}-{rw}"], **how) as rig:
            for driver, io in rig.calls.items():
                note("path", path, "called as", driver)
                yield rig, driver, io


@contextmanager
def fails() -> Iterator[pytest.ExceptionInfo[BaseException]]:
    """What is inside fails, in a way that the user is told."""
    with pytest.raises(FAILURES) as caught:
        yield caught
    assert str(caught.value), f"{type(caught.value).__name__} without a text"
