"""Workloads made from every key of the language in every spelling: they load, dump, load again, and plan or refuse."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from gdsfw.errors import GdsfwError, Problem, WorkloadError
from gdsfw.workload.dump import dump
from gdsfw.workload.loader import load_data, load_text
from gdsfw.workload.model import Job, Workload
from gdsfw.workload.render import plan_to_json, render_plan
from gdsfw.workload.schema import workload_schema
from gdsfw.workload.variables import escape
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable

    from gdsfw.workload.plan_model import Plan

# Generating a workload draws many values; that is its purpose.
SETTINGS = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])

_size_text = st.builds(
    "{}{}{}".format,
    st.integers(1, 64),
    st.sampled_from(["", " "]),
    st.sampled_from(["", "B", "k", "K", "KiB", "kB", "KB", "m", "M", "MiB", "MB"]),
).filter(lambda text: not text.endswith(" "))
sizes = st.one_of(st.integers(1, 2**40), _size_text)
percents = st.builds("{}%".format, st.integers(1, 100))
durations = st.builds("{}{}".format, st.integers(1, 5000), st.sampled_from(["ms", "s", "m", "h", "d"]))
names = st.from_regex(r"\A[A-Za-z0-9_][A-Za-z0-9_.+@-]{0,12}\Z")
text = st.text(min_size=1, max_size=12).filter(lambda value: "\0" not in value)
options = st.dictionaries(text, st.one_of(st.integers(), st.booleans(), text, st.none()), max_size=3)


@st.composite
def blocks(draw: st.DrawFn) -> Any:
    """Block sizes of one direction."""
    kind = draw(st.sampled_from(["one", "range", "text range", "split", "text split"]))
    if kind == "one":
        return draw(st.one_of(st.integers(1, 1 << 26), _size_text))
    low = draw(st.integers(1, 1 << 20))
    if kind == "range":
        return {"min": low, "max": low + draw(st.integers(0, 1 << 20)), "step": draw(st.integers(1, 4096))}
    if kind == "text range":
        return f"{low}-{low + draw(st.integers(0, 1 << 20))}"
    weights = draw(st.dictionaries(st.integers(1, 1 << 20), st.integers(1, 100), min_size=1, max_size=4))
    if kind == "split":
        return {str(size): weight for size, weight in weights.items()}
    return ":".join(f"{size}/{weight}" for size, weight in weights.items())


def _pair(single: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(single, st.fixed_dictionaries({"read": single, "write": single}))


def _numbers(most: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, most), min_size=1, max_size=4, unique=True)


@st.composite
def randoms(draw: st.DrawFn) -> dict[str, Any]:
    """How offsets are drawn, with a theta that fits."""
    kind = draw(st.sampled_from(["uniform", "zipf", "pareto", "normal", "runs"]))
    result: dict[str, Any] = {"distribution": kind}
    thetas: dict[str, list[float]] = {"zipf": [0.5, 1.2, 2], "pareto": [0.2], "normal": [1, 50.5], "runs": [1, 8]}
    if kind in thetas and draw(st.booleans()):
        result["theta"] = draw(st.sampled_from(thetas[kind]))
    if draw(st.booleans()):
        result["once_per_block"] = kind == "uniform" and draw(st.booleans())
    if draw(st.booleans()):
        result["seed"] = draw(st.integers(0, 2**63 - 1))
    return result


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "backend": st.sampled_from(["disk", "noop"]),
    "backend_options": st.dictionaries(st.sampled_from(["gpu", "other"]), options, max_size=2),
    "plugins": st.dictionaries(names, options, max_size=2),
    "io_path": st.sampled_from(["auto", "sync", "queue", "0x7", "1e3"]),
    "require_transport": st.sampled_from(["p2p", "compat", "host", None]),
    "devices": st.one_of(st.just("all"), st.integers(0, 7), _numbers(7)),
    "rw": st.sampled_from(["read", "write", "randread", "randwrite", "readwrite", "rw", "randrw"]),
    "rwmixread": st.integers(0, 100),
    "block_size": _pair(blocks()),
    "block_align": sizes,
    "offset": st.one_of(sizes, percents, st.just(0)),
    "size": st.one_of(sizes, percents),
    "io_size": sizes,
    "files": st.integers(1, 5),
    "filename": text,
    "directory": text,
    "share": st.sampled_from(["all", "split"]),
    "file_service": st.sampled_from(["roundrobin", "random", "sequential"]),
    "file_handles": st.sampled_from(["per_worker", "shared"]),
    "unlink": st.booleans(),
    "numjobs": st.integers(1, 5),
    "iodepth": st.integers(1, 300),
    "iodepth_batch": st.integers(1, 300),
    "direct": st.sampled_from(["auto", True, False, "true", "false"]),
    "invalidate": st.booleans(),
    "sync": st.sampled_from(["none", "dsync", "sync"]),
    "fsync": st.integers(0, 100),
    "fdatasync": st.integers(0, 100),
    "end_fsync": st.one_of(st.none(), st.booleans()),
    "runtime": durations,
    "ramp_time": st.one_of(durations, st.just(0)),
    "loops": st.integers(1, 4),
    "rate": _pair(st.one_of(sizes, st.builds("{}/s".format, sizes))),
    "rate_iops": _pair(st.integers(1, 10**6)),
    "rate_process": st.sampled_from(["linear", "poisson"]),
    "think_time": durations,
    "random": randoms(),
    "memory": st.sampled_from(["auto", "host", "hugepage"]),
    "register_buffers": st.sampled_from(["once", "per_io", "none"]),
    "buffer_offset": st.one_of(sizes, st.just(0)),
    "buffer_compress": st.integers(0, 100),
    "buffer_dedupe": st.integers(0, 100),
    "cpus": st.one_of(st.just("auto"), st.just("0-1,3"), st.just(2), _numbers(3)),
    "numa": st.integers(0, 1),
    "verify": st.one_of(st.booleans(), st.just({}), st.just({"seed": 3, "generations": True})),
    "io_timeout": durations,
    "continue_on_error": st.booleans(),
    "max_errors": st.integers(1, 100),
    "allow_overwrite": st.booleans(),
    "skip_space_check": st.booleans(),
    "stage": names,
    "stop_together": st.booleans(),
    "repeat": st.integers(1, 3),
    "percentiles": st.one_of(st.just("none"), st.lists(st.sampled_from([1, 50, 99.9, 100]), min_size=1, max_size=3)),
    "timeline": st.one_of(st.just("none"), st.none(), durations),
    "io_log": text,
}
#: Keys that exclude each other; at most one of each pair is generated.
EXCLUSIVE = [("filename", "files"), ("cpus", "numa"), ("verify", "buffer_compress"), ("verify", "buffer_dedupe")]
SWEPT = ("iodepth", "block_size", "rw", "direct", "size", "numjobs", "random", "verify", "backend")


@st.composite
def keys(draw: st.DrawFn) -> dict[str, Any]:
    """Some keys of a job that go together."""
    chosen = draw(st.lists(st.sampled_from(sorted(VALUES)), unique=True, max_size=12))
    found = {key: draw(VALUES[key]) for key in chosen}
    for one, other in EXCLUSIVE:
        if one in found and other in found:
            del found[one]
    return found


@st.composite
def workloads(draw: st.DrawFn) -> dict[str, Any]:
    """A workload whose jobs take most keys from the defaults, where a key without effect is no mistake."""
    defaults = draw(keys())
    if draw(st.booleans()):
        swept = draw(st.lists(st.sampled_from(SWEPT), unique=True, min_size=1, max_size=2))
        excluded = {key for pair in EXCLUSIVE for key in pair if set(pair) & set(swept)}
        defaults = {key: value for key, value in defaults.items() if key not in excluded - set(swept)}
        defaults["sweep"] = {key: draw(st.lists(VALUES[key], min_size=1, max_size=3)) for key in swept}
    job_names = draw(st.lists(names, unique=True, min_size=1, max_size=3))
    jobs: list[dict[str, Any]] = [{"name": name} for name in job_names]
    if len(jobs) > 1 and draw(st.booleans()):
        jobs[-1]["files_from"] = job_names[0]
    return {"version": 1, "defaults": defaults, "jobs": jobs}


def escaped(data: Any) -> Any:
    """`data` as a file must write it, with no variable in it."""
    if isinstance(data, dict):
        return {key: escaped(value) for key, value in data.items()}
    if isinstance(data, list):
        return [escaped(value) for value in data]
    return escape(data) if isinstance(data, str) else data


def loaded(data: dict[str, Any]) -> Workload:
    return load_data(escaped(data), environ={})


def test_every_key_of_a_job_is_generated() -> None:
    elsewhere = {"name", "files_from", "sweep"}
    assert set(VALUES) | elsewhere == set(Job.model_fields)


@SETTINGS
@given(workloads())
def test_a_workload_dumps_to_yaml_that_loads_to_the_same(data: dict[str, Any]) -> None:
    workload = loaded(data)
    written = dump(workload)
    assert load_text(written, environ={}) == workload
    assert dump(load_text(written, environ={})) == written


@pytest.fixture(scope="module")
def schema() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(workload_schema())


@SETTINGS
@given(data=workloads())
def test_the_json_schema_accepts_what_the_loader_accepts(
    schema: jsonschema.Draft202012Validator, data: dict[str, Any]
) -> None:
    workload = loaded(data)
    schema.validate(data)
    schema.validate({"jobs": [{"name": "a"}], "defaults": {}})
    assert len(workload.jobs) == len(data["jobs"])


def fitting(data: dict[str, Any]) -> dict[str, Any]:
    """`data` with what depends on files and backends set to values that fit here."""
    defaults = {key: value for key, value in data["defaults"].items() if key not in ("devices", "io_path", "plugins")}
    defaults |= {"backend": "disk", "size": "1GiB", "offset": 4096, "directory": "./absent", "filename": None}
    sweep = {key: values for key, values in defaults.pop("sweep", {}).items() if key not in ("size", "backend")}
    # Each worker has files of its own, or splits one file, so that verified writes never overlap.
    return {**data, "defaults": {**defaults, "sweep": sweep} if sweep else defaults}


@SETTINGS
@given(data=workloads())
def test_a_workload_that_fits_has_a_plan(plan_workload: Callable[..., Plan], data: dict[str, Any]) -> None:
    workload = loaded(fitting(data))
    try:
        plan = plan_workload(workload)
    except WorkloadError as error:
        # Several workers on the files of another job may write the same bytes.
        assume("write the same bytes" not in str(error))
        raise
    assert render_plan(plan)
    runs = sum(len(stage["jobs"]) for stage in plan_to_json(plan)["stages"])
    assert runs == len(plan.jobs) >= len(workload.jobs)
    for job in plan.jobs:
        assert len(job.workers) == job.job.numjobs
        assert all(worker.slot_stride >= job.job.largest_block for worker in job.workers)


@SETTINGS
@given(data=workloads())
def test_a_workload_plans_or_says_what_is_wrong(plan_workload: Callable[..., Plan], data: dict[str, Any]) -> None:
    with suppress(GdsfwError):
        plan_workload(loaded(data))


def refusal_of(load: Callable[[], Workload]) -> list[Problem]:
    try:
        load()
    except WorkloadError as error:
        return list(error.problems)
    return []


@SETTINGS
@given(st.text(max_size=60))
def test_any_text_loads_or_is_refused_with_a_place(text: str) -> None:
    problems = refusal_of(lambda: load_text(text, "w.yaml", environ={}))
    assert all(problem.where.startswith("w.yaml") for problem in problems)


@SETTINGS
@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | text,
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(sorted(Job.model_fields)) | text, inner, max_size=3)
        ),
    )
)
def test_any_data_in_the_place_of_a_job_loads_or_is_refused(data: Any) -> None:
    problems = refusal_of(lambda: load_data({"jobs": [data], "defaults": data}, "w.yaml", environ={}))
    assert all(problem.where.startswith("w.yaml") for problem in problems)
