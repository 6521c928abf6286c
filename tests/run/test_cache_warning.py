"""Reads that memory may have answered are told."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.running import Gdsfw

JOB: dict[str, Any] = {"name": "r", "rw": "read", "size": "1MiB", "block_size": "64KiB"}


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"direct": False, "loops": 3}, "what was read again may have come from the page cache"),
        ({"direct": False, "invalidate": False}, "the data was in memory already"),
        ({"direct": False}, None),  # once, and known to be cold
    ],
)
def test_a_buffered_read_that_memory_may_have_answered_is_a_warning(
    gdsfw: Gdsfw, keys: dict[str, Any], words: str | None
) -> None:
    gdsfw.run({**JOB, "direct": False})  # lays out and leaves it in memory
    ended = gdsfw.run({**JOB, **keys})
    (job,) = ended.jobs
    if words is not None and job["transport"]["cache"] == "warm" and keys.get("invalidate", True):
        pytest.skip("the file system lives in memory")
    told = [text for text in job["warnings"] if "page cache" in text]
    assert (len(told), words is None or words in told[0]) == (int(words is not None), True), job["transport"]
    assert all(" ".join(text.split()) in " ".join(ended.stdout.split()) for text in told)


def test_direct_reads_warn_of_nothing(gdsfw: Gdsfw) -> None:
    (job,) = gdsfw.run({**JOB, "loops": 3}).jobs
    if job["transport"]["cache"] != "bypassed":
        pytest.skip("no direct I/O here")
    assert not job["warnings"]
