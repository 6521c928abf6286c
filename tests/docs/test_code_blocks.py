"""Every block of code in the documentation does what its page says.

Blocks run in order, page by page, in a folder of the page's own: shell and Python for real, what a command printed is
compared (numbers aside), workloads run on small files, other languages are parsed or compiled. The markers that say
otherwise are in pages.py.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gdsfw
import pytest
import yaml
from docs.pages import Block, blocks, pages
from docs.reader import Reader, unlike
from gdsfw.plugins import PluginManager
from gdsfw.workload.model import Job, Workload

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FENCED = {page: [block for block in blocks(page) if block.language != "indented"] for page in pages()}
WITH_BLOCKS = [page for page, found in FENCED.items() if found]
NOT_RUN = [block for found in FENCED.values() for block in found if block.marker == "not run"]


@pytest.mark.parametrize("page", WITH_BLOCKS)
def test_the_blocks_of_a_page_do_what_it_says(page: str, tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    if page.startswith("examples/"):
        reader.go(Path(page).parent)
    printed: str | None = None
    for block in FENCED[page]:
        if block.marker == "not run":
            printed = None
            continue
        try:
            printed = do(block, reader, printed)
        except Exception as error:
            raise AssertionError(f"{block}: {error}") from error


@pytest.mark.parametrize("block", NOT_RUN, ids=str)
def test_blocks_that_are_not_run(block: Block) -> None:
    pytest.skip(block.said)


@pytest.mark.parametrize("page", [page for page in pages() if not page.startswith("examples/")])
def test_every_block_is_fenced_and_names_its_language(page: str) -> None:
    """An indented block would be one that no test looks at; examples are plain Markdown for anybody's repository."""
    assert [str(block) for block in blocks(page) if block.language in ("", "indented")] == []


def do(block: Block, reader: Reader, printed: str | None) -> str | None:
    """What a reader does with a block; gives what was printed, if anything was run."""
    if block.marker == "output of":
        printed = reader.shell(block.said)
    elif block.marker in ("file", "append"):
        saved = reader.save(block.said, block.text, append=block.marker == "append")
        if block.language in CHECKS:
            CHECKS[block.language](block.text, saved)
        return None
    if block.language == "sh":
        return reader.shell(block.text, int(block.said) if block.marker == "exit code" else 0)
    if block.language == "python":
        return reader.python(block.text)
    if block.language == "text":
        if printed is None:
            raise ValueError("no command before this text has printed it: say `output of`, or why it is not run")
        difference = unlike(block.text, printed)
        if difference:
            raise ValueError(difference)
        return None
    if block.language == "diff":
        reader.shell(f"git apply -p0 --whitespace=nowarn {reader.save('.block.diff', block.text)}")
        return None
    if block.language not in CHECKS:
        raise ValueError(f"nobody knows what to do with {block.language!r}")
    CHECKS[block.language](block.text, reader.save(f".block.{block.language}", block.text))
    if block.language == "yaml":
        run_small(block.text, reader.folder)
    return None


def compiles(text: str, path: Path) -> None:
    compile(text, str(path), "exec")


def is_c(text: str, path: Path) -> None:
    command = ["cc", "-std=c11", "-Wall", "-Werror", "-fsyntax-only", "-I", gdsfw.get_include(), "-x", "c", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(done.stderr)


def is_workload(text: str, path: Path) -> None:
    gdsfw.load(write_workload(text, path))


#: By language, what a block that is not run goes through; what is wrong with it is raised.
CHECKS: dict[str, Callable[[str, Path], object]] = {
    "python": compiles,
    "c": is_c,
    "yaml": is_workload,
    "toml": lambda text, path: tomllib.loads(text),
    "json": lambda text, path: json.loads(text),
}


def write_workload(text: str, path: Path) -> Path:
    """The workload that a block shows: all of it, its defaults, its jobs, or keys of one job."""
    shown: Any = yaml.safe_load(text)
    if isinstance(shown, dict) and "jobs" in shown:
        path.write_text(text, encoding="utf-8")
        return path
    if isinstance(shown, dict) and "defaults" in shown:
        whole = {"version": 1, "jobs": [{"name": "shown"}], **shown}
    else:
        whole = {
            "version": 1,
            "jobs": shown if isinstance(shown, list) else [{"name": "shown", "size": "1MiB", **shown}],
        }
    path.write_text(json.dumps(whole), encoding="utf-8")
    return path


def run_small(text: str, folder: Path) -> None:
    """Run a workload on host memory, for less data and time.

    Not one for a GPU, for files of the reader's, or with plugins, which its page installs and runs by itself.
    """
    path = write_workload(text, folder / "small.yaml")
    workload = gdsfw.load(path)
    if any(job.backend not in (None, "posix", "noop") or job.filename or job.plugins for job in workload.jobs):
        return
    short = [f"jobs.{job.name}.{key}={value}" for job in workload.jobs for key, value in shortened(job)]
    small: Workload = gdsfw.load(path, [f"defaults.directory={folder / 'data'}", *short])
    names = {job.backend for job in small.jobs if job.backend}
    result = gdsfw.run(small, plugins=PluginManager.installed({"GDSFW_PLUGINS": ",".join({"posix", *names})}))
    if result.status != "done":
        raise ValueError(f"{result.status}: {[job.errors for job in result.jobs]}")


def shortened(job: Job) -> list[tuple[str, str]]:
    """Keys of a job that make it short."""
    found = [(key, "50ms") for key in ("runtime",) if getattr(job, key)]
    found += [("ramp_time", "10ms")] if job.ramp_time else []
    return found + ([("size", "4MiB")] if isinstance(job.size, int) and job.size > 2**22 and not job.files_from else [])


def test_a_marker_without_a_reason_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("docs.pages.ROOT", tmp_path)
    (tmp_path / "page.md").write_text("<!-- not run: -->\n```sh\nfalse\n```\n")
    with pytest.raises(ValueError, match=r"page\.md:2: .* is no marker"):
        blocks("page.md")


def test_what_a_page_shows_is_compared_without_its_numbers() -> None:
    printed = "job     IOPS   lat\n─────────\nscan   1.2k   3.4 ms\nresult: a/2.json\n"
    assert unlike("job IOPS lat\nscan 950 12 us\n...\n", printed) is None
    assert unlike("...\nresult: a/1.json", printed) is None
    assert "scam" in (unlike("job IOPS lat\nscam 1 1 s\n...", printed) or "")
    assert "does not show" in (unlike("job IOPS lat", printed) or "")


def test_a_block_that_fails_is_found(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    for language, text in {
        "sh": "gdsfw validate absent.yaml",
        "python": "raise SystemExit(3)",
        "yaml": "iodepht: 4",
        "toml": "a = ",
        "json": "{",
        "c": "int f(void) { return x; }",
        "text": "nobody printed this",
        "cobol": "STOP RUN.",
    }.items():
        with pytest.raises((AssertionError, ValueError, gdsfw.errors.GdsfwError)):
            do(Block("page", 1, language, text), reader, None)
