"""The GPU backends on the vendors' stand-ins: every path moves the right bytes and says which way they took."""

from __future__ import annotations

import re
import shutil
import zlib
from pathlib import Path
from typing import Any

import pytest
from fakes.driving import OnStandin, has_direct_io, said, written_and_read
from gdsfw.workload import presets

QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart.yaml"


def verified(result: dict[str, Any]) -> bool:
    """Whether a job checked what it should, and found it right."""
    checked: int = result["verify"]["checked_bytes"]
    return checked > 0 and result["verify"]["bad_blocks"] == 0


def test_the_quickstart_beside_the_cpu(on: OnStandin) -> None:
    small = ["--set", "defaults.size=1MiB", "--set", "jobs.lookup.runtime=50ms"]
    workload = on.gdsfw.folder / "quickstart.yaml"
    workload.write_text(QUICKSTART.read_text())
    arguments = ["--backend", on.backend, "--backend", "posix", *small]
    ended = on.ended(on.start(workload, arguments=arguments))
    assert [job["transport"]["kind"] for job in ended.jobs] == ["staged"] * 3 + ["host"] * 3
    assert all(verified(job) for job in ended.jobs if job["name"] != "ingest")
    assert "io_path auto: staged, because" in said(ended)


def test_every_path_reads_what_it_wrote(on: OnStandin) -> None:
    jobs = [
        job
        for path, depth in (("sync", 1), ("batch", 16), ("stream", 8), ("staged", 1), ("staged", 32), ("auto", 4))
        for job in written_and_read(path, iodepth=depth, numjobs=2)
    ]
    for number, job in enumerate(jobs):
        job["name"] += f"-{number // 2}"
        if "files_from" in job:
            job |= {"files_from": f"{job['files_from']}-{number // 2}", "share": "split"}
    ended = on.run(*jobs)
    kinds = [job["transport"]["kind"] for job in ended.jobs]
    assert kinds == ["compat"] * 6 + ["staged"] * 6
    assert all(job["verify"]["checked_bytes"] == 512 << 10 for job in ended.jobs[1::2])
    assert all(verified(job) for job in ended.jobs[1::2])
    assert "bounced the bytes through host memory" in said(ended)


def test_blocks_and_files_of_any_size(on: OnStandin) -> None:
    jobs = []
    for path in ("sync", "batch", "stream", "staged"):
        write, read = written_and_read(path, size=(1 << 17) + 511, iodepth=2)
        jobs += [write | {"block_size": "12KiB"}, read | {"block_size": 1000}]
    ended = on.run(*jobs)
    assert all(job["verify"]["checked_bytes"] == (1 << 17) + 511 for job in ended.jobs[1::2])


@pytest.mark.parametrize("block", ["4KiB", "64KiB"])
def test_shares_to_compress_and_to_repeat_hold_in_gpu_memory_as_in_the_hosts(on: OnStandin, block: str) -> None:
    job = {"name": "w", "rw": "write", "size": "2MiB", "block_size": block, "buffer_compress": 50, "buffer_dedupe": 25}
    content = {}
    for backend, path in ((on.backend, "staged"), (on.backend, "sync"), ("posix", "psync")):
        ended = on.run({**job, "backend": backend, "io_path": path, "filename": f"{backend}-{path}"})
        assert "is not kept" not in said(ended)
        (file,) = ended.jobs[0]["files"]
        content[backend, path] = (on.gdsfw.folder / file).read_bytes()
    assert len(set(content.values())) == 1
    data = next(iter(content.values()))
    assert len(zlib.compress(data[:4096])) == pytest.approx(2048, rel=0.05)
    size = {"4KiB": 4 << 10, "64KiB": 64 << 10}[block]
    blocks = [data[at : at + size] for at in range(0, len(data), size)]
    repeated = max(blocks.count(one) for one in set(blocks))
    assert 0.1 < repeated / len(blocks) < 0.45
    assert len(set(blocks)) == len(blocks) - repeated + 1


def test_a_flipped_bit_is_found_in_gpu_memory(on: OnStandin) -> None:
    paths = ("sync", "batch", "stream", "staged")
    writes = [written_and_read(path)[0] for path in paths]
    on.run(*writes)
    reads = []
    for path, write in zip(paths, writes, strict=True):
        file = on.folder / "data" / f"w-{path}.0.0"
        content = bytearray(file.read_bytes())
        content[77_777] ^= 0x10
        file.write_bytes(content)
        reads.append(write | {"name": f"r-{path}", "filename": str(file), "rw": "read"})
    ended = on.run(*reads, code=1)
    for job in ended.jobs:
        (mismatch,) = job["verify"]["mismatches"]
        assert (mismatch["file_offset"], mismatch["bad_bytes"]) == (77_777, 1)


def test_peer_to_peer_is_told_by_the_librarys_own_count(on: OnStandin) -> None:
    if not has_direct_io(on.folder):
        pytest.skip(f"{on.folder} has no direct I/O")
    counts = {} if on.hip else on.options(statistics=True, p2pdma=True)
    jobs = [
        job for path in ("sync", "batch", "stream") for job in written_and_read(path, iodepth=4, direct=True, **counts)
    ]
    jobs.append({**jobs[1], "name": "auto", "io_path": "auto", "iodepth": 1, "require_transport": "p2p"})
    ended = on.run(*jobs, settings={"p2p": "p2pdma"})
    for job in ended.jobs:
        assert job["transport"]["kind"] == "p2p", job
        assert job["transport"]["cache"] == "bypassed"
    assert ended.jobs[-1]["io_path"] == "sync"
    assert "io_path auto: sync, because a test read went peer-to-peer" in said(ended)
    assert "bounced" not in " ".join(ended.jobs[0]["warnings"])


def test_a_run_that_fell_back_says_so(on: OnStandin) -> None:
    """cuFile bounces without O_DIRECT, hipFile what is not aligned."""
    jobs = written_and_read(
        "sync", block_size=2048, direct=False, **({} if on.hip else on.options(statistics=True, p2pdma=True))
    )
    ended = on.run(*jobs, settings={"p2p": "p2pdma"})
    for job in ended.jobs:
        assert job["transport"]["kind"] == "compat"
        assert job["transport"]["evidence"][0].startswith("fell back: ")
    assert "fell back: " in said(ended)


def test_auto_is_staged_where_a_test_read_falls_back(on: OnStandin) -> None:
    write, read = written_and_read(
        "auto", block_size=2048, direct=False, **({} if on.hip else on.options(statistics=True, p2pdma=True))
    )
    ended = on.run(write | {"io_path": "staged"}, read, settings={"p2p": "p2pdma"})
    assert ended.jobs[1]["io_path"] == "staged"
    assert verified(ended.jobs[1])
    assert "io_path auto: staged, because no test read went peer-to-peer: fell back" in said(ended)


def test_an_old_and_a_new_library_get_the_same_verdict(on: OnStandin) -> None:
    """That a file could be registered proves nothing, whatever the version; without counters there is no verdict."""
    for version in ("0.2.0", "0.6.0") if on.hip else (1110, 1170):
        ended = on.run(*written_and_read("sync"), settings={"version": version})
        assert {job["transport"]["kind"] for job in ended.jobs} == {"compat"}
    if on.hip:
        silent = OnStandin(on.standin.variant(without=["statistics3"]), on.folder)
        ended = silent.run(*written_and_read("sync"), *written_and_read("auto"))
        assert [job["transport"]["kind"] for job in ended.jobs] == ["unknown", "unknown", "staged", "staged"]


def test_a_transport_that_is_not_there_fails_before_measuring(on: OnStandin) -> None:
    read = {"name": "r", "rw": "read", "io_path": "sync", "require_transport": "p2p"}
    ended = on.run(read, code=3)
    assert "require_transport is p2p, but a test read went by compat" in said(ended)
    assert ended.jobs[0]["read"]["ios"] == 0


@pytest.mark.parametrize(("compat", "code"), [("force", 0), ("forbid", 3)])
def test_the_bounce_can_be_forced_and_forbidden(on: OnStandin, compat: str, code: int) -> None:
    """Forbidden without a direct way: cuFile's driver does not open, hipFile's first transfer fails."""
    write, read = written_and_read("sync", **on.options(compat=compat))
    ended = on.run(write, read, settings={"p2p": 1} if compat == "force" else None, code=code)
    if not code:
        assert {job["transport"]["kind"] for job in ended.jobs} == {"compat"}
    else:
        assert ("hipFileInternalError" if on.hip else "DRIVER_NOT_INITIALIZED") in said(ended).replace("-", "_")


def test_what_one_call_does_not_move_is_asked_for_again(on: OnStandin) -> None:
    """As hipFile cuts a transfer at 0x7ffff000 bytes; here at 64 KiB."""
    jobs = written_and_read("sync", block_size="160KiB", size="320KiB")
    ended = on.run(*jobs, settings={"max_io": 65536})
    assert verified(ended.jobs[1])
    assert ended.jobs[1]["verify"]["checked_bytes"] == 320 << 10


def test_short_counts_are_made_up_for_and_counted(on: OnStandin) -> None:
    jobs = [job for path in ("sync", "batch", "stream") for job in written_and_read(path, iodepth=4)]
    ended = on.run(*jobs, rules=["short=read:%3:4096", "short=batch_entry:%3:512", "short=stream_io:%3:512"])
    for job in ended.jobs[1::2]:
        assert verified(job)
        assert job["read"]["short_ios"] > 0


def test_buffers_are_registered_once_per_io_or_not_at_all(on: OnStandin) -> None:
    """Two jobs each: two buffers, 32 blocks, none."""
    jobs = []
    for how in ("once", "per_io", "none"):
        write, read = written_and_read("sync", register_buffers=how)
        jobs += [write | {"name": f"w-{how}"}, read | {"name": f"r-{how}", "files_from": f"w-{how}"}]
    ended = on.run(*jobs)
    assert all(verified(job) for job in ended.jobs[1::2])
    assert on.calls("buffer_register") == on.calls("buffer_deregister") == 2 + 32


def test_queues_register_each_block_when_asked_to(on: OnStandin) -> None:
    jobs = [
        job
        for path in ("batch", "stream", "staged")
        for job in written_and_read(path, iodepth=4, register_buffers="per_io")
    ]
    ended = on.run(*jobs)
    assert all(verified(job) for job in ended.jobs[1::2])
    assert on.calls("buffer_register") == 4 * 16


def test_handles_are_each_workers_own_or_shared(on: OnStandin) -> None:
    """Four workers: four handles of the first file, one of the second."""
    jobs = [
        {
            "name": handles,
            "rw": "write",
            "filename": str(on.folder / handles),
            "file_handles": handles,
            "numjobs": 4,
            "share": "split",
            "io_path": "sync",
        }
        for handles in ("per_worker", "shared")
    ]
    on.run(*jobs)
    assert on.calls("handle_register") == 4 + 1


@pytest.mark.parametrize(("example", "kind"), [("gpu-library", "compat"), ("gpu-posix", "staged")])
def test_fios_two_gpu_jobs(on: OnStandin, example: str, kind: str) -> None:
    workload = QUICKSTART.with_name(f"{example}.yaml")
    short = [f"--set=jobs.{name}.runtime=30ms" for name in ("read", "randread", "randwrite")]
    environ = {"GDSFW_SIZE": "1MiB", "GDSFW_DIR": str(on.folder / "data")}
    ended = on.ended(on.start(workload, environ=environ, arguments=["--backend", on.backend, *short]))
    assert [job["transport"]["kind"] for job in ended.jobs] == [kind] * 5
    (checked,) = (job["verify"]["checked_bytes"] for job in ended.jobs if job["name"] == "verify")
    assert checked == 8 << 20


def test_the_preset_measures_every_path_and_advises(on: OnStandin) -> None:
    workload = on.gdsfw.folder / "gpu-paths.yaml"
    workload.write_text(presets.text("gpu-paths"))
    named = re.findall(r"- name: (\S+)", workload.read_text())
    short = [f"--set=jobs.{name}.{key}=30ms" for name in named[1:] for key in ("runtime", "ramp_time")]
    environ = {"GDSFW_SIZE": "1MiB", "GDSFW_DIR": str(on.folder / "data")}
    ended = on.ended(on.start(workload, environ=environ, arguments=["--backend", on.backend, *short]))
    assert {job["status"] for job in ended.jobs} == {"done"}
    advised = re.findall(r"which io_path: (\S+): (\w+), ", ended.stdout)
    assert [name for name, _ in advised] == named[1:]
    assert {path for _, path in advised} <= {"sync", "batch", "stream", "staged", "mapped"}


def test_a_files_own_pages_are_read_by_the_gpu(on: OnStandin) -> None:
    write, read = written_and_read("mapped", iodepth=8)
    ended = on.run(write | {"io_path": "staged"}, read)
    assert verified(ended.jobs[1])
    assert ended.jobs[1]["transport"]["kind"] == "mapped"
    if shutil.which("c++"):
        assert "mapped: kernel below 128 KiB" in said(ended)
