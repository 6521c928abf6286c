"""Which files each worker works on, and which bytes of them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gdsfw.workload.known_files import Known, KnownFiles, file_id, made_by_gdsfw
from gdsfw.workload.plan_model import FilePlan, distinct
from gdsfw.workload.ranges import Range, share_out, split
from gdsfw.workload.units import Percent, format_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gdsfw.workload.complaints import Complaints
    from gdsfw.workload.model import Job
    from gdsfw.workload.plan_model import JobPlan

#: Files of one job; a typing error must not fill memory.
MAX_FILES = 1_000_000
#: Where no regular file belongs, and what below them is an ordinary file system all the same.
SYSTEM_FOLDERS = ("/dev", "/proc", "/sys")
ORDINARY = ("/dev/shm",)


@dataclass(frozen=True)
class _Extent:
    """A file and the bytes of it that a job covers. `decided` is false when only its backend knows its size."""

    path: str
    range: Range
    known: Known
    owned: bool
    decided: bool = True


class _UnplannableError(Exception):
    """The job has no plan; why is among the complaints already."""


class FilePlanner:
    """Assigns files to the workers of one job after another.

    Args:
        known: what is known of files; each assigned file is added to it.
        complaints: takes what is wrong.
    """

    def __init__(self, known: KnownFiles, complaints: Complaints) -> None:
        self._known = known
        self._complaints = complaints

    def assign(self, job: Job, source: JobPlan | None, *, own_namespace: bool) -> list[tuple[FilePlan, ...]] | None:
        """Files for each worker, or None when there is something to complain about.

        Args:
            source: the plan of the job that `files_from` names.
            own_namespace: names mean something to the backend only.
        """
        try:
            extents = self._extents(job, source, own_namespace)
            self._check_blocks(job, extents)
            per_worker = self._per_worker(job, extents)
        except _UnplannableError:
            return None
        # Workers that share all files share one tuple: many workers times many files would not fit into memory.
        plans: dict[int, tuple[FilePlan, ...]] = {}
        for files in per_worker:
            if id(files) not in plans:
                plans[id(files)] = _file_plans(files, own_namespace)
        for extent in extents:
            if extent.decided:
                self._known.grow(extent.path, extent.range.end)
        return [plans[id(files)] for files in per_worker]

    def release(self, job: Job, files: Sequence[tuple[FilePlan, ...]]) -> None:
        """The job has ended; what it unlinks is gone."""
        if job.unlink:
            for path in {file.path for worker in distinct(files) for file in worker}:
                self._known.remove(path)

    def _extents(self, job: Job, source: JobPlan | None, own_namespace: bool) -> list[_Extent]:
        if job.files_from is not None:
            if source is None:
                raise _UnplannableError
            return self._inherited(job, source)
        if job.filename is not None:
            path = _join(job, job.filename, own_namespace)
            return [self._whole(job, path, own_namespace, owned=False)]
        if job.numjobs * job.files > MAX_FILES:
            raise self._wrong(job, "files", f"{job.numjobs} x {job.files} files; the most is {MAX_FILES}")
        self._check_folder(job, own_namespace)
        return self._own_files(job, own_namespace)

    def _own_files(self, job: Job, own_namespace: bool) -> list[_Extent]:
        """`<job>.<worker>.<n>` in the job's directory, worker by worker."""
        names = [f"{job.name}.{worker}.{n}" for worker in range(job.numjobs) for n in range(job.files)]
        paths = [_join(job, name, own_namespace) for name in names]
        if not isinstance(job.size, int) or isinstance(job.offset, Percent):
            return [self._whole(job, path, own_namespace, owned=True) for path in paths]
        lengths = share_out(job.size, job.files, _unit(job))
        return [
            self._placed(job, path, Range(job.offset, lengths[index % job.files]), own_namespace)
            for index, path in enumerate(paths)
        ]

    def _placed(self, job: Job, path: str, wanted: Range, own_namespace: bool) -> _Extent:
        known = self._known.look(path, own_namespace=own_namespace)
        self._check_kind(job, "directory", path, known)
        return _Extent(path, wanted, known, owned=True)

    def _whole(self, job: Job, path: str, own_namespace: bool, *, owned: bool) -> _Extent:
        """The file's range from offset and size, each bytes or percent of the file."""
        known = self._known.look(path, own_namespace=own_namespace)
        key = "directory" if owned else "filename"
        self._check_kind(job, key, path, known)
        relative = isinstance(job.offset, Percent) or not isinstance(job.size, int)
        if relative and known.kind == "unknown" and not known.made:
            return self._decided_at_start(job, path, known, owned)
        if relative and known.kind == "missing":
            what = "size is missing" if job.size is None else "a percentage has nothing to refer to"
            hint = f"say `size`, the bytes each worker covers{'' if owned else ', or name an existing file'}"
            raise self._wrong(job, "size", f"{what}: {path} is not there", hint)
        offset = job.offset.of(known.nbytes) if isinstance(job.offset, Percent) else job.offset
        size = job.size.of(known.nbytes) if isinstance(job.size, Percent) else job.size
        if size is None:
            size = max(0, known.nbytes - offset)
        self._check_end(job, path, known, Range(offset, size), owned)
        return _Extent(path, Range(offset, size), known, owned)

    def _decided_at_start(self, job: Job, path: str, known: Known, owned: bool) -> _Extent:
        if isinstance(job.size, Percent) or isinstance(job.offset, Percent) or job.share == "split":
            hint = "say size and offset in bytes"
            raise self._wrong(job, "size", f"the size of {path} is known only when it is opened", hint)
        return _Extent(path, Range(job.offset, 0), known, owned, decided=False)

    def _inherited(self, job: Job, source: JobPlan) -> list[_Extent]:
        """The files of another job; an offset and a size of the job's own narrow what it covers of each."""
        covered: dict[str, FilePlan] = {}
        ranges: dict[str, Range] = {}
        for file in (file for worker_files in source.distinct_files() for file in worker_files):
            covered.setdefault(file.path, file)
            before = ranges.get(file.path, Range(file.start, file.length))
            start = min(before.start, file.start)
            ranges[file.path] = Range(start, max(before.end, file.start + file.length) - start)
        if any(file.decided_at_start for file in covered.values()):
            return [
                _Extent(path, ranges[path], self._known.look(path), file.owned, not file.decided_at_start)
                for path, file in covered.items()
            ]
        shares = share_out(job.size, len(covered), _unit(job)) if isinstance(job.size, int) else [None] * len(covered)
        return [
            _Extent(path, self._narrowed(job, path, ranges[path], share), self._known.look(path), file.owned)
            for (path, file), share in zip(covered.items(), shares, strict=True)
        ]

    def _narrowed(self, job: Job, path: str, whole: Range, share: int | None) -> Range:
        offset = job.offset.of(whole.length) if isinstance(job.offset, Percent) else job.offset
        if share is not None:
            length = share
        else:
            rest = max(0, whole.length - offset)
            length = min(rest, job.size.of(whole.length)) if isinstance(job.size, Percent) else rest
        if offset + length > whole.length:
            message = f"offset {offset} and {length} bytes are more than the {whole.length} bytes of {path}"
            raise self._wrong(job, "size" if job.size else "offset", message, f"job {job.files_from} made it that long")
        return Range(whole.start + offset, length)

    def _per_worker(self, job: Job, extents: list[_Extent]) -> list[list[_Extent]]:
        if job.files_from is None and job.filename is None:
            return [extents[worker * job.files : (worker + 1) * job.files] for worker in range(job.numjobs)]
        if job.share == "all":
            return [extents] * job.numjobs
        unit = _unit(job)
        parts = split([extent.range for extent in extents], job.numjobs, unit)
        empty = next((worker for worker, part in enumerate(parts) if not part), None)
        if empty is not None:
            total = sum(extent.range.length for extent in extents)
            message = (
                f"share: split leaves worker {empty} of {job.numjobs} nothing of {total} bytes in blocks of {unit}"
            )
            raise self._wrong(job, "numjobs", message, "fewer workers, smaller blocks or a larger size")
        return [
            [_Extent(extents[i].path, piece, extents[i].known, extents[i].owned) for i, piece in part] for part in parts
        ]

    def _check_blocks(self, job: Job, extents: list[_Extent]) -> None:
        """A block that fits into no file is a mistake, not a short block; in some files it may be the odd tail."""
        decided = [extent for extent in extents if extent.decided]
        if not decided:
            return
        empty = next((extent for extent in decided if extent.range.length == 0), None)
        longest = max(decided, key=lambda extent: extent.range.length)
        if longest.range.length < job.largest_block:
            raise self._does_not_fit(job, longest)
        if empty is not None:
            raise self._does_not_fit(job, empty)

    def _does_not_fit(self, job: Job, extent: _Extent) -> _UnplannableError:
        size = "not given" if job.size is None else str(job.size)
        if isinstance(job.size, int):
            size = f"{format_size(job.size)} for {job.files} file{'s' if job.files > 1 else ''}"
        there = "not there yet" if extent.known.kind == "missing" else f"of {extent.known.nbytes} bytes"
        message = (
            f"block_size {format_size(job.largest_block)} is larger than the {extent.range.length} bytes to cover "
            f"(size {size}, offset {extent.range.start}, file {extent.path} {there})"
        )
        return self._wrong(job, "block_size", message)

    def _check_end(self, job: Job, path: str, known: Known, wanted: Range, owned: bool) -> None:
        """What cannot grow must be long enough: devices, and files of the user's that the job only reads."""
        fixed = known.kind == "block" or (known.kind == "file" and known.exists and not owned and not job.writes)
        if not fixed or wanted.end <= known.nbytes or (known.kind == "file" and made_by_gdsfw(path)):
            return
        what = "device" if known.kind == "block" else "file"
        asked = f"offset {wanted.start}" + ("" if job.size is None else f" and size {wanted.length}")
        message = f"{asked} is beyond the {known.nbytes} bytes of {what} {path}"
        raise self._wrong(job, "size" if job.size is not None else "offset", message)

    def _check_kind(self, job: Job, key: str, path: str, known: Known) -> None:
        if known.kind == "directory":
            hint = "did you mean directory:" if key == "filename" else None
            raise self._wrong(job, key, f"{path} is a directory", hint)
        if known.kind == "special":
            self._complaints.refused(job.name, key, f"{path} is neither a regular file nor a block device")
            raise _UnplannableError
        if known.kind in ("missing", "file") and (folder := _system_folder(path)):
            what = "would become a new regular file" if known.kind == "missing" else "is no ordinary file"
            hint = "check the name, and the variables in it"
            self._complaints.refused(job.name, key, f"{path} {what} below {folder}", hint)
            raise _UnplannableError

    def _check_folder(self, job: Job, own_namespace: bool) -> None:
        folder = os.path.expanduser(job.directory)  # noqa: PTH111 - names of backends are no paths
        if not own_namespace and self._known.look(folder).kind in ("file", "block", "special"):
            raise self._wrong(job, "directory", f"directory {folder} is no directory", "did you mean filename:")

    def _wrong(self, job: Job, key: str, message: str, hint: str | None = None) -> _UnplannableError:
        self._complaints.wrong(job.name, key, message, hint)
        return _UnplannableError()


def _unit(job: Job) -> int:
    """Bytes that workers and files of one size are told apart by."""
    return job.block_align or job.largest_block


def _join(job: Job, name: str, own_namespace: bool) -> str:
    if own_namespace:
        return name if job.directory == "." else f"{job.directory.rstrip('/')}/{name}"
    return os.path.join(os.path.expanduser(job.directory), os.path.expanduser(name))  # noqa: PTH111, PTH118


def _system_folder(path: str) -> str | None:
    """Which of the kernel's own folders `path` is in, links on the way followed."""
    real = os.path.join(os.path.realpath(os.path.dirname(path) or "."), os.path.basename(path))  # noqa: PTH118, PTH119, PTH120
    if any(real.startswith(f"{folder}/") for folder in ORDINARY):
        return None
    return next((folder for folder in SYSTEM_FOLDERS if real.startswith(f"{folder}/")), None)


def _file_plans(extents: Sequence[_Extent], own_namespace: bool) -> tuple[FilePlan, ...]:
    return tuple(
        FilePlan(
            path=extent.path,
            file_id=file_id(extent.path, own_namespace=own_namespace),
            start=extent.range.start,
            length=extent.range.length,
            nbytes=extent.range.end if extent.decided else 0,
            create=not extent.known.exists,
            owned=extent.owned,
            decided_at_start=not extent.decided,
        )
        for extent in extents
    )
