"""A result as one HTML page that needs nothing else: no script, no network, charts as SVG."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from gdsfw.results.advice import advice
from gdsfw.results.table import duration, error_lines, quantity, size

if TYPE_CHECKING:
    from gdsfw.results.model import DirectionResult, JobResult, RunResult, Timeline

_STYLE = """body{font:15px/1.45 system-ui,sans-serif;max-width:72em;margin:2em auto;padding:0 1em;color:#222}
table{border-collapse:collapse;margin:1em 0}th,td{padding:.25em .7em;text-align:right;border-bottom:1px solid #ddd}
th:first-child,td:first-child{text-align:left}svg{width:100%;height:auto}.warn{color:#a40}.bad{color:#b00}
pre{background:#f5f5f5;padding:1em;overflow:auto}"""
_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 800, 200, 90, 20
_COLOURS = {"read": "#1b6ca8", "write": "#c8553d"}


def html_report(run: RunResult) -> str:
    """The page."""
    host = run.host
    facts = {
        "status": f"{run.status} (exit {run.exit_code})",
        "run": f"{run.started} to {run.ended}",
        "host": f"{host.get('hostname')}, {host.get('cpu')}, {host.get('cpus')} CPUs, kernel {host.get('kernel')}",
        "versions": ", ".join(f"{name} {version}" for name, version in run.versions.items()),
        "command": " ".join(run.argv),
    }
    body = [
        f"<h1>{escape(run.source)}</h1>",
        _table((), facts.items()),
        *(f'<p class="bad">{escape(line)}</p>' for line in error_lines(run)),
        *(f"<p>which io_path: {escape(line)}</p>" for line in advice(run.jobs)),
        *(part for job in run.jobs for part in _job(job)),
        f"<h2>Workload</h2><pre>{escape(run.workload)}</pre>",
    ]
    head = f'<meta charset="utf-8"><title>{escape(run.source)}</title><style>{_STYLE}</style>'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n' + "\n".join(body) + "\n</body></html>\n"


def _job(job: JobResult) -> Iterable[str]:
    yield f"<h2>{escape(job.label)}</h2>"
    evidence = "; ".join(job.transport.evidence)
    yield (
        f"<p>{escape(job.status)}; backend {escape(job.backend)}, path {escape(job.io_path)}, "
        f"{escape(job.transport.kind)}, cache {escape(job.transport.cache)}; {escape(evidence)}</p>"
    )
    sides = [(name, side) for name, side in (("read", job.read), ("write", job.write)) if side and side.ios]
    head = ("", "IOPS", "bandwidth", "bytes", "I/Os", "errors", "mean", "p50", "p99", "p99.9", "max")
    if sides:
        yield _table(head, [_figures(name, side) for name, side in sides])
    phases = job.phases
    yield (
        f"<p>Seconds: setup {phases.setup:.3f}, layout {phases.layout:.3f}, ramp {phases.ramp:.3f}, "
        f"measured {phases.measured:.3f}, teardown {phases.teardown:.3f}.</p>"
    )
    yield from (f'<p class="warn">{escape(text)}</p>' for text in job.warnings)
    yield from (f"<p>{escape(text)}</p>" for text in job.notes)
    if job.timeline is not None and len(job.timeline.rows) > 1:
        yield _chart(job.timeline, [name for name, _ in sides])


def _figures(name: str, side: DirectionResult) -> Sequence[str]:
    latency = side.lat_ns or side.clat_ns
    known = latency.percentiles if latency else {}
    return (
        name,
        quantity(side.iops),
        f"{size(side.bw_bytes)}/s",
        size(side.bytes),
        str(side.ios),
        str(side.errors),
        duration(latency.mean) if latency else "",
        *(duration(known[key]) if key in known else "" for key in ("50", "99", "99.9")),
        duration(latency.max) if latency else "",
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    top = "<tr>" + "".join(f"<th>{escape(cell)}</th>" for cell in head) + "</tr>" if head else ""
    cells = ("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table>{top}{''.join(cells)}</table>"


def _chart(timeline: Timeline, names: Sequence[str]) -> str:
    """Bandwidth over time; intervals without I/O are at zero."""
    rows = [row for row in timeline.rows if row.duration_ns]
    rates = {
        name: [1e9 * (row.read_bytes if name == "read" else row.write_bytes) / row.duration_ns for row in rows]
        for name in names
    }
    top = max((rate for series in rates.values() for rate in series), default=0) or 1.0
    end = max((row.t_ns + row.duration_ns for row in rows), default=0) or 1
    lines = []
    for name, series in rates.items():
        points = " ".join(
            f"{_LEFT + (_WIDTH - _LEFT) * (row.t_ns + row.duration_ns / 2) / end:.1f},"
            f"{10 + (_HEIGHT - _BOTTOM - 10) * (1 - rate / top):.1f}"
            for row, rate in zip(rows, series, strict=True)
        )
        lines.append(
            f'<polyline fill="none" stroke="{_COLOURS[name]}" stroke-width="2" points="{points}">'
            f"<title>{name}</title></polyline>"
        )
    floor = _HEIGHT - _BOTTOM
    axis = (
        f'<path d="M{_LEFT} 10V{floor}H{_WIDTH}" fill="none" stroke="#888"/>'
        f'<text x="{_LEFT - 6}" y="16" text-anchor="end" font-size="12">{size(top)}/s</text>'
        f'<text x="{_LEFT - 6}" y="{floor}" text-anchor="end" font-size="12">0</text>'
        f'<text x="{_WIDTH}" y="{_HEIGHT - 4}" text-anchor="end" font-size="12">{end / 1e9:.1f} s</text>'
    )
    legend = ", ".join(f'<span style="color:{_COLOURS[name]}">{name}</span>' for name in names)
    return f'<p>Bandwidth ({legend})</p><svg viewBox="0 0 {_WIDTH} {_HEIGHT}">{axis}{"".join(lines)}</svg>'
