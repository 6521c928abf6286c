"""Runs a test in a process of its own: the libraries keep state, and some of what is tested ends a process."""

from __future__ import annotations

import faulthandler
import functools
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Mapping
from typing import Any

#: Seconds after which a child that hangs is ended.
LIMIT = 60


def run_in_child(body: Callable[[], None], environ: Mapping[str, str]) -> int:
    """Run `body` in a forked process with these environment variables.

    Returns the signal that ended the process, or 0. Raises AssertionError with the child's traceback if `body` raises.
    """
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # fork with threads: the child uses none of the parent's
        pid = os.fork()
    if not pid:
        os.close(reading)
        _child(body, environ, writing)
    os.close(writing)
    with os.fdopen(reading) as report:
        text = report.read()
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        return os.WTERMSIG(status)
    if os.WEXITSTATUS(status):
        raise AssertionError(f"in the child process:\n{text}" if text else f"the child ended with {status >> 8}")
    return 0


def own_process(*rules: str, dies_of: int = 0, **settings: object) -> Callable[[Callable[..., None]], Any]:
    """Let a test that takes the fixture `api` run in a process of its own, which begins with these rules and settings.

    Args:
        dies_of: the signal that must end it.
    """

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            environ = fixtures["api"].standin.environ(*rules, **settings)
            assert run_in_child(lambda: test(**fixtures), environ) == dies_of

        return run

    return decorate


def _child(body: Callable[[], None], environ: Mapping[str, str], writing: int) -> None:
    code = 1
    try:
        faulthandler.disable()  # a crash that a test waits for is no news
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(LIMIT)
        os.environ.update(environ)
        body()
        code = 0
    except BaseException:
        os.write(writing, traceback.format_exc().encode())
    finally:
        sys.stderr.flush()
        os._exit(code)
