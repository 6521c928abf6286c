"""The C engine, for the rest of gdsfw and for backends.

available, load            whether it is there
NativeTable, IO_FN ...     a backend's own table (native_table.py)
psync_table, noop_table, uring_table, FdFile
                           the engine's ready tables, and the file value of psync and io_uring
NativeLoop                 one worker's loop (native_loop.py)
TableIO, table_io          any table as Python calls (table_io.py)
pattern_fill, pattern_verify
                           the verification pattern at memory speed
"""

from gdsfw.engine.native_library import (
    Engine,
    available,
    check_table,
    engine,
    load,
    noop_table,
    pattern_fill,
    pattern_verify,
    psync_table,
)
from gdsfw.engine.native_loop import NativeLoop, preview
from gdsfw.engine.native_table import (
    CAN_READ,
    CAN_WRITE,
    HOST_VISIBLE,
    IO_FN,
    FdFile,
    NativeQueue,
    NativeTable,
    UringOptions,
)
from gdsfw.engine.native_uring import try_uring, uring_table
from gdsfw.engine.table_io import QueueTableIO, TableIO, table_io

__all__ = [
    "CAN_READ",
    "CAN_WRITE",
    "HOST_VISIBLE",
    "IO_FN",
    "Engine",
    "FdFile",
    "NativeLoop",
    "NativeQueue",
    "NativeTable",
    "QueueTableIO",
    "TableIO",
    "UringOptions",
    "available",
    "check_table",
    "engine",
    "load",
    "noop_table",
    "pattern_fill",
    "pattern_verify",
    "preview",
    "psync_table",
    "table_io",
    "try_uring",
    "uring_table",
]
