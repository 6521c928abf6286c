"""The loops that measure, run over a rig."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gdsfw.engine.native import NativeLoop
from gdsfw.engine.python_loop import PythonLoop
from gdsfw.engine.spec import BlockSizes, LoopFile, LoopSpec, Verify
from gdsfw.testing.subject import FILE_ID, PAGE

if TYPE_CHECKING:
    from gdsfw.engine.spec import Loop, LoopResult
    from gdsfw.testing.subject import Rig

PATTERN_SEED = 13


def loop_of(rig: Rig, driver: str, *, block: int, rw: str, nbytes: int = 1 << 20, **changes: Any) -> Loop:
    """A loop over the rig's files with the verification pattern: random order, every block once.

    Args:
        driver: `native` or `python`.
        changes: members of LoopSpec that differ.
    """
    terms: dict[str, Any] = {
        "rw": rw,
        "random": True,
        "read_blocks": BlockSizes(((block, 1),)),
        "write_blocks": BlockSizes(((block, 1),)),
        "block_align": 0,
        "files": tuple(LoopFile(FILE_ID + i, 0, nbytes, PATTERN_SEED) for i in range(len(rig.files))),
        "seed": 3,
        "iodepth": min(rig.request.iodepth, rig.path.iodepth),
        "batch_submit": rig.path.iodepth_batch or 1,
        "batch_complete": rig.path.iodepth_batch or 1,
        "slot_stride": -(-block // PAGE) * PAGE,
        "write_fill": "pattern",
        "verify": Verify(),
        **changes,
    }
    kind = NativeLoop if driver == "native" else PythonLoop
    return kind(LoopSpec(**terms), rig.path, rig.buffer)


def run_loop(rig: Rig, driver: str, **terms: Any) -> LoopResult:
    """Run such a loop."""
    return loop_of(rig, driver, **terms).run()


def accounts(result: LoopResult) -> dict[str, Any]:
    """All of a result that does not depend on the clock."""
    counts = {
        name: (side.ios, side.bytes, side.errors) for name, side in (("read", result.read), ("write", result.write))
    }
    names = ("ended_by", "errors", "error_count", "verify", "total_ios", "total_bytes", "flushes", "written")
    return counts | {name: getattr(result, name) for name in names}
