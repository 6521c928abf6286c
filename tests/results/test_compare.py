"""Comparing results: what changed, and what may not be compared."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from gdsfw.errors import UsageError
from gdsfw.results.compare import PHASE_SETTINGS, Gate, compare
from gdsfw.results.load import Results

Document = dict[str, Any]


def each(document: Document, change: Callable[[Document], None]) -> None:
    for job in document["jobs"]:
        change(job)


def halve_reads(document: Document) -> None:
    for job in document["jobs"]:
        job["read"]["iops"] /= 2


def test_a_result_beside_itself_has_the_ratio_one_everywhere(write: Any) -> None:
    path = write("a.json")
    found = compare([Results.load(path), Results.load(path)])
    assert {row.ratio for row in found.rows if row.base.value} == {1.0}
    assert found.warnings == found.missing == []
    assert {row.job for row in found.rows} == {"mixed [iodepth=1]", "mixed [iodepth=2]", "timed"}


def test_repeats_are_one_figure_with_their_spread(write: Any, document: Document) -> None:
    path = write("a.json")
    found = compare([Results.load(path), Results.load(path)])
    (row,) = [r for r in found.rows if (r.job, r.direction, r.metric) == ("mixed [iodepth=1]", "write", "iops")]
    values = [j["write"]["iops"] for j in document["jobs"] if j["name"] == "mixed" and j["point"] == {"iodepth": "1"}]
    assert row.base.runs == len(values) == 2
    assert row.base.value == median(values)
    assert row.base.spread == pytest.approx((max(values) - min(values)) / median(values))


def test_a_single_run_has_no_spread(write: Any) -> None:
    path = write("a.json")
    rows = [row for row in compare([Results.load(path), Results.load(path)]).rows if row.job == "timed"]
    assert rows
    assert {row.base.spread for row in rows} == {None}


@pytest.mark.parametrize("setting", PHASE_SETTINGS)
def test_jobs_that_measure_another_phase_are_not_compared(write: Any, setting: str) -> None:
    other = write("b.json", lambda d: each(d, lambda job: job["job"].update({setting: "other"})))
    with pytest.raises(UsageError, match=f"{setting}: .* and other"):
        compare([Results.load(write("a.json")), Results.load(other)])


def test_results_without_a_common_job_are_not_compared(write: Any) -> None:
    other = write("b.json", lambda d: each(d, lambda job: job.update(name="another")))
    with pytest.raises(UsageError, match="no job in common"):
        compare([Results.load(write("a.json")), Results.load(other)])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda job: job["transport"].update(kind="elsewhere"), "another transport: host against elsewhere"),
        (lambda job: job["transport"].update(cache="warmer"), "another cache state"),
        (lambda job: job.update(loop="python"), "another loop: native against python"),
        (lambda job: job.update(instrumented=["tracer"]), "instrumented in .*b.json by tracer"),
    ],
)
def test_what_makes_a_comparison_unfair_is_said(write: Any, change: Any, words: str) -> None:
    other = write("b.json", lambda d: each(d, change))
    found = compare([Results.load(write("a.json")), Results.load(other)])
    assert any(re.search(words, warning) for warning in found.warnings), found.warnings


@pytest.mark.parametrize(
    ("gate", "code"),
    [("iops:-5%", 1), ("iops:-50.1%", 0), ("iops:+0%", 0), ("bw:-0%", 0), ("lat_p99:+10%", 0)],
)
def test_a_gate_fails_the_command_beyond_its_limit(write: Any, command: Any, gate: str, code: int) -> None:
    done = command("compare", write("a.json"), write("b.json", halve_reads), "--gate", gate)
    assert done.returncode == code, done.stderr
    assert ("iops -50.0 %, limit -5 %" in done.stderr) == bool(code)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["jobs"].pop(),
        lambda d: d["jobs"][-1].update(status="interrupted"),
        lambda d: d["jobs"][-1].update(read=None),
        lambda d: d["jobs"][-1]["read"].update(lat_ns=None, clat_ns=None),
    ],
    ids=["job", "part", "direction", "latency"],
)
def test_nothing_passes_a_gate_by_being_absent(write: Any, command: Any, change: Any) -> None:
    done = command("compare", write("a.json"), write("b.json", change), "--gate", "lat_p99:+100%")
    assert done.returncode == 1
    assert "timed" in done.stderr


@pytest.mark.parametrize("text", ["iops", "iops:5%", "iops:-5", "iops:-x%", ":-5%", ""])
def test_a_gate_that_is_no_gate_is_explained(text: str) -> None:
    with pytest.raises(UsageError, match="not METRIC:CHANGE"):
        Gate.parse(text)


def test_a_gate_on_an_unknown_metric_names_those_there_are(write: Any, command: Any) -> None:
    done = command("compare", write("a.json"), write("b.json"), "--gate", "speed:-5%")
    assert done.returncode == 2
    assert "bw, iops, lat_max" in done.stderr


def test_json_is_one_document_on_stdout(write: Any, command: Any) -> None:
    done = command("compare", write("a.json"), write("b.json", halve_reads), "--json")
    assert done.returncode == 0
    rows = json.loads(done.stdout)["rows"]
    assert {row["ratio"] for row in rows if (row["direction"], row["metric"]) == ("read", "iops")} == {0.5}


def test_the_table_shows_job_point_and_change(write: Any, command: Any) -> None:
    done = command("compare", write("a.json"), write("b.json", halve_reads))
    (line,) = [x for x in done.stdout.splitlines() if "iops" in x and "timed" in x]
    assert "-50.0 %" in line
    assert "mixed [iodepth=2]" in done.stdout


def test_one_result_is_too_few(write: Any, command: Any) -> None:
    done = command("compare", write("a.json"))
    assert done.returncode == 2
    assert "two results or more" in done.stderr


def test_a_file_that_is_no_result_is_named(tmp_path: Path, write: Any, command: Any) -> None:
    (tmp_path / "x.json").write_text("{}")
    done = command("compare", write("a.json"), "x.json")
    assert done.returncode == 2
    assert "x.json: not a result of gdsfw" in done.stderr
