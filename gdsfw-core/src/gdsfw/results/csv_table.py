"""A result as CSV: a row for each job and direction, for spreadsheets."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

from gdsfw.results.compare import measures

if TYPE_CHECKING:
    from gdsfw.results.model import DirectionResult, JobResult, RunResult


def csv_table(run: RunResult) -> str:
    """The table, with a head line. bw in bytes/s, lat_ and clat_ in ns; empty where a figure was not measured."""
    sides = [(job, name, side) for job in run.jobs for name, side in (("read", job.read), ("write", job.write)) if side]
    rows = [_row(job, name, side) for job, name, side in sides]
    columns = list(dict.fromkeys(column for row in rows for column in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _row(job: JobResult, name: str, side: DirectionResult) -> dict[str, Any]:
    return {
        "job": job.name,
        "repetition": job.repetition,
        **{f"point.{key}": value for key, value in job.point.items()},
        "status": job.status,
        "backend": job.backend,
        "io_path": job.io_path,
        "transport": job.transport.kind,
        "cache": job.transport.cache,
        "direction": name,
        "rw": job.job.get("rw"),
        "block_size": job.job.get("block_size"),
        "iodepth": job.depth.asked,
        "workers": len(job.workers),
        "ios": side.ios,
        "bytes": side.bytes,
        "runtime_ns": side.runtime_ns,
        "errors": side.errors,
        **measures(side),
    }
