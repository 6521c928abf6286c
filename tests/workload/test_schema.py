"""The JSON Schema, as an editor uses it: it accepts what loads and marks what does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from gdsfw.errors import WorkloadError
from gdsfw.workload import presets
from gdsfw.workload.loader import load_text
from gdsfw.workload.model import Job
from gdsfw.workload.names import ALIASES, HINTS
from gdsfw.workload.schema import workload_schema

FOLDER = Path(__file__).parents[2] / "examples"
# A name with a dot in front is a tool's folder (a backend's .github): what is in there is no workload.
EXAMPLES = sorted(path for path in FOLDER.rglob("*.yaml") if "/." not in str(path.relative_to(FOLDER.parent)))


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    return workload_schema()


@pytest.fixture(scope="module")
def validator(schema: dict[str, Any]) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(schema)


def test_it_is_a_valid_schema_of_the_dialect_it_names(schema: dict[str, Any]) -> None:
    assert schema["$schema"] == jsonschema.Draft202012Validator.META_SCHEMA["$id"]
    jsonschema.Draft202012Validator.check_schema(schema)


def test_every_key_has_a_description(schema: dict[str, Any]) -> None:
    keys = schema["$defs"]["job"]["properties"]
    assert set(keys) == set(Job.model_fields) | set(ALIASES)
    assert all(len(key["description"]) > 10 for key in keys.values())


UNITS = ("bytes", "time", "pause", "percent", "number", "interval", "default 60s", "unit")


def test_every_number_says_its_unit(schema: dict[str, Any]) -> None:
    def is_number(key: dict[str, Any]) -> bool:
        forms = [form.get("$ref", "").rpartition("/")[2] or form.get("type", "") for form in key.get("anyOf", [])]
        return bool({"integer", "number", "size", "size_above_0", "share", "duration", "byte_rates"} & set(forms))

    everything = [*schema["$defs"]["job"]["properties"].items(), *schema["$defs"]["Random"]["properties"].items()]
    numbers = {name: key["description"].lower() for name, key in everything if is_number(key)}
    assert len(numbers) > 20
    silent = [name for name, text in numbers.items() if not any(unit in text for unit in UNITS)]
    # These count events or name something, and their description says of what.
    assert set(silent) <= {"fsync", "fdatasync", "loops", "offset"}


def test_defaults_are_shown_as_a_file_would_write_them(schema: dict[str, Any]) -> None:
    keys = schema["$defs"]["job"]["properties"]
    assert keys["io_timeout"]["default"] == "1m"
    assert keys["block_size"]["default"] == 4096
    assert keys["timeline"]["default"] == "1s"


@pytest.mark.parametrize("name", presets.names())
def test_presets_are_accepted_by_loader_and_schema(name: str, validator: jsonschema.Draft202012Validator) -> None:
    text = presets.text(name)
    assert load_text(text, name, environ={}).jobs
    validator.validate(yaml.safe_load(text))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_are_accepted_by_loader_and_schema(path: Path, validator: jsonschema.Draft202012Validator) -> None:
    data = yaml.safe_load(path.read_text())
    if not isinstance(data, dict) or "jobs" not in data:
        pytest.skip("no workload")
    assert load_text(path.read_text(), path.name, environ={}).jobs
    validator.validate(data)


@pytest.mark.parametrize(
    "keys",
    [
        "iodept: 3",
        "iodepth: true",
        "iodepth: '4'",
        "iodepth: 0",
        "rw: wrte",
        "block_size: 4Kib",
        "block_size: 0",
        "block_size: {read: 4k}",
        "block_size: {min: 4k}",
        "block_size: {4q: 1}",
        "runtime: 5",
        "runtime: 0s",
        "runtime: '1:30'",
        "size: '010'",
        "size: 10e",
        "offset: -1",
        "direct: sometimes",
        "random: {teta: 1}",
        "random: {distribution: zip}",
        "random: 5",
        "verify: {sed: 1}",
        "verify: 5",
        "percentiles: [0]",
        "devices: [-1]",
        "cpus: 0..3",
        "rate: {reed: 1k}",
        "rate: 0",
        "sweep: {iodepth: 5}",
        "sweep: {iodepth: []}",
        "sweep: {iodepth: [x]}",
        "sweep: {iodept: [1]}",
        "sweep: {name: [a]}",
        "backend_options: {posix: 5}",
        "stage: a/b",
        "numjobs: 5000",
        "ioengine: libaio",
    ],
)
def test_mistakes_are_marked_by_loader_and_schema(keys: str, validator: jsonschema.Draft202012Validator) -> None:
    text = f"jobs: [{{name: a, {keys}}}]"
    assert not validator.is_valid(yaml.safe_load(text))
    with pytest.raises(WorkloadError):
        load_text(text, environ={})


@pytest.mark.parametrize("text", ["jobs: []", "version: 2\njobs: [{name: a}]", "jobs: [{}]", "job: []", "jobs: {a: 1}"])
def test_a_wrong_shape_is_marked(text: str, validator: jsonschema.Draft202012Validator) -> None:
    assert not validator.is_valid(yaml.safe_load(text))


def test_variables_are_accepted_wherever_a_scalar_is(validator: jsonschema.Draft202012Validator) -> None:
    validator.validate(
        yaml.safe_load("""
        defaults: {bs: "${BS:-4k}", random: {seed: "${SEED}"}, direct: "${DIRECT}"}
        jobs: [{name: "j-${N}", iodepth: "${DEPTH}", block_size: {read: "${R}", write: 4k}, cpus: ["${CPU}"]}]
        """)
    )


def test_hints_and_aliases_name_keys_that_exist() -> None:
    assert set(ALIASES.values()) <= set(Job.model_fields)
    assert not set(ALIASES) & set(Job.model_fields)
    assert not set(HINTS) & (set(Job.model_fields) | set(ALIASES))
