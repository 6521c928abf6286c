"""The backend says what it is."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gdsfw.backend import HOOK_VERSION, BackendInfo, Check, Device
from gdsfw.errors import Domain
from gdsfw.host import Host
from gdsfw.testing.capabilities import CAPABILITIES

if TYPE_CHECKING:
    from gdsfw.testing.subject import Subject

PROBE_SECONDS = 5.0


class TestHooks:
    """Description, options, devices and errors: what can be asked without opening anything."""

    def test_it_describes_itself(self, subject: Subject) -> None:
        info = subject.info
        assert isinstance(info, BackendInfo)
        assert info.name == subject.name
        assert info.hook_version == HOOK_VERSION
        assert info.title.strip()
        assert info.version.strip()
        assert info.memory

    def test_it_says_the_same_every_time(self, subject: Subject) -> None:
        assert subject.plugins.plugins()[subject.name].module.gdsfw_backend() == subject.info

    def test_its_paths_have_names_of_their_own_and_move_something(self, subject: Subject) -> None:
        paths = subject.info.io_paths
        assert paths
        assert len({path.name for path in paths}) == len(paths)
        assert all(path.reads or path.writes for path in paths)
        assert all(path.max_iodepth >= 0 for path in paths)

    def test_its_capabilities_are_words_that_gdsfw_knows(self, subject: Subject) -> None:
        assert subject.info.capabilities <= set(CAPABILITIES)

    def test_its_options_are_described_and_have_defaults(self, subject: Subject) -> None:
        assert subject.plugins.validate_options(subject.name, {}) is None or subject.info.options is not None
        fields: Any = subject.info.options.model_fields if subject.info.options is not None else {}
        assert [name for name, field in fields.items() if not field.description] == []

    def test_its_devices_are_numbered_once(self, subject: Subject) -> None:
        devices = subject.hooks.gdsfw_devices()
        assert all(isinstance(device, Device) for device in devices)
        assert len({device.ordinal for device in devices}) == len(devices)
        assert not devices or "devices" in subject.info.capabilities

    def test_every_error_code_has_a_name_and_a_text(self, subject: Subject) -> None:
        codes = [(Domain.ERRNO, 5), (Domain.ERRNO, 22), (Domain.GPU, 1), (Domain.FILE, 5001), (Domain.FILE, 987654)]
        for domain, code in codes:
            info = subject.plugins.explain_error(subject.name, domain, code)
            assert info.name.strip(), (domain, code)
            assert info.text.strip(), (domain, code)
            assert "gdsfw_error" not in info.cause, info.cause


class TestProbe:
    """`gdsfw doctor` and `gdsfw backends` ask every backend, on every machine."""

    def test_it_answers_within_five_seconds(self, subject: Subject) -> None:
        for place in (subject.directory, Path("/nonexistent/folder")):
            for check in _probe(subject, place, Host()):
                assert isinstance(check, Check)
                assert check.name
                assert check.seen or check.state == "unknown", check

    def test_what_does_not_work_is_explained(self, subject: Subject) -> None:
        for check in _probe(subject, subject.directory, Host()):
            if check.state in ("fail", "warn"):
                assert check.meaning or check.fix, f"{check.name}: neither what it means nor how to fix it"

    def test_a_recorded_machine_with_nothing_on_it_is_no_error(self, subject: Subject, tmp_path: Path) -> None:
        _probe(subject, Path("/data"), Host(tmp_path, live=False))


def _probe(subject: Subject, directory: Path, host: Host) -> list[Check]:
    """The probe's answer, from a thread of its own, so that one that hangs fails and does not hang the tests."""
    found: list[Check] = []
    failed: list[BaseException] = []

    def ask() -> None:
        try:
            found.extend(subject.hooks.gdsfw_probe(options=subject.options, directory=directory, host=host))
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(PROBE_SECONDS)
    assert not thread.is_alive(), f"gdsfw_probe has not answered within {PROBE_SECONDS:.0f} s"
    assert failed == [], f"gdsfw_probe raised {failed[0]!r}"
    return found
