"""The same load by gdsfw and by fio is the same I/O: a part of what benchmarks/shapes.py compares."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SHAPES = Path(__file__).parents[2] / "benchmarks/shapes.py"
#: Words of the names in benchmarks/shape_jobs.py; none of them is a load whose time is compared.
SAMPLE = ("offset 25", "io_size above", "fsync every", "mix, 70", "once, part", "block_align", "pair 4 and 64",
          "split 60", "pareto 0.2", "half compressible", "half repeated")  # fmt: skip


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_a_load_is_the_same_io_in_fio() -> None:
    done = subprocess.run([sys.executable, SHAPES, *SAMPLE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("| same") == len(SAMPLE)
