"""Stand-ins of the vendors' libraries, compiled once a session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.api import Api
from fakes.build import Builder, compiler
from fakes.driving import OnStandin
from fakes.standins import Standin


@pytest.fixture(scope="session")
def standin_builder(tmp_path_factory: pytest.TempPathFactory) -> Builder:
    command = compiler()
    if not command:
        pytest.skip("no C compiler (cc, gcc or clang) to build the vendors' stand-ins with")
    return Builder(tmp_path_factory.mktemp("standins"), command)


@pytest.fixture(scope="session")
def cuda_standin(standin_builder: Builder) -> Standin:
    """libcuda and libcufile."""
    return Standin.build(standin_builder, "cuda")


@pytest.fixture(scope="session")
def hip_standin(standin_builder: Builder) -> Standin:
    """libamdhip64 and libhipfile."""
    return Standin.build(standin_builder, "hip")


@pytest.fixture(scope="session", params=["cuda", "hip"])
def standin(request: pytest.FixtureRequest, standin_builder: Builder) -> Standin:
    """Each vendor's in turn."""
    return Standin.build(standin_builder, request.param)


@pytest.fixture
def api(standin: Standin) -> Api:
    """Each vendor's, through ctypes: for tests with `own_process`."""
    return Api(standin)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A file of 64 KiB in which every 4 KiB block differs."""
    path = tmp_path / "data"
    path.write_bytes(b"".join(bytes([block + 1]) * 4096 for block in range(16)))
    return path


@pytest.fixture
def on(standin: Standin, tmp_path: Path) -> Iterator[OnStandin]:
    """`gdsfw run` on each vendor's stand-in, through its real Python bindings."""
    if lacking := standin.lacking():
        pytest.skip(lacking)
    driver = OnStandin(standin, tmp_path)
    yield driver
    driver.gdsfw.close()
