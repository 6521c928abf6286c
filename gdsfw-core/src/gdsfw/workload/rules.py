"""Rules between the keys of one job, checked over whatever of it could be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from gdsfw.workload.model import Job, Random


@dataclass(frozen=True)
class Breach:
    """A broken rule: the key to point at, and the message.

    Args:
        no_effect: the key changes nothing in this job. That is a mistake where the job says it, and only then:
            defaults serve several jobs, and a sweep has points that differ.
    """

    key: str
    message: str
    hint: str | None = None
    no_effect: bool = False


_RULES: list[tuple[frozenset[str], Callable[[Job], Iterator[Breach]]]] = []


def _rule(*keys: str) -> Callable[[Callable[[Job], Iterator[Breach]]], Callable[[Job], Iterator[Breach]]]:
    """Register a check. It is skipped when one of `keys` could not be read."""

    def register(check: Callable[[Job], Iterator[Breach]]) -> Callable[[Job], Iterator[Breach]]:
        _RULES.append((frozenset(keys), check))
        return check

    return register


def breaches(job: Job, unread: Collection[str] = ()) -> list[Breach]:
    """Every broken rule of `job`, whose keys in `unread` have a mistake of their own and hold their defaults."""
    return [breach for keys, check in _RULES if not keys & set(unread) for breach in check(job)]


def _idle(key: str, reason: str, hint: str | None = None) -> Breach:
    return Breach(key, f"{key} has no effect {reason}", hint, no_effect=True)


@_rule("filename", "files_from")
def _one_source_of_files(job: Job) -> Iterator[Breach]:
    if job.filename and job.files_from:
        yield Breach("files_from", "filename and files_from exclude each other")


@_rule("filename", "files", "files_from")
def _filename_is_one_file(job: Job) -> Iterator[Breach]:
    if job.filename and job.files > 1 and not job.files_from:
        yield Breach("files", f"filename is one file, but files asks for {job.files}", "leave one of them out")


@_rule("files_from", "files", "directory", "filename")
def _files_from_brings_names(job: Job) -> Iterator[Breach]:
    reason = f"on the files of job {job.files_from!r}"
    if job.files_from and job.files > 1:
        yield _idle("files", reason)
    if job.files_from and job.directory != "." and not job.filename:
        yield _idle("directory", reason)


@_rule("share", "filename", "files_from")
def _share_needs_a_shared_file(job: Job) -> Iterator[Breach]:
    if job.share == "split" and not job.filename and not job.files_from:
        yield _idle("share", "on files that each worker has for itself", "give filename or files_from")


@_rule("rw", "rwmixread")
def _mix_needs_both_directions(job: Job) -> Iterator[Breach]:
    if job.rwmixread != 50 and len(job.directions) == 1:
        yield _idle("rwmixread", f"with rw: {job.rw}", "rw: readwrite and randrw mix")


@_rule("rw", "fsync", "fdatasync", "end_fsync", "sync", "buffer_compress", "buffer_dedupe", "allow_overwrite")
def _write_keys_need_writes(job: Job) -> Iterator[Breach]:
    used = {
        "fsync": job.fsync > 0,
        "fdatasync": job.fdatasync > 0,
        "end_fsync": bool(job.end_fsync),
        "sync": job.sync != "none",
        "buffer_compress": job.buffer_compress > 0,
        "buffer_dedupe": job.buffer_dedupe > 0,
        "allow_overwrite": job.allow_overwrite,
    }
    if not job.writes:
        yield from (_idle(key, f"with rw: {job.rw}, which writes nothing") for key, in_use in used.items() if in_use)


@_rule("rw", "block_align")
def _align_needs_random_offsets(job: Job) -> Iterator[Breach]:
    if job.block_align is not None and not job.random_access:
        yield _idle("block_align", f"with rw: {job.rw}, whose offsets are sequential")


@_rule("rw", "rate", "rate_iops")
def _rate_of_a_direction_in_use(job: Job) -> Iterator[Breach]:
    for key, limits in (("rate", job.rate), ("rate_iops", job.rate_iops)):
        if limits and not any(getattr(limits, direction) for direction in job.directions):
            yield _idle(key, f"with rw: {job.rw}: it limits the other direction")


@_rule("rate", "rate_iops", "rate_process")
def _process_needs_a_rate(job: Job) -> Iterator[Breach]:
    if job.rate_process != "linear" and not job.rate and not job.rate_iops:
        yield _idle("rate_process", "without rate or rate_iops")


@_rule("runtime", "loops", "io_size")
def _loops_or_runtime(job: Job) -> Iterator[Breach]:
    if job.runtime and job.loops > 1 and not job.io_size:
        yield _idle("loops", "with a runtime, which goes over the size until it ends")


@_rule("continue_on_error", "max_errors")
def _error_limit_needs_going_on(job: Job) -> Iterator[Breach]:
    if job.max_errors is not None and not job.continue_on_error:
        yield _idle("max_errors", "without continue_on_error: true")


@_rule("stage", "stop_together")
def _stopping_together_needs_a_stage(job: Job) -> Iterator[Breach]:
    if job.stop_together and job.stage is None:
        yield _idle("stop_together", "without a stage")


@_rule("cpus", "numa")
def _one_way_of_placing(job: Job) -> Iterator[Breach]:
    if job.cpus is not None and job.numa is not None:
        yield Breach("numa", "cpus and numa exclude each other")


@_rule("rw", "verify", "buffer_compress", "buffer_dedupe")
def _pattern_is_the_data(job: Job) -> Iterator[Breach]:
    if not job.verify or not job.writes:
        return
    for key, percent in (("buffer_compress", job.buffer_compress), ("buffer_dedupe", job.buffer_dedupe)):
        if percent:
            yield Breach(key, f"{key} cannot be had with verify, whose pattern is the data written")


@_rule("random")
def _theta_fits_its_distribution(job: Job) -> Iterator[Breach]:
    valid = _valid_theta(job.random)
    if valid:
        about = f"random: theta {job.random.theta:g} does not fit distribution {job.random.distribution}"
        yield Breach("random", about, f"valid: {valid}")


def _valid_theta(random: Random) -> str | None:
    """What theta may be, when it is something else."""
    theta = random.theta
    fits, valid = {
        "zipf": (0 < theta < 100 and theta != 1, "above 0, below 100, not 1"),
        "pareto": (0 < theta < 1, "above 0, below 1"),
        "normal": (0 < theta <= 100, "above 0, at most 100 (percent of the range)"),
        "runs": (1 <= theta <= 1e9, "at least 1 (blocks), at most 1e9"),
        "uniform": (theta == 0, "none, leave theta out"),
    }[random.distribution]
    return None if fits else valid


@_rule("random")
def _once_per_block_is_uniform(job: Job) -> Iterator[Breach]:
    if job.random.once_per_block and job.random.distribution != "uniform":
        about = f"random: once_per_block visits all blocks alike, distribution {job.random.distribution} does not"
        yield Breach("random", about, "leave one of them out")


@_rule("io_path", "require_transport")
def _transport_of_the_path(job: Job) -> Iterator[Breach]:
    if job.io_path in ("staged", "mapped") and job.require_transport not in (None, job.io_path):
        yield Breach("require_transport", f"io_path: {job.io_path} never goes by {job.require_transport}")
