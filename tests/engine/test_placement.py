"""Where a worker's memory and thread are: huge pages, NUMA nodes, CPUs."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gdsfw
import pytest
from gdsfw import host_memory
from gdsfw.engine.numa import bind_memory
from gdsfw.errors import UnavailableError
from gdsfw.workload.loader import load_data

NODES = Path("/sys/devices/system/node")
HUGE_PAGES = Path("/proc/sys/vm/nr_hugepages")
needs_nodes = pytest.mark.skipif(not (NODES / "node0").exists(), reason="the kernel knows no NUMA nodes")


def in_thread(step: Callable[[], object]) -> Any:
    """What `step` returns or raises in a thread of its own, whose memory policy ends with it."""
    answer: list[object] = []

    def body() -> None:
        try:
            answer.append(step())
        except Exception as error:
            answer.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    if isinstance(answer[0], Exception):
        raise answer[0]
    return answer[0]


def bound_buffer() -> str:
    """The line of /proc/thread-self/numa_maps for a buffer that was allocated after binding."""
    bind_memory(0)
    buffer = host_memory.allocate(1 << 22)
    maps = Path("/proc/thread-self/numa_maps").read_text().splitlines()
    start = max(int(line.split()[0], 16) for line in maps if int(line.split()[0], 16) <= buffer.address)
    found = next(line for line in maps if int(line.split()[0], 16) == start)
    host_memory.free(buffer)
    return found


@needs_nodes
def test_a_buffer_lies_on_the_node_that_its_thread_was_bound_to() -> None:
    try:
        line = in_thread(bound_buffer)
    except UnavailableError as refused:
        pytest.skip(refused.message)
    assert " bind:0 " in line
    assert not [word for word in line.split() if word[0] == "N" and word[1].isdigit() and not word.startswith("N0=")]


@needs_nodes
def test_a_node_without_memory_is_named_with_what_else_would_do() -> None:
    with pytest.raises(UnavailableError, match="memory cannot be bound to node 1000") as caught:
        in_thread(lambda: bind_memory(1000))
    assert "`cpus`" in (caught.value.hint or "")


@needs_nodes
@pytest.mark.parametrize("where", [{"numa": 0}, {"cpus": [min(os.sched_getaffinity(0))]}, {"cpus": "auto"}])
def test_a_job_runs_where_it_was_told_to(where: dict[str, Any]) -> None:
    job = {"name": "placed", "backend": "noop", "rw": "read", "size": "1MiB", **where}
    result = gdsfw.run(load_data({"version": 1, "jobs": [job]})).jobs[0]
    if result.errors and "set_mempolicy" in result.errors[0].message:
        pytest.skip(result.errors[0].message)
    assert (result.exit_code, result.errors) == (0, [])


def test_huge_pages_that_are_not_reserved_are_asked_for_by_number() -> None:
    if int(HUGE_PAGES.read_text()) > 0:
        pytest.skip("this machine has huge pages")
    with pytest.raises(UnavailableError, match="0 are reserved and 0 free") as caught:
        host_memory.allocate(5 << 20, "hugepage")
    assert "/proc/sys/vm/nr_hugepages" in (caught.value.hint or "")
    assert "3 huge pages" in caught.value.message or "1 huge pages" in caught.value.message


def test_a_huge_page_buffer_is_aligned_to_its_page() -> None:
    try:
        buffer = host_memory.allocate(5 << 20, "hugepage")
    except UnavailableError as refused:
        pytest.skip(refused.message)
    assert buffer.address % (1 << 20) == 0
    host_memory.free(buffer)
