"""Every recorded or composed machine gets its verdict and its first blocker."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
from doctor.trees import MACHINES, expand, load

PAGES = Path(__file__).parents[2] / "docs" / "doctor"


def doctor(*arguments: str, code: int, **options: Any) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "gdsfw", "doctor", "--json", *arguments],
        capture_output=True, text=True, timeout=60, check=False, **options,
    )  # fmt: skip
    assert done.returncode == code, done.stderr or done.stdout
    return json.loads(done.stdout) if code in (0, 3) else done.stderr


def page(check: str) -> Path:
    """Checks that GPU backends share have one page."""
    shared = PAGES / f"gpu.{check.partition('.')[2]}.md"
    return shared if shared.exists() else PAGES / f"{check}.md"


def every_check(report: Any) -> list[Any]:
    return [*report["machine"], *(check for one in report["backends"] for check in one["checks"])]


@pytest.mark.parametrize("name", MACHINES)
def test_a_machine_gets_its_verdict_and_its_first_blocker(name: str, tmp_path: Path) -> None:
    machine = load(name)
    expand(machine, tmp_path)
    expected = machine["expect"]
    report = doctor("--root", str(tmp_path), code=0 if expected["direct"] else 3)
    assert [one["name"] for one in report["backends"] if one["direct"]] == expected["direct"]
    first = report["blockers"][0]["id"] if report["blockers"] else None
    assert first == expected["first"]
    assert report["hung"] == []
    for check in every_check(report):
        assert page(check["id"]).exists(), check["id"]


def test_every_machine_says_where_it_comes_from() -> None:
    assert len(MACHINES) >= 12
    assert all(load(name)["origin"].startswith(("composed", "recorded")) for name in MACHINES)


def test_this_machine_is_proven_and_nothing_is_left_behind(tmp_path: Path) -> None:
    report = doctor("--directory", str(tmp_path), "--backend", "posix", code=3)
    (posix,) = report["backends"]
    assert posix["proof"]
    assert all(one["ok"] for one in posix["proof"])
    assert report["blockers"]
    assert list(tmp_path.iterdir()) == []
    for check in every_check(report):
        assert page(check["id"]).exists(), check["id"]


def test_a_recording_says_the_same_and_names_nobody(tmp_path: Path) -> None:
    data, tree = tmp_path / "data", tmp_path / "tree"
    data.mkdir()
    tree.mkdir()
    live = doctor("--directory", str(data), "--no-io", "--record", str(tmp_path / "out.tar"), code=3)
    with tarfile.open(tmp_path / "out.tar") as tar:
        tar.extractall(tree, filter="fully_trusted")
        assert {(entry.uid, entry.uname, entry.mtime) for entry in tar.getmembers()} == {(0, "", 0)}
    again = doctor("--root", str(tree), code=3)
    stable = {"volume.filesystem", "volume.block_stack", "volume.udev", "limits.nofile"}
    seen = [{c["id"]: c["state"] for c in every_check(one) if c["id"] in stable} for one in (live, again)]
    assert seen[0] == seen[1]


def test_a_recording_overwrites_nothing(tmp_path: Path) -> None:
    mine = tmp_path / "mine.tar"
    mine.write_text("mine")
    assert "not overwritten" in doctor("--no-io", "--record", str(mine), code=4)
    assert mine.read_text() == "mine"


def test_wrong_options_end_with_2(tmp_path: Path) -> None:
    assert "is no directory" in doctor("--directory", str(tmp_path / "absent"), code=2)
    doctor("--root", str(tmp_path), "--record", str(tmp_path / "x"), code=2)
