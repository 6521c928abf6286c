"""The table at the end of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO, TYPE_CHECKING

from gdsfw.results.advice import advice

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from gdsfw.results.model import DeviceRow, DirectionResult, JobResult, RunResult

#: Errors of one job that are shown; the result has them all.
MOST_ERRORS = 3
_COLUMNS = (
    "job",
    "",
    "bs",
    "qd x jobs",
    "IOPS",
    "bandwidth",
    "lat mean",
    "p50",
    "p99",
    "p99.9",
    "max",
    "CPU",
    "path",
    "verify",
)
#: What a narrow terminal does without, the first first. The result has it all.
_DISPENSABLE = ("p99.9", "p50", "max", "CPU", "qd x jobs", "bs", "verify", "p99", "path")
#: Columns of what is no terminal: more than any table.
_ANY_WIDTH = 10_000


def print_table(result: RunResult, stream: IO[str]) -> None:
    """Figures of every job, then what is worth knowing about it: path, warnings, errors."""
    from rich.console import Console

    terminal = stream.isatty()
    console = Console(file=stream, width=None if terminal else _ANY_WIDTH, highlight=False, soft_wrap=not terminal)
    table = _fitting(result, console)
    if table.row_count:
        wide = _width(table, console) > console.width  # then the terminal folds it: whole, if not pretty
        shown_on = Console(file=stream, width=_ANY_WIDTH, highlight=False, soft_wrap=True) if wide else console
        shown_on.print(table)
    for job in result.jobs:
        for line in _lines(job):
            console.print(line, markup=False)
    for line in advice(result.jobs):
        console.print(f"which io_path: {line}", markup=False)
    for note in result.notes:
        console.print(f"note: {note}", markup=False)


def _fitting(result: RunResult, console: Console) -> Table:
    """The table, without the columns that a narrow terminal has no room for: a figure cut in half is worth nothing."""
    left_out: list[str] = []
    table = _table(result, left_out)
    for name in _DISPENSABLE:
        if _width(table, console) <= console.width:
            break
        left_out.append(name)
        table = _table(result, left_out)
    return table


def _width(table: Table, console: Console) -> int:
    return console.measure(table, options=console.options.update(width=_ANY_WIDTH)).maximum


def _table(result: RunResult, left_out: Sequence[str]) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    kept = [index for index, name in enumerate(_COLUMNS) if name not in left_out]
    for index in kept:
        table.add_column(_COLUMNS[index], justify="left" if index in (0, 1, 12) else "right", no_wrap=True)
    for job in result.jobs:
        for row in _rows(job):
            table.add_row(*(Text(row[index]) for index in kept))  # as text: a label's brackets are no markup
    return table


def _rows(job: JobResult) -> list[Sequence[str]]:
    sides = [(name, side) for name, side in (("read", job.read), ("write", job.write)) if side and side.ios]
    rows = [_row(job, name, side, first=index == 0) for index, (name, side) in enumerate(sides)]
    return rows + [_device_row(device, name) for device in job.devices[: _most_devices(job)] for name, _ in sides]


def _most_devices(job: JobResult) -> int:
    """A single device's share is the job's own row."""
    return len(job.devices) if len(job.devices) > 1 else 0


def _device_row(row: DeviceRow, name: str) -> Sequence[str]:
    iops, nbytes = (row.read_iops, row.read_bw_bytes) if name == "read" else (row.write_iops, row.write_bw_bytes)
    rates = (quantity(iops), f"{size(nbytes)}/s")
    return (f"  device {row.device}", name, "", f"x {row.workers}", *rates, *[""] * (len(_COLUMNS) - 6))


def _row(job: JobResult, name: str, side: DirectionResult, first: bool) -> Sequence[str]:
    # From the (scheduled) start to the end: with a queue, clat alone would leave out what submission took.
    latency = side.lat_ns or side.clat_ns
    known = latency.percentiles if latency else {}
    return (
        job.label if first else "",
        name if job.status == "done" else f"{name} ({job.status})",
        _block(job, name),
        f"{job.depth.asked} x {len(job.workers)}",
        quantity(side.iops),
        f"{size(side.bw_bytes)}/s",
        duration(latency.mean) if latency else "",
        *(duration(known[key]) if key in known else "" for key in ("50", "99", "99.9")),
        duration(latency.max) if latency else "",
        _cpu(job) if first else "",
        f"{job.transport.kind}, {job.transport.cache}" if first else "",
        _verify(job) if first else "",
    )


def error_lines(result: RunResult) -> list[str]:
    """What went wrong, a line each, for stderr."""
    lines = [f"error: {error.message}" for error in result.errors]
    for job in result.jobs:
        lines += [
            f"{job.label}: error: {error.message}" + (f" ({error.hint})" if error.hint else "")
            for error in job.errors[:MOST_ERRORS]
        ]
        if job.error_count > MOST_ERRORS:
            lines.append(f"{job.label}: {job.error_count} errors in all")
        if job.verify and job.verify.mismatches:
            bad = job.verify.mismatches[0]
            lines.append(
                f"{job.label}: verify: {job.verify.bad_blocks} bad blocks; first at offset {bad.file_offset} of "
                f"{bad.file}: expected {bad.expected}, found {bad.found}"
            )
    return lines


def _lines(job: JobResult) -> list[str]:
    transport = job.transport
    evidence = f" ({'; '.join(transport.evidence[:3])})" if transport.evidence else ""
    path = f"{job.label}: path {job.io_path}, {transport.kind}, cache {transport.cache}{evidence}"
    lines = [path] if _measured(job) else []
    if transport.bw_bytes_with_setup is not None:
        setup = duration(transport.setup_seconds * 1e9)
        lines.append(f"{job.label}: {size(transport.bw_bytes_with_setup)}/s with {setup} of registration included")
    lines += [f"{job.label}: warning: {text}" for text in job.warnings]
    lines += [f"{job.label}: note: {text}" for text in job.notes]
    return lines


def _measured(job: JobResult) -> bool:
    return any(side is not None and side.ios for side in (job.read, job.write))


def _block(job: JobResult, name: str) -> str:
    value = job.job.get("block_size")
    if isinstance(value, dict) and name in value:
        value = value[name]
    return str(value) if isinstance(value, str) else size(value) if isinstance(value, int) else "mixed"


def _cpu(job: JobResult) -> str:
    seconds = job.phases.measured
    if job.cpu is None or not seconds:
        return ""
    return f"{100 * (job.cpu.process_user_seconds + job.cpu.process_system_seconds) / seconds:.0f} %"


def _verify(job: JobResult) -> str:
    if job.verify is None:
        return ""
    if job.verify.bad_blocks or job.verify.checked_bytes != job.verify.expected_bytes:
        return "BAD"
    return f"ok {size(job.verify.checked_bytes)}" if job.verify.checked_bytes else ""


def quantity(value: float) -> str:
    """A count with at most four figures: 812, 4,518, 51.2k, 3.41M."""
    for limit, divisor, unit in ((1e4, 1.0, ""), (1e6, 1e3, "k"), (1e9, 1e6, "M")):
        if value < limit:
            scaled = value / divisor
            return f"{scaled:,.0f}{unit}" if scaled >= 100 or not unit else f"{scaled:.3g}{unit}"
    return f"{value / 1e9:.3g}G"


def size(value: float) -> str:
    """Bytes in binary units: 4 KiB, 1.93 GiB."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1000:
            return f"{value:.4g} {unit}" if value != int(value) else f"{int(value)} {unit}"
        value /= 1024
    return f"{value:.4g} TiB"


def duration(nanoseconds: float) -> str:
    """A latency: 850 ns, 12.3 us, 4.56 ms, 1.2 s."""
    for limit, divisor, unit in ((1e3, 1, "ns"), (1e6, 1e3, "us"), (1e9, 1e6, "ms")):
        if nanoseconds < limit:
            return f"{nanoseconds / divisor:.3g} {unit}"
    return f"{nanoseconds / 1e9:.3g} s"
