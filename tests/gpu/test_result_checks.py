"""What a result keeps of the machine, and the line that names the first blocker of a GPU job that was not direct."""

from __future__ import annotations

from typing import Any

from fakes.driving import OnStandin, said
from helpers.running import Ended


def kept(ended: Ended) -> dict[str, list[dict[str, Any]]]:
    assert ended.result is not None
    return dict(ended.result["checks"])


def test_a_job_that_bounced_names_its_first_blocker(on: OnStandin) -> None:
    ended = on.run({"name": "w", "rw": "write", "io_path": "staged"})
    checks = {check["id"]: check for check in kept(ended)[on.backend]}
    assert {"volume.filesystem", f"{on.backend}.driver", f"{on.backend}.filesystem"} <= set(checks)
    blockers = [check for check in checks.values() if check["state"] == "fail"]
    assert blockers
    text = said(ended)
    assert f"{on.backend} was not direct: " in text
    assert any(f"{check['name']}: " in text for check in blockers)
    assert "gdsfw doctor says more" in text


def test_what_asks_a_driver_is_not_in_a_result(on: OnStandin) -> None:
    ended = on.run({"name": "w", "rw": "write", "io_path": "staged"})
    checks = kept(ended)[on.backend]
    assert f"{on.backend}.attributes" not in {check["id"] for check in checks}


def test_a_backend_without_devices_has_no_checks_and_no_note(on: OnStandin) -> None:
    ended = on.run({"name": "w", "rw": "write", "backend": "posix"})
    assert kept(ended) == {}
    assert "was not direct" not in said(ended)
