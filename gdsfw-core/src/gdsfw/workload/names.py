"""Names of keys: other spellings that are accepted, and what to say about names that are not known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gdsfw.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gdsfw.workload.node import Node

#: fio's word for the same idea, by key.
ALIASES = {
    "ba": "block_align",
    "blockalign": "block_align",
    "blocksize": "block_size",
    "bs": "block_size",
    "bsrange": "block_size",
    "bssplit": "block_size",
    "buffer_compress_percentage": "buffer_compress",
    "dedupe_percentage": "buffer_dedupe",
    "file_service_type": "file_service",
    "io_limit": "io_size",
    "iodepth_batch_submit": "iodepth_batch",
    "nrfiles": "files",
    "readwrite": "rw",
    "thinktime": "think_time",
}

#: Names that users bring from other tools whose idea has another shape here.
HINTS = {
    "buffered": "write `direct: false`",
    "cpus_allowed": "write `cpus: [0, 1]`",
    "depth": "write `iodepth`",
    "do_verify": "write `verify: true`",
    "exitall": "write `stop_together: true` with a `stage`",
    "filesize": "write `size`",
    "gpu_dev_ids": "write `devices: [0, 1]`",
    "group_reporting": "leave it out: results are per job, with a row for each worker",
    "ioengine": "write `backend` and `io_path`",
    "iomem": "write `memory`",
    "mem": "write `memory`",
    "new_group": "leave it out: results are per job",
    "norandommap": "write `random: {once_per_block: false}`",
    "numa_cpu_nodes": "write `numa`",
    "overwrite": "write `allow_overwrite`",
    "percentile_list": "write `percentiles: [50, 99]`",
    "qd": "write `iodepth`",
    "queue_depth": "write `iodepth`",
    "random_distribution": "write `random: {distribution: zipf, theta: 1.2}`",
    "randrepeat": "leave it out: equal seeds give equal I/O (`random: {seed: 2}` for another)",
    "randseed": "write `random: {seed: 2}`",
    "refill_buffers": "leave it out: written data is incompressible (see buffer_compress)",
    "rwmixwrite": "write `rwmixread`, the share of reads",
    "scramble_buffers": "leave it out: written data is incompressible (see buffer_compress)",
    "stonewall": "leave it out: jobs run one after another unless they share a `stage`",
    "thread": "leave it out: workers are threads",
    "threads": "write `numjobs`",
    "time_based": "leave it out: a job with a `runtime` runs that long",
    "wait_for": "leave it out: jobs run one after another unless they share a `stage`",
    "workers": "write `numjobs`",
    "write_iops_log": "write `timeline`, or `io_log` for each I/O",
    "write_lat_log": "write `io_log`",
    "zero_buffers": "write `buffer_compress: 100`",
}


def canonical(key: str) -> str:
    """The key that `key` is another spelling of, or `key`."""
    return ALIASES.get(key, key)


def near(word: object, valid: Iterable[str]) -> str | None:
    """The valid word that `word` was probably meant to be, or None."""
    import difflib

    return next(iter(difflib.get_close_matches(str(word)[:60].lower(), list(valid), 1, 0.6)), None)


def did_you_mean(word: object, valid: Iterable[str]) -> str | None:
    """A hint with the nearest valid word, or None."""
    found = near(word, valid)
    return f"did you mean {found!r}?" if found else None


def unknown_key_hint(key: str, valid: Iterable[str]) -> str:
    """What to write instead of a key that is not known."""
    names = sorted(valid)
    if key in HINTS:
        return HINTS[key]
    meant = did_you_mean(key, [*names, *(alias for alias, name in ALIASES.items() if name in names)])
    return meant or (f"valid: {', '.join(names)}" if len(names) <= 8 else "`gdsfw schema` lists all keys")


def with_canonical_keys(mapping: Node, problems: list[Problem]) -> Node:
    """`mapping` with each key under its own name. A key that is there twice under two names is a problem."""
    entries: dict[str, Node] = {}
    for key, node in mapping.mapping.items():
        name = canonical(key)
        if name in entries:
            first = entries[name].key_where.line
            also = f"{key!r} and another spelling of it" if name != key else repr(key)
            message = f"key {name!r} is given twice: {also} here and on line {first}"
            problems.append(Problem(str(node.key_where), message))
            continue
        entries[name] = with_canonical_keys(node, problems) if name == "sweep" else node
    return mapping.with_entries(entries) if isinstance(mapping.value, dict) else mapping
