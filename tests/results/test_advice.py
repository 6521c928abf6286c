"""Which I/O path: what a table advises after jobs that swept over io_path."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Change = Callable[[dict[str, Any]], None]


def swept(*points: dict[str, Any]) -> Change:
    """The document's first job, once for each of these: path, iops, cost, and whatever else is to differ."""

    def change(document: dict[str, Any]) -> None:
        (model,) = [job for job in document["jobs"] if job["read"] and job["read"]["ios"]][:1]
        document["jobs"] = []
        for point in points:
            job = copy.deepcopy(model)
            job["point"] = {"io_path": point["path"], **point.get("point", {})}
            job["repetition"] = point.get("repetition", 0)
            job["write"] = None
            job["read"] |= {"iops": point["iops"], "bw_bytes": point["iops"] * 4096.0}
            job["cpu"]["seconds_per_gib"] = point.get("cost")
            job["transport"] |= point.get("transport", {})
            document["jobs"].append(job)

    return change


@pytest.fixture
def advised(write: Callable[..., Path], command: Callable[..., Any]) -> Callable[..., list[str]]:
    """The advice on a result with these sweep points."""

    def lines(*points: dict[str, Any]) -> list[str]:
        ended = command("report", "-f", "table", write("swept.json", swept(*points)))
        assert ended.returncode == 0, ended.stderr
        return [line.split(": ", 2)[2] for line in ended.stdout.splitlines() if line.startswith("which io_path: ")]

    return lines


def test_the_fastest_is_advised_with_the_others_beside_it(advised: Callable[..., list[str]]) -> None:
    (line,) = advised({"path": "a", "iops": 1000.0, "cost": 2.0}, {"path": "b", "iops": 4000.0, "cost": 0.5})
    assert line == "b, 4,000 IOPS, 15.62 MiB/s (0.5 CPU s/GiB); a 0.25 x (2 CPU s/GiB)"


def test_of_those_as_fast_the_cheapest_is_advised(advised: Callable[..., list[str]]) -> None:
    (line,) = advised({"path": "a", "iops": 1000.0, "cost": 2.0}, {"path": "b", "iops": 960.0, "cost": 0.5})
    assert line.startswith("b, 960 IOPS")
    (line,) = advised({"path": "a", "iops": 1000.0, "cost": 2.0}, {"path": "b", "iops": 940.0, "cost": 0.5})
    assert line.startswith("a, 1,000 IOPS")


def test_each_other_sweep_point_has_its_own_line(advised: Callable[..., list[str]]) -> None:
    points = [
        {"path": path, "iops": 1000.0 * depth if path == "b" else 3000.0, "point": {"iodepth": str(depth)}}
        for depth in (1, 32)
        for path in ("a", "b")
    ]
    assert [line.split(",")[0] for line in advised(*points)] == ["a", "b"]


def test_paths_that_did_not_measure_are_named_and_one_alone_is_no_choice(advised: Callable[..., list[str]]) -> None:
    (line,) = advised({"path": "a", "iops": 9.0}, {"path": "b", "iops": 5.0}, {"path": "c", "iops": 0.0})
    assert line.endswith("b 0.56 x; not measured: c")
    assert advised({"path": "a", "iops": 9.0}, {"path": "c", "iops": 0.0}) == []


def test_repetitions_count_once(advised: Callable[..., list[str]]) -> None:
    twice = [{"path": path, "iops": 9.0, "repetition": number} for number in (0, 1) for path in ("a", "b")]
    assert len(advised(*twice)) == 1


def test_data_that_is_read_once_may_be_better_off_elsewhere(advised: Callable[..., list[str]]) -> None:
    slow_start = {"setup_seconds": 0.5, "bw_bytes_with_setup": 4096.0 * 700}
    fast, other = {"path": "m", "iops": 1000.0, "transport": slow_start}, {"path": "s", "iops": 800.0}
    (line,) = advised(fast, other)
    assert line.endswith("; registering took 0.5 s: for data that is read for a shorter time, s")
    (line,) = advised(fast, other | {"iops": 600.0})
    assert "registering" not in line
