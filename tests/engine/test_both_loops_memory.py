"""Both loops with memory that only the path can touch (a GPU's), and with buffers registered for each I/O."""

from __future__ import annotations

import errno
from dataclasses import replace
from typing import Any

import pytest
from gdsfw.engine.spec import BlockSizes, EndedBy, LoopError, LoopFile, LoopSpec, Mismatch, Verify
from gdsfw.errors import Domain, UsageError

KIB = 1024
BLOCK = 4 * KIB
LENGTH = 16 * BLOCK

WRITE = LoopSpec(
    rw="write",
    random=False,
    read_blocks=BlockSizes(((BLOCK, 1),)),
    write_blocks=BlockSizes(((BLOCK, 1),)),
    block_align=0,
    files=(LoopFile(5, 0, LENGTH, pattern_seed=9),),
    seed=7,
    slot_stride=16 * KIB,
)
WRITE_PATTERN = replace(WRITE, write_fill="pattern", verify=Verify())
READ = replace(WRITE, rw="read", verify=Verify())


def run(twins: Any, way: str, spec: LoopSpec, store: Any, device: bool = True) -> Any:
    return twins.run(way, spec, store, device=device)


def test_random_data_is_copied_in_before_the_first_write(twins: Any, way: str) -> None:
    store, plain = twins.store([bytearray(LENGTH)]), twins.store([bytearray(LENGTH)])
    spec = replace(WRITE, io_size=BLOCK)
    written = run(twins, way, spec, store).files[0]
    assert store.memory_calls == ["copy"]
    # The same as in memory that the host can touch, but for the number that each write mixes in there.
    mixed = run(twins, way, spec, plain, device=False).files[0]
    differences = bytes(a ^ b for a, b in zip(written, mixed, strict=True))
    assert differences[:BLOCK] == differences[:8] * (BLOCK // 8)
    assert not any(differences[BLOCK:])
    assert len(set(written[:BLOCK])) > 200


def test_the_pattern_is_written_and_verified_by_the_path(twins: Any, way: str) -> None:
    store = twins.store([bytearray(LENGTH)])
    written = run(twins, way, WRITE_PATTERN, store).files[0]
    assert written == run(twins, way, WRITE_PATTERN, twins.store([bytearray(LENGTH)]), device=False).files[0]
    store.files[0][100] ^= 1
    result = run(twins, way, READ, store).result
    expected = written[100:116]
    found = bytes([expected[0] ^ 1]) + expected[1:]
    assert result.verify.mismatches == (Mismatch(0, 100, expected, found, 1),)
    assert result.verify.checked_bytes == result.verify.expected_bytes == LENGTH
    assert store.memory_calls == ["fill"] * 16 + ["verify"] * 16


@pytest.mark.parametrize(
    ("spec", "name", "operation", "size"),
    [
        (WRITE, "copy", "copy", 0),
        (WRITE_PATTERN, "fill", "fill", BLOCK),
        (READ, "verify", "verify", BLOCK),
        (replace(READ, register_per_io=True), "register_buffer", "register", BLOCK),
        (replace(READ, register_per_io=True), "deregister_buffer", "register", BLOCK),
    ],
)
def test_a_failure_there_is_named(twins: Any, way: str, spec: LoopSpec, name: str, operation: Any, size: int) -> None:
    store = twins.store([bytearray(LENGTH)], memory_faults={name: twins.gpu(700)})
    result = run(twins, way, spec, store).result
    assert result.ended_by is EndedBy.ERROR
    assert result.errors == (LoopError(operation, 0, 0, size, Domain.GPU, 700),)


def test_what_was_not_compared_is_not_checked(twins: Any, way: str) -> None:
    store = twins.store([bytearray(LENGTH)], memory_faults={"verify": twins.errno(errno.EIO)})
    verify = run(twins, way, replace(READ, error_limit=100), store).result.verify
    assert (verify.checked_bytes, verify.expected_bytes, verify.bad_blocks) == (0, LENGTH, 0)


def test_a_write_that_was_not_prepared_is_not_issued(twins: Any, way: str) -> None:
    store = twins.store([bytearray(LENGTH)], memory_faults={"fill": twins.gpu(700)})
    result = run(twins, way, replace(WRITE_PATTERN, error_limit=100), store).result
    assert (store.calls, result.write.ios, result.write.errors, result.written) == ([], 0, 16, ())


def test_the_buffer_is_registered_around_every_io(twins: Any, way: str) -> None:
    store = twins.store([bytearray(LENGTH)])
    spec = replace(WRITE, rw="read", register_per_io=True)
    result = run(twins, way, spec, store).result
    assert result.read.ios == 16
    assert store.memory_calls == ["register_buffer", "deregister_buffer"] * 16


@pytest.mark.parametrize("way", ["native", "python"])
@pytest.mark.parametrize(
    "spec", [replace(WRITE, register_per_io=True), replace(READ, register_per_io=True)], ids=["write", "read"]
)
def test_a_path_without_the_function_is_refused_before_the_first_io(twins: Any, way: str, spec: LoopSpec) -> None:
    store = twins.store([bytearray(LENGTH)])
    with pytest.raises(UsageError, match="register"):
        run(twins, way, spec, store, device=False)
    assert store.calls == []
