"""Plugins of real distributions, loaded by entry point in a process of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Protocol

BACKEND = """
from gdsfw import hookimpl
from gdsfw.backend import BackendInfo, Buffer, IOPath, IOPathInfo

class Zeros:
    def read(self, file, size, file_offset, buffer_offset):
        return size
    write = read

@hookimpl
def gdsfw_backend():
    return BackendInfo("{name}", "zeros", "1.0", (IOPathInfo("zeros", native=False),), namespace="own")

@hookimpl
def gdsfw_open_file(target):
    from gdsfw.backend import FileHandle
    return FileHandle(target)

@hookimpl
def gdsfw_alloc(nbytes, memory):
    return Buffer(0, nbytes, memory, memoryview(bytearray(nbytes)))

@hookimpl
def gdsfw_free(buffer):
    pass

@hookimpl
def gdsfw_io(files):
    return IOPath("zeros", files, python=Zeros())
"""


class Site(Protocol):
    folder: Path

    def distribution(self, name: str, source: str, *, entry_points: dict[str, str], version: str = "1.0") -> None: ...
    def run(self, *arguments: str, code: int = 0, **environ: Any) -> Any: ...
    def backends(self, **environ: str) -> Any: ...


def backend(site: Site, name: str, distribution: str | None = None, version: str = "1.0") -> None:
    module = distribution or f"gdsfw-{name}"
    source = BACKEND.replace("{name}", name)
    site.distribution(module, source, entry_points={name: module.replace("-", "_")}, version=version)


def names(data: Any) -> set[str]:
    return {entry["name"] for entry in data["backends"]}


def failure(data: Any, name: str) -> Any:
    return next(entry for entry in data["failures"] if entry["name"] == name)


def test_a_strangers_distribution_is_a_backend(site: Site) -> None:
    backend(site, "zeros", version="3.1")
    data = site.backends()
    found = next(entry for entry in data["backends"] if entry["name"] == "zeros")
    assert (found["distribution"], found["version"], found["usable"]) == ("gdsfw-zeros", "3.1", True)
    assert found["io_paths"][0]["native"] is False
    assert "gdsfw_io" in found["hooks"]


def test_a_broken_import_is_listed_and_the_others_still_work(site: Site) -> None:
    site.distribution("gdsfw-broken", "import no_such_library", entry_points={"broken": "gdsfw_broken"})
    site.distribution("gdsfw-exits", "raise SystemExit(3)", entry_points={"exits": "gdsfw_exits"})
    backend(site, "zeros")
    data = site.backends()
    assert {"zeros", "noop"} <= names(data)
    assert failure(data, "broken") == {
        "name": "broken",
        "distribution": "gdsfw-broken 1.0",
        "reason": "importing gdsfw_broken failed: ModuleNotFoundError: No module named 'no_such_library'",
        "hint": "",
    }
    assert failure(data, "exits")["reason"] == "importing gdsfw_exits failed: SystemExit: 3"


def test_a_distribution_without_metadata_does_not_cost_the_others(site: Site) -> None:
    backend(site, "zeros")
    for file in site.folder.glob("*.dist-info/METADATA"):
        file.unlink()
    found = next(entry for entry in site.backends()["backends"] if entry["name"] == "zeros")
    assert (found["distribution"], found["version"]) == ("unknown distribution", "")


def test_two_distributions_of_one_name_are_an_error_naming_both(site: Site) -> None:
    backend(site, "zeros", "gdsfw-zeros", "1.0")
    backend(site, "zeros", "their-zeros", "2.5")
    data = site.backends()
    assert "zeros" not in names(data)
    reason = failure(data, "zeros")["reason"]
    assert reason == "the plugin name 'zeros' is offered by gdsfw-zeros 1.0 and their-zeros 2.5; none of them is used"
    done = site.run("devices", "zeros", code=3)
    assert "gdsfw-zeros 1.0 and their-zeros 2.5" in done.stderr


def test_a_misspelt_hook_sets_the_plugin_aside(site: Site) -> None:
    source = BACKEND.replace("{name}", "zeros") + "\n@hookimpl\ndef gdsfw_allocate(worker):\n    pass\n"
    site.distribution("gdsfw-zeros", source, entry_points={"zeros": "gdsfw_zeros"})
    data = site.backends()
    assert "zeros" not in names(data)
    assert failure(data, "zeros")["reason"] == "plugin 'zeros': there is no hook gdsfw_allocate"


def test_the_name_of_entry_point_and_backend_must_agree(site: Site) -> None:
    source = BACKEND.replace("{name}", "zeros")
    site.distribution("gdsfw-zeros", source, entry_points={"ones": "gdsfw_zeros"})
    assert "BackendInfo.name is 'zeros'" in failure(site.backends(), "ones")["reason"]


def test_gdsfw_plugins_loads_only_those_named(site: Site) -> None:
    backend(site, "zeros")
    site.distribution("gdsfw-broken", "import no_such_library", entry_points={"broken": "gdsfw_broken"})
    data = site.backends(GDSFW_PLUGINS="zeros, noop")
    assert names(data) == {"zeros", "noop"}
    assert data["failures"] == []


def test_gdsfw_plugins_blocks_a_name_with_a_minus(site: Site) -> None:
    backend(site, "zeros")
    assert "zeros" not in names(site.backends(GDSFW_PLUGINS="-zeros"))
    assert "noop" in names(site.backends(GDSFW_PLUGINS="-zeros"))
    done = site.run("devices", "zeros", code=3, GDSFW_PLUGINS="-zeros")
    assert done.stderr.startswith("error: backend 'zeros' is installed but left out by GDSFW_PLUGINS=-zeros")


def test_a_blocked_plugin_is_not_even_imported(site: Site) -> None:
    site.distribution("gdsfw-loud", "print('imported')", entry_points={"loud": "gdsfw_loud"})
    assert "imported" in site.run("devices").stdout
    assert "imported" not in site.run("devices", GDSFW_PLUGINS="-loud").stdout


def test_a_clash_of_blocked_names_is_none(site: Site) -> None:
    backend(site, "zeros", "gdsfw-zeros")
    backend(site, "zeros", "their-zeros")
    assert "zeros" not in {entry["name"] for entry in site.backends(GDSFW_PLUGINS="-zeros")["failures"]}


def test_gdsfw_plugins_with_an_unknown_name_says_so(site: Site) -> None:
    data = site.backends(GDSFW_PLUGINS="noop,zeroes")
    assert names(data) == {"noop"}
    reason = failure(data, "zeroes")["reason"]
    assert reason == "GDSFW_PLUGINS=noop,zeroes names it, but no installed distribution offers it"


def test_an_empty_gdsfw_plugins_loads_everything(site: Site) -> None:
    assert "noop" in names(site.backends(GDSFW_PLUGINS=""))


def test_a_backend_that_is_not_installed_is_an_offer_to_install_it(site: Site) -> None:
    done = site.run("devices", "tape", code=3)
    assert done.stderr.startswith("error: backend 'tape' is not installed\n  hint: `pip install gdsfw-tape`, if that")


def test_a_plugins_command_is_listed_and_runs(site: Site) -> None:
    source = """
from gdsfw import hookimpl

@hookimpl
def gdsfw_commands(app):
    @app.command("tape-rewind", help="Rewind the tape.")
    def rewind(times: int = 1):
        print(f"rewound {times} times")

    @app.command("run")
    def run():
        print("stolen")
"""
    site.distribution("gdsfw-tape", source, entry_points={"tape": "gdsfw_tape"})
    listed = site.run("--help")
    assert "tape-rewind" in listed.stdout
    assert "Rewind the tape." in listed.stdout
    assert "command 'run' is left out, the name is taken" in listed.stderr
    assert site.run("tape-rewind", "--times", "2").stdout == "rewound 2 times\n"


def test_a_plugin_that_fails_to_add_commands_does_not_stop_the_others(site: Site) -> None:
    source = "from gdsfw import hookimpl\n@hookimpl\ndef gdsfw_commands(app):\n    raise RuntimeError('jammed')\n"
    site.distribution("gdsfw-tape", source, entry_points={"tape": "gdsfw_tape"})
    done = site.run("--help")
    assert "plugin 'tape', hook gdsfw_commands: RuntimeError: jammed" in done.stderr
    assert "validate" in done.stdout
    assert json.loads(site.run("version", "--json").stdout)["gdsfw"]
