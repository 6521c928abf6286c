"""What `gdsfw run` gives out, in which form and where; the comparison of several backends."""

from __future__ import annotations

import csv
import json
from io import StringIO
from pathlib import Path

import pytest
from helpers.site import Site

WORKLOAD = """
defaults: {directory: data, size: 256KiB, block_size: 64KiB, backend: noop}
jobs:
  - {name: w, rw: write}
  - {name: r, rw: read, files_from: w, repeat: 2, sweep: {block_size: [4k, 64k]}}
"""


@pytest.fixture
def workload(site: Site) -> str:
    (site.folder / "w.yaml").write_text(WORKLOAD)
    return "w.yaml"


def kept(site: Site) -> list[Path]:
    return list((site.folder / "gdsfw-results").glob("*.json"))


def test_without_a_form_a_table_is_shown_and_the_document_kept(site: Site, workload: str) -> None:
    done = site.run("run", workload)
    assert "bandwidth" in done.stdout
    (document,) = kept(site)
    assert f"result: gdsfw-results/{document.name}" in done.stdout


def test_csv_goes_to_stdout_alone_and_the_document_is_kept(site: Site, workload: str) -> None:
    done = site.run("run", workload, "-f", "csv")
    rows = list(csv.DictReader(StringIO(done.stdout)))
    assert [row["job"] for row in rows] == ["w", "r", "r", "r", "r"]
    (document,) = kept(site)
    assert f"result: gdsfw-results/{document.name}" in done.stderr


def test_a_form_goes_to_the_output_file(site: Site, workload: str) -> None:
    done = site.run("run", workload, "-f", "fio-json", "-o", "fio.json")
    assert json.loads((site.folder / "fio.json").read_text())["jobs"][0]["jobname"] == "w"
    assert "report: fio.json" in done.stdout
    assert "bandwidth" in done.stdout
    assert len(kept(site)) == 1


def test_json_is_the_document_itself_and_kept_nowhere_else(site: Site, workload: str) -> None:
    for arguments in (["-f", "json"], ["--json"], ["-o", "-"]):
        assert json.loads(site.run("run", workload, *arguments).stdout)["schema"] == "gdsfw-results/1"
    assert kept(site) == []


def test_report_makes_the_same_forms_of_a_kept_result(site: Site, workload: str) -> None:
    shown = site.run("run", workload, "-f", "csv").stdout
    document = f"gdsfw-results/{kept(site)[0].name}"
    assert site.run("report", document, "-f", "csv", "-o", "-").stdout == shown
    assert "bandwidth" in site.run("report", document, "-f", "table").stdout
    assert json.loads(site.run("report", document, "-f", "json").stdout)["schema"] == "gdsfw-results/1"


def test_forms_that_contradict_each_other_are_refused(site: Site, workload: str) -> None:
    assert "--json and -f csv contradict" in site.run("run", workload, "--json", "-f", "csv", code=2).stderr
    assert "--plan has no form html" in site.run("run", workload, "--plan", "-f", "html", code=2).stderr
    assert "stages" in json.loads(site.run("run", workload, "--plan", "-f", "json").stdout)


def test_an_output_that_cannot_be_written_is_told_before_the_run(site: Site, workload: str) -> None:
    assert "there is no folder nowhere" in site.run("run", workload, "-f", "csv", "-o", "nowhere/x", code=2).stderr
    assert kept(site) == []


def test_several_backends_are_compared_at_the_end(site: Site, workload: str) -> None:
    done = site.run("run", workload, "--backend", "posix", "--backend", "noop")
    lines = [line.split() for line in done.stdout.splitlines()]
    heading = next(index for index, words in enumerate(lines) if words[:3] == ["job", "backend", "IOPS"])
    rows = [words for words in lines[heading + 2 :] if words]
    assert [words[0] for words in rows[:6]] == ["w", "noop", "r", "noop", "r", "noop"]
    assert rows[0][1:3] == ["write", "posix"]
    assert all("x" in words for words in (rows[1], rows[3], rows[5]))
    assert "comparison: noop: another transport: host against none" in done.stdout


def test_the_comparison_is_for_people(site: Site, workload: str) -> None:
    both = ("--backend", "posix", "--backend", "noop")
    assert site.run("run", workload, *both, "-q").stdout == ""
    assert len(json.loads(site.run("run", workload, *both, "--json").stdout)["jobs"]) == 10
    assert "comparison" not in site.run("run", workload, "--backend", "noop", "--backend", "noop").stdout


def test_a_backend_on_the_command_line_names_the_points_of_a_sweep_over_backends(site: Site) -> None:
    (site.folder / "s.yaml").write_text(
        "jobs: [{name: w, rw: write, size: 4k, directory: data, sweep: {backend: [noop, posix]}}]"
    )
    done = site.run("run", "s.yaml", "--backend", "posix", "--backend", "noop", "--json")
    jobs = json.loads(done.stdout)["jobs"]
    assert [(job["point"]["backend"], job["backend"]) for job in jobs] == [("posix",) * 2] * 2 + [("noop",) * 2] * 2
