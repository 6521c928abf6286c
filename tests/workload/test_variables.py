from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from gdsfw.errors import WorkloadError
from gdsfw.workload.loader import load_text

if TYPE_CHECKING:
    from gdsfw.workload.model import Job


def job(line: str, **environ: str) -> Job:
    return load_text(f"jobs:\n  - name: a\n    {line}\n", "w.yaml", environ=environ).jobs[0]


def problem(line: str, **environ: str) -> str:
    with pytest.raises(WorkloadError) as caught:
        job(line, **environ)
    assert len(caught.value.problems) == 1
    return str(caught.value)


def test_variables_expand_inside_text() -> None:
    assert job("directory: /mnt/${HOST}/x", HOST="n1").directory == "/mnt/n1/x"


def test_an_unquoted_variable_may_stand_for_a_number_or_a_size() -> None:
    assert job("iodepth: ${DEPTH}", DEPTH="32").iodepth == 32
    assert job("size: ${SIZE}", SIZE="1GiB").size == 2**30
    assert job("direct: ${DIRECT}", DIRECT="true").direct == "true"


def test_a_default_is_used_for_an_unset_or_empty_variable() -> None:
    assert job("directory: ${DIR:-./data}").directory == "./data"
    assert job("directory: ${DIR:-./data}", DIR="").directory == "./data"
    assert job("directory: ${DIR:-./data}", DIR="/mnt").directory == "/mnt"


def test_a_doubled_dollar_gives_a_plain_reference() -> None:
    assert job("directory: a$${HOME}b", HOME="x").directory == "a${HOME}b"


def test_an_unset_variable_is_named_with_its_place_and_nothing_else_is_said_of_the_value() -> None:
    message = problem("iodepth: ${DEPTH}")
    assert message == "w.yaml:3:14: variable DEPTH is not set (set it, or write ${DEPTH:-default})"


def test_an_empty_variable_does_not_silently_mean_the_default() -> None:
    assert "filename: is empty text" in problem("filename: ${TARGET}", TARGET="")


def test_a_wrong_value_says_which_variable_it_came_from() -> None:
    assert problem("iodepth: ${DEPTH}", DEPTH="deep") == (
        "w.yaml:3:14: iodepth: 'deep' is no whole number (`${DEPTH}` is 'deep')"
    )


def test_a_variable_cannot_add_keys() -> None:
    assert job("directory: ${DIR}", DIR="x\n    rw: write").directory == "x\n    rw: write"


@pytest.mark.parametrize("text", ["${}", "${A B}", "${A:=x}", "${1A}"])
def test_what_names_no_variable_says_what_is_valid(text: str) -> None:
    assert "names no variable (valid: ${NAME}, ${NAME:-default}" in problem(f"directory: '{text}'")


def test_an_unclosed_reference_is_told() -> None:
    assert "is not closed" in problem("directory: '${HOME'", HOME="x")


def test_variables_work_in_lists_sweeps_and_defaults() -> None:
    text = "defaults: {size: '${SIZE}'}\njobs: [{name: a, sweep: {iodepth: [1, '${DEPTH}']}, cpus: ['${CPU}']}]\n"
    with pytest.raises(WorkloadError, match="quotes"):  # quoted, hence text
        load_text(text, environ={"SIZE": "1k", "DEPTH": "8", "CPU": "0"})
    block = (
        "defaults:\n  size: ${SIZE}\njobs:\n  - name: a\n    sweep:\n      iodepth:\n        - 1\n        - ${DEPTH}\n"
    )
    workload = load_text(block, environ={"SIZE": "1k", "DEPTH": "8"})
    assert [point.job.iodepth for point in workload.points[0]] == [1, 8]
    assert workload.jobs[0].size == 1024
