"""Load the tensors of a safetensors file into GPU memory in four ways, and say how long each took.

    python load_safetensors.py FILE [--make GIB] [--backend cufile|hipfile] [--rounds N]

map      gdsfw: the file's own pages become device memory, and one copy on the device's own time moves each tensor
staged   gdsfw: read_many through pinned memory into one piece of device memory, tensors are views of it
load.to  safetensors: load_file on the CPU, then .to("cuda")
direct   safetensors: load_file(device="cuda")

Needs torch and safetensors beside gdsfw and a backend for the GPU. The file is read, never changed; --make writes one
that is not there yet. Every way's tensors are compared with those of the first.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import gdsfw
import safetensors.torch
import torch

PIECE = 16 << 20  # bytes of one read of the staged way
ROUND = 16 * PIECE  # bytes of one call: the pinned memory that it takes
DTYPES = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64,
    "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool,
}  # fmt: skip

Tensors = dict[str, torch.Tensor]


class Entry(NamedTuple):
    """A tensor in the file; offsets from the file's start."""

    dtype: torch.dtype
    shape: list[int]
    start: int
    end: int


def read_header(path: Path) -> tuple[dict[str, Entry], int]:
    """The file's tensors by name, and where their bytes begin: eight bytes of length, then JSON."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
    header.pop("__metadata__", None)
    data = 8 + length
    entries = {
        name: Entry(DTYPES[item["dtype"]], item["shape"], *(data + offset for offset in item["data_offsets"]))
        for name, item in header.items()
    }
    return entries, data


def tensors_of(memory: torch.Tensor, entries: dict[str, Entry], origin: int) -> Tensors:
    """Views of the tensors in `memory`, whose first byte is the file's at `origin`."""
    return {
        name: memory[entry.start - origin : entry.end - origin].view(entry.dtype).reshape(entry.shape)
        for name, entry in entries.items()
    }


def by_map(session: gdsfw.Session, path: Path) -> Tensors:
    """Copies, made by the device, of what it sees in the file's pages."""
    entries, _ = read_header(path)
    with session.map(path) as view:
        pages = torch.from_dlpack(view)
        loaded = {name: tensor.clone() for name, tensor in tensors_of(pages, entries, 0).items()}
        torch.cuda.synchronize()
        del pages  # the view cannot be closed while a tensor of it lives
    return loaded


def by_staging(session: gdsfw.Session, path: Path) -> Tensors:
    """Views of one piece of device memory, filled through a window of it."""
    entries, data = read_header(path)
    end = path.stat().st_size
    memory = torch.empty(end - data, dtype=torch.uint8, device="cuda")
    window = torch.empty(ROUND, dtype=torch.uint8, device="cuda")  # kept: the path stays open for it
    for at in range(data, end, ROUND):
        offsets = list(range(at, min(at + ROUND, end), PIECE))
        sizes = [min(PIECE, end - offset) for offset in offsets]
        moved = session.read_many(path, offsets, sizes, window, io_path="staged", iodepth=4)
        memory[at - data : at - data + moved] = window[:moved]
        torch.cuda.synchronize()  # the next call writes into the window
    return tensors_of(memory, entries, data)


def timed(load: Callable[[], Tensors]) -> tuple[Tensors, float]:
    """What `load` gives, and the seconds until the device has it."""
    began = time.perf_counter()
    loaded = load()
    torch.cuda.synchronize()
    return loaded, time.perf_counter() - began


def make(path: Path, gib: float) -> None:
    """A file of bfloat16 matrices of 64 MiB each and one small tensor."""
    matrices = {f"layer.{n}.weight": torch.rand(4096, 8192, dtype=torch.bfloat16) for n in range(int(gib * 16))}
    safetensors.torch.save_file({"norm": torch.rand(5, dtype=torch.float32), **matrices}, path)


def main() -> None:
    """Load in every way, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--make", type=float, metavar="GIB", help="write a file of so many GiB if there is none")
    parser.add_argument("--backend", default="cufile")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    path: Path = options.file
    if options.make and not path.exists():
        make(path, options.make)
    torch.zeros(1, device="cuda")  # the device's context is nobody's time
    with gdsfw.open_session(options.backend, {"map_share": 0.9}) as session:
        ways: dict[str, Callable[[], Tensors]] = {
            "map": lambda: by_map(session, path),
            "staged": lambda: by_staging(session, path),
            "load.to": lambda: {k: v.to("cuda") for k, v in safetensors.torch.load_file(path).items()},
            "direct": lambda: dict(safetensors.torch.load_file(path, device="cuda")),
        }
        gib = path.stat().st_size / (1 << 30)
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        reference, _ = timed(ways["load.to"])
        for _ in range(options.rounds):
            for name, load in ways.items():
                loaded, took = timed(load)
                seconds[name].append(took)
                if any(not torch.equal(loaded[key], tensor) for key, tensor in reference.items()):
                    raise SystemExit(f"{name}: the tensors differ")
                del loaded
    for name, taken in seconds.items():
        middle = sorted(taken)[len(taken) // 2]
        print(f"{name:<8} {middle:7.3f} s  {gib / middle:6.2f} GiB/s  ({', '.join(f'{s:.3f}' for s in taken)})")


if __name__ == "__main__":
    main()
