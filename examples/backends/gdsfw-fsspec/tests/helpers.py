"""A web server for tests, with real requests over the loopback interface, and what fixtures give."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import gdsfw

#: Opens a file as a worker has it; see conftest.py, as for the next.
Open = Callable[..., Any]
#: Runs a workload.
Run = Callable[..., Any]


def run_example(name: str, *settings: str, **environ: str) -> list[Any]:
    """Run a workload of examples/ for a short time, see that it ended well, and give the results of its jobs."""
    path = Path(__file__).parents[1] / f"examples/{name}.yaml"
    timed = [job.name for job in gdsfw.load(path, environ=environ).jobs if job.runtime]
    short = [f"jobs.{name}.runtime=50ms" for name in timed]
    result = gdsfw.run(gdsfw.load(path, [*settings, *short], environ=environ))
    assert (result.status, result.errors) == ("done", [])
    assert [job.errors for job in result.jobs] == [[] for _ in result.jobs]
    return list(result.jobs)


class Server:
    """Objects by name, and what was asked of them.

    Args:
        objects: by name. Those whose name starts with a temper behave so: `plain-` ignores ranges, `endless-` does not
            say its length, `refuses-` says so of ranges, `broken-` answers 503 to every range but the last byte,
            `forbidden` answers 403.
    """

    def __init__(self, objects: dict[str, bytes]) -> None:
        self.objects = objects
        self.ranges: list[str] = []
        self.whole = {name for name in objects if name.startswith("plain-")}  # ranges of these are ignored
        self.url = ""

    def body_of(self, path: str) -> bytes | None:
        """The object at a path."""
        return self.objects.get(path.rpartition("/")[2])


@contextmanager
def serving(objects: dict[str, bytes]) -> Iterator[Server]:
    """A server on a free port of 127.0.0.1."""
    state = Server(objects)

    class Handler(_Handler):
        server_state = state

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.block_on_close = False
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_state: Server

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def _answer(self, *, with_body: bool) -> None:
        name = self.path.rpartition("/")[2]
        body = self.server_state.body_of(self.path)
        if name == "forbidden":
            self._send(403, b"", with_body)
        elif body is None:
            self._send(404, b"", with_body)
        elif name.startswith("endless-"):
            self.send_response(200)
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True
        elif "Range" not in self.headers or name in self.server_state.whole:
            extra = {"Accept-Ranges": "none"} if name.startswith("refuses-") else {}
            self._send(200, body, with_body, extra)
        else:
            self._part(name, body)

    def _part(self, name: str, body: bytes) -> None:
        asked = self.headers["Range"].removeprefix("bytes=")
        self.server_state.ranges.append(asked)
        first, last = map(int, asked.split("-"))
        if name.startswith("broken-") and first != len(body) - 1:
            self._send(503, b"", True)
        elif first >= len(body):
            self._send(416, b"", True)
        else:
            last = min(last, len(body) - 1)
            self._send(206, body[first : last + 1], True, {"Content-Range": f"bytes {first}-{last}/{len(body)}"})

    def _send(self, status: int, body: bytes, with_body: bool, extra: dict[str, str] | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for key, value in (extra or {}).items():
            self.send_header(key, value)
        self.end_headers()
        if with_body:
            self.wfile.write(body)
