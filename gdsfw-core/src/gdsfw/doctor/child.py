"""A probe's own process: `python -m gdsfw.doctor.child REQUEST`. It answers with a line of JSON for each step."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any


def main() -> None:
    """Do what the request asks and leave at once: libraries may hang while they are unloaded."""
    request = json.loads(sys.argv[1])
    # Libraries print what they like; answers go to a descriptor of their own.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(**answer: Any) -> None:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    if request["what"] == "proof":
        from gdsfw.doctor.proof import prove

        prove(request["name"], request["folder"], say)
    else:
        _look(request, say)
    say(done=True)
    os._exit(0)


def _look(request: dict[str, Any], say: Any) -> None:
    from gdsfw.doctor.recording import RecordingHost
    from gdsfw.host import Host

    directory = request["directory"]
    if request["record"]:
        host: Host = RecordingHost(directory)
    else:
        host = Host(request["root"], live=request["live"], asks=True)
    if request["what"] == "machine":
        _machine(host, directory, say)
    else:
        _backend(host, request["name"], directory, say)
    if isinstance(host, RecordingHost):
        say(recorded=host.recording.data())


def _machine(host: Any, directory: str, say: Any) -> None:
    from gdsfw.doctor.machine import CHECKS

    for check in CHECKS:
        say(begin=check.__name__.replace("_", " "))
        say(checks=[asdict(check(host, directory))])


def _backend(host: Any, name: str, directory: str, say: Any) -> None:
    from gdsfw.inventory import backend_status
    from gdsfw.plugins import PluginManager

    say(begin=f"probe of {name}")
    status = backend_status(PluginManager.installed(os.environ), name, Path(directory), host)
    say(checks=[asdict(check) for check in status.checks], reason=status.reason)


if __name__ == "__main__":
    main()
