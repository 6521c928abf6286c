"""`gdsfw validate`, `gdsfw schema` and `gdsfw init`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import pytest
from gdsfw.cli import main
from gdsfw.workload import presets
from gdsfw.workload.loader import load, load_text

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


Gdsfw: TypeAlias = "Callable[..., Outcome]"


@pytest.fixture
def gdsfw(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Outcome]:
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> Outcome:
        with pytest.raises(SystemExit) as caught:
            main(list(arguments))
        captured = capsys.readouterr()
        return Outcome(int(caught.value.code or 0), captured.out, captured.err)

    return call


def test_validate_counts_jobs_and_runs(gdsfw: Gdsfw, tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text("jobs: [{name: a, sweep: {iodepth: [1, 2]}, repeat: 3}, {name: b}]")
    assert gdsfw("validate", "w.yaml") == (0, "w.yaml: valid: 2 jobs, 7 runs\n", "")


def test_validate_prints_every_mistake_to_stderr_and_exits_2(gdsfw: Gdsfw, tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text("jobs:\n  - name: a\n    bs: 0100\n    runtime: 1:30\n    iodept: 2\n    bs: 4k\n")
    outcome = gdsfw("validate", "w.yaml")
    assert (outcome.code, outcome.out) == (2, "")
    assert [line.split(": ")[0] for line in outcome.err.splitlines()] == [
        "w.yaml:3:9",
        "w.yaml:4:14",
        "w.yaml:5:5",
        "w.yaml:6:5",
    ]


def test_validate_takes_sets_and_variables(gdsfw: Gdsfw, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "w.yaml").write_text("jobs:\n  - name: a\n    size: ${SIZE}\n")
    assert gdsfw("validate", "w.yaml").err == (
        "w.yaml:3:11: variable SIZE is not set (set it, or write ${SIZE:-default})\n"
    )
    monkeypatch.setenv("SIZE", "1GiB")
    assert gdsfw("validate", "w.yaml").code == 0
    assert gdsfw("validate", "w.yaml", "--set", "iodepth=x").err == (
        "--set iodepth=x: iodepth: 'x' is no whole number\n"
    )


def test_validate_shows_the_resolved_workload_as_yaml_that_loads(gdsfw: Gdsfw, tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text("defaults: {size: 1GiB}\njobs: [{name: a, bs: 4k, direct: true}]")
    shown = gdsfw("validate", "w.yaml", "--show").out
    assert load_text(shown) == load(tmp_path / "w.yaml")


def test_validate_says_when_options_were_not_checked(gdsfw: Gdsfw, tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text("jobs: [{name: a, backend: tape, backend_options: {noop: {x: 1}}}]")
    outcome = gdsfw("validate", "w.yaml")
    assert "backend_options.noop: unknown key 'x'" in outcome.err
    (tmp_path / "w.yaml").write_text("jobs: [{name: a, backend: tape}]")
    outcome = gdsfw("validate", "w.yaml")
    assert (outcome.code, outcome.err) == (
        0,
        "note: backend 'tape' is not installed here, so its options were not checked\n",
    )


def test_schema_prints_json(gdsfw: Gdsfw) -> None:
    assert json.loads(gdsfw("schema").out)["title"] == "gdsfw workload"


def test_init_lists_presets(gdsfw: Gdsfw) -> None:
    listed = [line.split()[0] for line in gdsfw("init").out.splitlines()]
    assert listed == [
        "checkpoint-write",
        "data-loader",
        "gpu-paths",
        "kv-cache-lookup",
        "mixed",
        "random-latency",
        "sequential-bandwidth",
    ]


@pytest.mark.parametrize("name", presets.names())
def test_init_prints_a_commented_workload_that_validates(name: str, gdsfw: Gdsfw, tmp_path: Path) -> None:
    text = gdsfw("init", name).out
    assert text.startswith("# ")
    assert text.count("#") > 4
    assert gdsfw("init", name, "-o", "w.yaml").code == 0
    assert (tmp_path / "w.yaml").read_text() == text
    assert gdsfw("validate", "w.yaml").code == 0


def test_init_replaces_a_file_only_when_forced(gdsfw: Gdsfw, tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_text("mine")
    outcome = gdsfw("init", "mixed", "-o", "w.yaml")
    assert outcome.code == 2
    assert "w.yaml exists already\n  hint: --force replaces it" in outcome.err
    assert path.read_text() == "mine"
    assert gdsfw("init", "mixed", "-o", "w.yaml", "--force").code == 0
    assert path.read_text() == presets.text("mixed")


def test_init_says_why_a_file_cannot_be_written(gdsfw: Gdsfw) -> None:
    outcome = gdsfw("init", "mixed", "-o", "absent/w.yaml")
    assert (outcome.code, outcome.err) == (3, "error: absent/w.yaml cannot be written: no such file or directory\n")


def test_an_unknown_preset_lists_the_known_ones(gdsfw: Gdsfw) -> None:
    outcome = gdsfw("init", "mixd")
    assert outcome.code == 2
    assert "there is no preset 'mixd'" in outcome.err
    assert "random-latency" in outcome.err
