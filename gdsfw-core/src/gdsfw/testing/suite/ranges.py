"""What no backend may be asked for is refused before any is called: one exception, one text, exit 2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gdsfw.engine.spec import BlockSizes, LoopFile
from gdsfw.errors import ExitCode, UsageError
from gdsfw.testing.loops import loop_of
from gdsfw.testing.suite.common import note

if TYPE_CHECKING:
    from gdsfw.testing.subject import Subject

MIB = 1 << 20
#: Terms of a loop over a buffer of 64 KiB, and the text that refuses them.
LOOPS: dict[str, tuple[dict[str, Any], str]] = {
    "negative_file_offset": ({"files": (LoopFile(1, -4096, MIB),)}, "file offset -4096 is negative"),
    "negative_buffer_offset": ({"buffer_offset": -512}, "buffer offset -512 is negative"),
    "no_length": ({"read_blocks": BlockSizes(((0, 1),)), "write_blocks": BlockSizes(((0, 1),))}, "an I/O of 0 bytes"),
    "longer_than_the_buffer": (
        {"buffer_offset": 61441},
        "4096 bytes at buffer offset 61441 end outside the buffer of 65536 bytes",
    ),
    "beyond_the_largest_offset": ({"files": (LoopFile(1, 2**63 - 1, MIB),)}, f"file offset {2**63 - 1} is too large"),
}
#: The same as calls over a table: size, file offset, buffer offset.
CALLS = {
    "negative_file_offset": ((4096, -4096, 0), "file offset -4096 is negative"),
    "negative_buffer_offset": ((4096, 0, -512), "buffer offset -512 is negative"),
    "no_length": ((0, 0, 0), "an I/O of 0 bytes"),
    "longer_than_the_buffer": (
        (4096, 0, 61441),
        "4096 bytes at buffer offset 61441 end outside the buffer of 65536 bytes",
    ),
    "beyond_the_largest_offset": ((4096, 2**63 - 1, 0), f"file offset {2**63 - 1} is too large"),
}


class TestRanges:
    """Libraries differ in what they make of such numbers, so none of them sees one."""

    @pytest.mark.parametrize("wrong", LOOPS)
    def test_a_loop_with_impossible_numbers_is_refused(self, subject: Subject, wrong: str) -> None:
        terms, text = LOOPS[wrong]
        for path in subject.paths():
            with subject.rig(io_path=path, block=65536) as rig:
                for driver in rig.calls:
                    note("path", path, "driven by the loop for", driver)
                    with pytest.raises(UsageError) as caught:
                        loop_of(rig, driver, **{"block": 4096, "rw": "readwrite", **terms})
                    assert caught.value.message == text
                    assert caught.value.exit_code is ExitCode.USAGE

    @pytest.mark.parametrize("wrong", CALLS)
    def test_a_call_over_a_table_with_impossible_numbers_is_refused(self, subject: Subject, wrong: str) -> None:
        numbers, text = CALLS[wrong]
        native = [path for path in subject.info.io_paths if path.native]
        if not native:
            pytest.skip(f"backend {subject.name} declares no native path in io_paths")
        for name in subject.paths():
            with subject.rig(io_path=name, block=65536) as rig:
                io: Any = rig.calls.get("native")
                for call in (io.read, io.write) if io is not None else ():
                    with pytest.raises(UsageError) as caught:
                        call(rig.file, *numbers)
                    assert caught.value.message == text

    @pytest.mark.parametrize("wrong", ["offset: -4096", "buffer_offset: -512", "block_size: 0", "size: 0"])
    def test_a_workload_with_impossible_numbers_is_refused(self, subject: Subject, wrong: str) -> None:
        key, _, value = wrong.partition(": ")
        with pytest.raises(UsageError) as caught:
            subject.run({"name": "wrong", "rw": "write", "size": "64KiB", key: int(value)})
        assert caught.value.exit_code is ExitCode.USAGE
        assert key in str(caught.value)
