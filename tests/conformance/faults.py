"""Sound backends and what to break in them: a piece of the source, what takes its place, the test that finds it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
RAMDISK = HERE.parents[1] / "examples/backends/gdsfw-ramdisk/src/gdsfw_ramdisk/__init__.py"


class Fault(NamedTuple):
    """`right` becomes `wrong`, and `caught_by` (a class and a test, perhaps with its parameter) fails."""

    right: str
    wrong: str
    caught_by: str
    source: Path = RAMDISK
    backend: str = "ramdisk"


def _of(name: str, right: str, wrong: str, caught_by: str) -> Fault:
    return Fault(right, wrong, caught_by, HERE / f"{name}_backend.py", name)


_STORE = (
    "            file.state[file_offset : file_offset + size] = self._buffer[buffer_offset : buffer_offset + size]\n"
)
_LOAD = "        self._buffer[buffer_offset : buffer_offset + len(piece)] = piece\n"
_REFUSE = "            raise OSError(errno.EBADF, os.strerror(errno.EBADF), file.target.name)\n"
_FLUSH = (
    "    def flush(self, file: FileHandle, data_only: bool) -> None:\n"
    '        """Memory is all the storage there is."""\n'
)
_FREE = "    host_memory.free(buffer)\n"
_ALLOC = "    return host_memory.allocate(nbytes, memory, alignment)\n"
_PATH = '    return IOPath("copy", files, python=_Copy(buffer.host_view))\n'
_HOOK = "\n\n@hookimpl\ndef "

FAULTS = {
    # ---- the data plane ----
    "a count that is too large": Fault(
        "        return len(piece)\n",
        "        return size\n",
        "TestCounts::test_a_read_across_the_end_moves_what_is_there[100]",
    ),
    "more than was asked for": Fault(
        "        return size\n", "        return size + 1\n", "TestCounts::test_a_count_is_never_more_than_was_asked"
    ),
    "an error instead of the end of the file": Fault(
        "        return len(piece)\n",
        "        if not piece:\n            raise OSError(errno.EIO, 'end')\n        return len(piece)\n",
        "TestCounts::test_behind_the_end_there_is_nothing",
    ),
    "reads ignore the file offset": Fault(
        "file.state[file_offset : file_offset + size]\n        self",
        "file.state[0:size]\n        self",
        "TestIntegrity::test_offsets_of_the_file[4096]",
    ),
    "writes ignore the file offset": Fault(
        _STORE,
        _STORE.replace("[file_offset : file_offset + size]", "[0:size]"),
        "TestIntegrity::test_a_rewrite_replaces",
    ),
    "offsets are cut to 16 bits": Fault(
        "        piece = file.state[file_offset : file_offset + size]\n",
        "        file_offset &= 0xFFFF\n        piece = file.state[file_offset : file_offset + size]\n",
        "TestIntegrity::test_offsets_of_the_file[65537]",
    ),
    "reads ignore the buffer offset": Fault(
        _LOAD,
        "        self._buffer[: len(piece)] = piece\n",
        "TestIntegrity::test_offsets_of_the_buffer[4096]",
    ),
    "writes ignore the buffer offset": Fault(
        _STORE,
        _STORE.replace("[buffer_offset : buffer_offset + size]", "[:size]"),
        "TestIntegrity::test_offsets_of_the_buffer[512]",
    ),
    "a read spoils the byte behind its place": Fault(
        _LOAD,
        _LOAD + "        self._buffer[(buffer_offset + size) % len(self._buffer)] = 0\n",
        "TestIntegrity::test_offsets_of_the_buffer[512]",
    ),
    "a write changes the buffer": Fault(
        _STORE,
        _STORE + "            self._buffer[buffer_offset] ^= 1\n",
        "TestIntegrity::test_a_write_leaves_the_buffer_as_it_is",
    ),
    "a write that moves nothing": Fault(_STORE, "", "TestIntegrity::test_blocks_of_any_size[4096]"),
    "large blocks are cut": Fault(
        _STORE,
        "            size = min(size, 8 << 20)\n" + _STORE + "            size = 16 << 20\n",
        "TestIntegrity::test_blocks_of_any_size[16777216]",
    ),
    "holes are not zero": Fault(
        "bytes(max(0, file_offset + size - len(file.state)))",
        "b'?' * max(0, file_offset + size - len(file.state))",
        "TestIntegrity::test_holes_read_as_zeros",
    ),
    "flush is missing": Fault(_FLUSH, "", "TestIntegrity::test_a_flush_keeps_the_data"),
    "nothing is ever flushed": Fault(
        'writable=mode == "rw", state=contents)\n',
        'writable=mode == "rw", state=bytearray(contents))\n',
        "TestIntegrity::test_after_a_flush_another_session_sees_the_data",
    ),
    "a flush in the loop fails": Fault(
        _FLUSH, _FLUSH + "        raise OSError(errno.EIO, 'no flush')\n", "TestLoops::test_a_loop_flushes_at_its_end"
    ),
    # ---- errors ----
    "an error is swallowed": Fault(
        _REFUSE,
        "            return size\n",
        "TestErrors::test_writing_to_a_file_that_was_opened_for_reading_fails",
    ),
    "an error of the wrong type": Fault(
        _REFUSE,
        "            raise ValueError('read-only')\n",
        "TestErrors::test_writing_to_a_file_that_was_opened_for_reading_fails",
    ),
    "an error without a text": Fault(
        'UnavailableError(f"there is no file {target.name!r}", hint="write it in an earlier job")\n',
        "UnavailableError('')\n",
        "TestFiles::test_a_missing_file_cannot_be_opened_for_reading",
    ),
    "a loop never sees the end": Fault(
        "        return len(piece)\n",
        "        return len(piece) or size\n",
        "TestErrors::test_a_loop_reports_an_error_once",
    ),
    "codes without a name": Fault(
        _HOOK + "gdsfw_transport(",
        _HOOK
        + "gdsfw_error(code: int):\n    from gdsfw.backend import ErrorInfo\n\n    return ErrorInfo('', '')\n"
        + _HOOK
        + "gdsfw_transport(",
        "TestHooks::test_every_error_code_has_a_name_and_a_text",
    ),
    # ---- the life of a job ----
    "gdsfw_io returns None": Fault(
        _PATH, "    return None\n", "TestLifecycle::test_a_job_that_ends_early_is_undone[io]"
    ),
    "a path under another name": Fault(
        _PATH, _PATH.replace('"copy"', '"other"'), "TestLifecycle::test_every_path_opens_under_its_name"
    ),
    "the buffer is freed twice": Fault(
        _FREE,
        _FREE + "    buffer.state.close()\n",
        "TestLifecycle::test_a_job_that_ends_early_is_undone[alloc]",
    ),
    "the first session that closes closes them all": Fault(
        _HOOK + "gdsfw_transport(",
        _HOOK
        + "gdsfw_open() -> dict:\n    globals()['_files_were'] = FILES\n    return FILES\n"
        + _HOOK
        + "gdsfw_close() -> None:\n    del globals()['_files_were']\n"
        + _HOOK
        + "gdsfw_transport(",
        "TestLifecycle::test_sessions_overlap",
    ),
    "a way without evidence": Fault(
        ', evidence=("files are in this process\'s memory",)',
        "",
        "TestLifecycle::test_the_way_the_bytes_took_is_told_after_a_snapshot",
    ),
    "one buffer for all workers": Fault(
        _ALLOC,
        "    return globals().setdefault('ONE', host_memory.allocate(32 << 20, memory, alignment))\n",
        "TestBuffers::test_buffers_of_two_workers_do_not_overlap",
    ),
    "a buffer that is too small": Fault(
        _ALLOC,
        "    return host_memory.allocate(nbytes // 2, memory, alignment)\n",
        "TestBuffers::test_a_buffer_is_as_large_as_asked_and_aligned[host]",
    ),
    "memory runs out in silence": Fault(
        _ALLOC,
        "    return host_memory.allocate(min(nbytes, 1 << 26), memory, alignment)\n",
        "TestBuffers::test_memory_that_nobody_has_is_refused",
    ),
    # ---- files ----
    "a missing file is made up": Fault(
        'if target.name not in FILES and not (mode == "rw" and target.create):',
        "if False:",
        "TestFiles::test_a_missing_file_cannot_be_opened_for_reading",
    ),
    "a failed open leaves a file": Fault(
        "        raise UnavailableError(",
        "        FILES[target.name] = bytearray()\n        raise UnavailableError(",
        "TestFiles::test_a_job_that_only_reads_makes_no_file",
    ),
    "all names are one file": Fault(
        "FILES.setdefault(target.name, bytearray())",
        "FILES.setdefault('one', FILES.setdefault(target.name, bytearray()))",
        "TestFiles::test_two_names_are_two_files",
    ),
    "opening empties a file": Fault(
        "    contents = FILES.setdefault(target.name, bytearray())\n",
        "    contents = FILES[target.name] = bytearray()\n",
        "TestFiles::test_opening_a_file_to_write_keeps_what_is_in_it",
    ),
    "a file without its size": Fault(
        "replace(target, nbytes=len(contents))", "target", "TestFiles::test_an_open_file_tells_its_size"
    ),
    # ---- what is left behind ----
    "a descriptor leaks": Fault(
        _FREE,
        _FREE + "    os.open('/dev/null', os.O_RDONLY)\n",
        "TestLeaks::test_many_jobs_leave_nothing_behind",
    ),
    "a buffer leaks": Fault(
        _FREE,
        "    globals().setdefault('_LOST', []).append(buffer)\n",
        "TestLeaks::test_many_jobs_leave_nothing_behind",
    ),
    "a thread leaks": Fault(
        _FREE,
        _FREE + "    threading.Thread(target=threading.Event().wait, daemon=True).start()\n",
        "TestLeaks::test_many_jobs_leave_nothing_behind",
    ),
    # ---- what it says of itself ----
    "a capability that nobody knows": Fault(
        '"sparse"', '"elastic"', "TestHooks::test_its_capabilities_are_words_that_gdsfw_knows"
    ),
    "a probe that raises": Fault(
        _HOOK + "gdsfw_transport(",
        _HOOK + "gdsfw_probe() -> None:\n    raise FileNotFoundError('/proc/nothing')\n" + _HOOK + "gdsfw_transport(",
        "TestProbe::test_it_answers_within_five_seconds",
    ),
    "a probe that needs its own machine": Fault(
        _HOOK + "gdsfw_transport(",
        _HOOK
        + "gdsfw_probe(host):\n    host.read('/proc/meminfo').splitlines()\n    return []\n"
        + _HOOK
        + "gdsfw_transport(",
        "TestProbe::test_a_recorded_machine_with_nothing_on_it_is_no_error",
    ),
    # ---- queues ----
    "a request comes back twice": _of(
        "queue",
        "        self._waiting.clear()\n        return done\n",
        "        self._waiting.clear()\n        return done + done\n",
        "TestQueues::test_every_request_completes_once",
    ),
    "more is taken than was given": _of(
        "queue", "        return taken\n", "        return taken + 1\n", "TestQueues::test_every_request_completes_once"
    ),
    "the data of another slot": _of(
        "queue",
        "request.size, request.file_offset, request.buffer_offset)",
        "request.size, request.file_offset, 0)",
        "TestQueues::test_each_request_has_its_own_data_whatever_the_order",
    ),
    "one error spoils all": _of(
        "queue",
        "        return Completion(request.cookie, moved)\n",
        "        self.bad = getattr(self, 'bad', False) or not moved\n"
        "        return Completion(request.cookie, 0 if self.bad else moved)\n",
        "TestQueues::test_a_request_behind_the_end_spoils_no_other",
    ),
    "more depth than it has": _of(
        "queue",
        "iodepth=request.iodepth)\n",
        "iodepth=request.iodepth + 8)\n",
        "TestQueues::test_it_keeps_the_depth_that_it_says",
    ),
    "a depth without a queue": _of(
        "queue", "    def reap(", "    def reap_not(", "TestQueues::test_it_keeps_the_depth_that_it_says"
    ),
    # ---- a table and a Python object ----
    "the table reads, the object reads something else": _of(
        "pair",
        "buffer_offset : buffer_offset + size]], file_offset)\n\n    def write",
        "buffer_offset : buffer_offset + size]], file_offset & ~511)\n\n    def write",
        "TestAgreement::test_both_ways_of_calling_read_the_same",
    ),
    "the object fails where the table does not": _of(
        "pair",
        "        os.fsync(_fd(file))\n",
        "        raise OSError(5, 'no flush')\n",
        "TestIntegrity::test_a_flush_keeps_the_data",
    ),
    "the table has another file": _of(
        "pair",
        "native.FdFile(_fd(file), -1, 1, 0)",
        "native.FdFile(1 << 20, -1, 1, 0)",
        "TestLoops::test_a_loop_moves_as_many_bytes_as_it_says",
    ),
}
