"""A result as HTML, as CSV and in the shape of fio's JSON."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from gdsfw.results.fio_json import fio_json
from gdsfw.results.html import html_report
from gdsfw.results.load import Results
from gdsfw.results.model import RunResult

Document = dict[str, Any]


def test_fio_json_has_the_figures_of_the_result_in_the_units_of_fio(document: Document) -> None:
    written = fio_json(RunResult.from_json(document))
    for job, ours in zip(written["jobs"], document["jobs"], strict=True):
        for name in ("read", "write"):
            side = ours[name]
            if side is None:
                assert job[name]["total_ios"] == 0
                continue
            assert job[name]["total_ios"] == side["ios"]
            assert job[name]["io_bytes"] == side["bytes"]
            assert job[name]["bw"] == int(side["bw_bytes"] / 1024)
            assert job[name]["iops"] == side["iops"]
            assert job[name]["runtime"] == side["runtime_ns"] // 10**6
            if side["ios"]:
                assert job[name]["clat_ns"]["N"] == side["ios"]
                assert job[name]["clat_ns"]["percentile"]["99.900000"] == side["clat_ns"]["percentiles"]["99.9"]
                assert job[name]["iops_min"] <= job[name]["iops_mean"] <= job[name]["iops_max"] + 1


def test_shares_of_latencies_and_depths_add_up_to_all_ios(document: Document) -> None:
    for job in fio_json(RunResult.from_json(document))["jobs"]:
        shares = [*job["latency_ns"].values(), *job["latency_us"].values(), *job["latency_ms"].values()]
        assert sum(shares) == pytest.approx(100)
        assert sum(job["iodepth_level"].values()) == pytest.approx(100)


def test_a_latency_is_in_the_class_that_its_value_belongs_to(document: Document) -> None:
    job = document["jobs"][-1]
    job["read"]["histogram"] = {
        "count": 4,
        "total_ns": 7_000_112,
        "min_ns": 2,
        "max_ns": 7_000_000,
        "sum_sq": 1,
        "buckets": [[2, 1], [3, 1], [100, 1], [0, 1]],
    }
    job["write"] = None
    shares = fio_json(RunResult.from_json(document))["jobs"][-1]["latency_ns"]
    assert {key: share for key, share in shares.items() if share} == {"2": 50.0, "4": 25.0, "100": 25.0}


def test_a_run_without_any_io_is_still_a_document_of_numbers(document: Document) -> None:
    for job in document["jobs"]:
        job.update(read=None, write=None, cpu=None, timeline=None, workers=[], total_ios=0)
        job["depth"]["histogram"] = []
    text = json.dumps(fio_json(RunResult.from_json(document)), allow_nan=False)
    assert json.loads(text)["jobs"][0]["read"]["iops"] == 0


def test_fio_plot_reads_and_draws_it(write: Any, command: Any, tmp_path: Path) -> None:
    """Where fio-plot of the test group is not installed, nothing is drawn."""
    pytest.importorskip("fio_plot", reason="fio-plot is not installed")
    folder = tmp_path / "runs"
    folder.mkdir()
    for depth in (1, 2):
        one = write(f"{depth}.json", lambda d, depth=depth: d.update(jobs=d["jobs"][depth - 1 : depth]))
        assert command("report", one, "-f", "fio-json", "-o", folder / f"{depth}.json").returncode == 0
    chart = ["-i", folder, "-T", "chart", "-r", "randrw", "-l", "-d", "1", "2", "-n", "2", "-f", "read"]
    done = subprocess.run(
        [sys.executable, "-m", "fio_plot", *map(str, chart), "-o", str(tmp_path / "chart.png")],
        cwd=tmp_path,
        env={**os.environ, "MPLCONFIGDIR": str(tmp_path / "matplotlib")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG")


def test_csv_has_a_row_for_each_job_and_direction(write: Any, command: Any, document: Document) -> None:
    done = command("report", write("a.json"), "-f", "csv", "-o", "-")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    sides = [job[name] for job in document["jobs"] for name in ("read", "write") if job[name]]
    assert [(float(row["iops"]), int(row["bytes"])) for row in rows] == [(s["iops"], s["bytes"]) for s in sides]
    assert {row["point.iodepth"] for row in rows} == {"1", "2", ""}


class Page(HTMLParser):
    """Tags that are open, and everything a page would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.fetched: list[str] = []
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.fetched += [str(value) for name, value in attrs if name in ("src", "href")]
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("path",):
            return
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)


def test_the_page_is_whole_and_fetches_nothing(document: Document) -> None:
    text = html_report(RunResult.from_json(document))
    page = Page()
    page.feed(text)
    assert page.open == []
    assert page.fetched == []
    assert "polyline" in page.seen
    assert "script" not in page.seen
    assert not re.search(r"url\(|@import|https?://", text)
    assert all(job["label"] in text for job in document["jobs"])


def test_text_from_a_workload_cannot_become_markup(document: Document) -> None:
    document["source"] = document["workload"] = "<script>x</script>"
    for job in document["jobs"]:
        job.update(label="<b>&", warnings=["<i>"], notes=["<u>"], status="done")
    page = Page()
    page.feed(html_report(RunResult.from_json(document)))
    assert not {"script", "b", "i", "u"} & set(page.seen)


@pytest.mark.parametrize(("form", "name"), [("html", "a.html"), ("csv", "a.csv"), ("fio-json", "a.fio.json")])
def test_a_report_lies_beside_its_result_and_replaces_nothing(write: Any, command: Any, form: str, name: str) -> None:
    result = write("a.json")
    place = result.parent / name
    assert command("report", result, "-f", form).returncode == 0
    place.write_text("mine")
    again = command("report", result, "-f", form)
    assert again.returncode == 2
    assert "exists" in again.stderr
    assert place.read_text() == "mine"
    assert command("report", result, "-f", form, "--force").returncode == 0
    assert place.read_text() != "mine"


def test_a_report_never_replaces_a_result(write: Any, command: Any) -> None:
    result = write("a.json")
    assert command("report", result, "-f", "fio-json", "-o", result).returncode == 2
    Results.load(result)


def test_a_place_that_cannot_be_written_to_is_named(write: Any, command: Any) -> None:
    done = command("report", write("a.json"), "-o", "absent/a.html")
    assert done.returncode == 3
    assert "absent/a.html: No such file or directory" in done.stderr
