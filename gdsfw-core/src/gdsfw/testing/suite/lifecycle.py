"""What is opened can be closed: at every point of a job's life, in every order that is allowed, and again."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from gdsfw.backend import Worker
from gdsfw.errors import GdsfwError
from gdsfw.testing.capabilities import need_memory
from gdsfw.testing.subject import PAGE
from gdsfw.testing.suite.common import data, each_way, fails, note, same

if TYPE_CHECKING:
    from gdsfw.testing.subject import OpenJob, Subject

#: A job may end after any of these, because it failed or was stopped.
STEPS = ("worker_start", "alloc", "register_buffer", "register_file", "io")


class TestLifecycle:
    """Opening, and undoing it in reverse."""

    def test_a_job_without_io_ends_and_can_be_run_again(self, subject: Subject) -> None:
        for _ in range(2):
            with subject.rig():
                pass

    def test_every_path_opens_under_its_name(self, subject: Subject) -> None:
        for name in subject.paths(_directions(subject)):
            note("path", name)
            with subject.rig(io_path=name, rw=_directions(subject)) as rig:
                assert rig.path.name == name or name == "auto"
                assert rig.path.iodepth >= 1

    @pytest.mark.parametrize("last", STEPS)
    def test_a_job_that_ends_early_is_undone(self, subject: Subject, last: str) -> None:
        for _ in range(2):
            with subject.job(rw=_directions(subject)) as job:
                _live_until(job, last)
        with subject.rig(rw=_directions(subject)):
            pass

    def test_a_session_without_files_closes(self, subject: Subject) -> None:
        for _ in range(2):
            session = subject.hooks.gdsfw_open(options=subject.options)
            subject.hooks.gdsfw_close(session=session)

    def test_sessions_overlap(self, subject: Subject) -> None:
        """The first one opened may be the first one closed: a library is counted, not owned by one session."""
        rw = _directions(subject)
        with subject.job(names=["kept"], rw=rw) as kept:
            with ExitStack() as first:
                first.enter_context(subject.rig(names=["early"], rw=rw))
                rig = first.enter_context(kept.worker())
                assert rig.buffer.nbytes
            with kept.worker() as later:
                assert later.path.files

    def test_files_close_in_the_order_in_which_they_were_opened(self, subject: Subject) -> None:
        hooks = subject.hooks
        session = hooks.gdsfw_open(options=subject.options)
        targets = [subject.target(name, 4096, create=True) for name in ("first", "second")]
        files = [hooks.gdsfw_open_file(session=session, target=target, mode="rw") for target in targets]
        for file in files:
            hooks.gdsfw_close_file(session=session, file=file)
        hooks.gdsfw_close(session=session)

    def test_workers_end_in_either_order(self, subject: Subject) -> None:
        with subject.job(names=["one", "two"]) as job:
            for first_goes_first in (True, False):
                stacks = [ExitStack(), ExitStack()]
                for index, stack in enumerate(stacks):
                    stack.enter_context(job.worker(index, registers=index == 0))
                for stack in stacks if first_goes_first else reversed(stacks):
                    stack.close()

    def test_files_may_be_registered_before_the_buffer_is_there(self, subject: Subject) -> None:
        with subject.job() as job, ExitStack() as undo:
            worker = _start(job, undo)
            _register_files(job, worker, undo)
            buffer = _alloc(job, worker, undo)
            path = job.hooks.gdsfw_io(worker=worker, files=job.files, buffer=buffer, request=job.request)
            undo.callback(path.close)

    def test_after_a_failed_open_the_next_job_works(self, subject: Subject) -> None:
        subject.need("data")
        with fails(), subject.rig(names=["absent"], rw="read"):
            pass
        for rig, _, io in each_way(subject):
            rig.write(0, data(4096), io=io)
            same(rig.read(0, 4096, io=io), data(4096))

    def test_the_way_the_bytes_took_is_told_after_a_snapshot(self, subject: Subject) -> None:
        for rig, _, _ in each_way(subject):
            before = rig.hooks.gdsfw_transport(worker=rig.worker, path=rig.path, before=None)
            rig.write(0, data(4096))
            told = rig.hooks.gdsfw_transport(worker=rig.worker, path=rig.path, before=before)
            assert told.kind in ("p2p", "compat", "staged", "mapped", "host", "none", "unknown")
            assert told.cache in ("bypassed", "cold", "warm", "unknown")
            assert told.evidence or told.kind == "unknown", "a way without evidence"

    @pytest.mark.parametrize("mode", ["device", "fsync", "fdatasync"])
    def test_sync_outside_the_loop(self, subject: Subject, mode: str) -> None:
        for rig, _, _ in each_way(subject):
            rig.write(0, data(4096))
            rig.hooks.gdsfw_sync(worker=rig.worker, file=rig.file, mode=mode)


class TestBuffers:
    """Memory of every kind that the backend declares."""

    @pytest.mark.parametrize("memory", ["host", "hugepage", "pinned", "device"])
    def test_a_buffer_is_as_large_as_asked_and_aligned(self, subject: Subject, memory: str) -> None:
        need_memory(subject.info, memory)
        for nbytes in (1, PAGE, 1 << 20):
            try:
                with subject.rig(block=nbytes, memory=memory) as rig:
                    buffer = rig.buffer
                    assert buffer.nbytes >= nbytes
                    assert buffer.memory == memory
                    assert buffer.address
                    assert buffer.address % PAGE == 0
                    assert buffer.host_view is None or buffer.host_view.nbytes >= nbytes
            except GdsfwError as refusal:
                # This machine may have no huge pages to give; then the user is told how to get some.
                if memory != "hugepage" or not refusal.hint:
                    raise

    def test_buffers_of_two_workers_do_not_overlap(self, subject: Subject) -> None:
        with subject.job() as job, job.worker() as one, job.worker(1, registers=False) as two:
            first, second = sorted((rig.buffer.address, rig.buffer.nbytes) for rig in (one, two))
            assert first[0] + first[1] <= second[0]
            one.put(0, b"1" * PAGE)
            two.put(0, b"2" * PAGE)
            same(one.get(0, PAGE), b"1" * PAGE)

    def test_copies_reach_the_buffer_at_their_offset(self, subject: Subject) -> None:
        with subject.rig(block=8192) as rig:
            rig.put(0, bytes(8192))
            rig.put(4097, b"marker")
            same(rig.get(4096, 8), b"\0marker\0")

    def test_memory_that_nobody_has_is_refused(self, subject: Subject) -> None:
        with subject.job(block=4096) as job, ExitStack() as undo:
            worker = _start(job, undo)
            with fails():
                job.hooks.gdsfw_alloc(worker=worker, nbytes=1 << 60, memory=subject.info.memory[0], alignment=PAGE)


def _directions(subject: Subject) -> Any:
    paths = subject.info.io_paths
    return "readwrite" if any(path.reads and path.writes for path in paths) else "read"


def _live_until(job: OpenJob, last: str) -> None:
    """A worker's life up to a step, undone in reverse."""
    with ExitStack() as undo:
        worker = _start(job, undo)
        if last == "worker_start":
            return
        buffer = _alloc(job, worker, undo)
        if last == "alloc":
            return
        job.hooks.gdsfw_register_buffer(worker=worker, buffer=buffer)
        undo.callback(job.hooks.gdsfw_deregister_buffer, worker=worker, buffer=buffer)
        if last == "register_buffer":
            return
        _register_files(job, worker, undo)
        if last == "register_file":
            return
        path = job.hooks.gdsfw_io(worker=worker, files=job.files, buffer=buffer, request=job.request)
        undo.callback(path.close)


def _start(job: OpenJob, undo: ExitStack) -> Worker:
    worker = Worker(job.job, 0, options=job.options, session=job.session, device=job.subject.device)
    worker.state = job.hooks.gdsfw_worker_start(session=job.session, worker=worker)
    undo.callback(job.hooks.gdsfw_worker_stop, worker=worker)
    return worker


def _alloc(job: OpenJob, worker: Worker, undo: ExitStack) -> Any:
    memory = job.subject.info.memory[0]
    buffer = job.hooks.gdsfw_alloc(worker=worker, nbytes=65536, memory=memory, alignment=PAGE)
    undo.callback(job.hooks.gdsfw_free, worker=worker, buffer=buffer)
    return buffer


def _register_files(job: OpenJob, worker: Worker, undo: ExitStack) -> None:
    for file in job.files:
        job.hooks.gdsfw_register_file(worker=worker, file=file, request=job.request)
        undo.callback(job.hooks.gdsfw_deregister_file, worker=worker, file=file)
