from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from gdsfw.errors import WorkloadError
from gdsfw.workload.loader import load
from gdsfw.workload.yaml_loader import MAX_FILE_BYTES, parse, read_text

if TYPE_CHECKING:
    from pathlib import Path


def data(text: str) -> Any:
    node, problems = parse(text, "w.yaml")
    assert not problems
    return node.data()


def only_problem(text: str) -> str:
    with pytest.raises(WorkloadError) as caught:
        parse(text, "w.yaml")
    assert len(caught.value.problems) == 1
    return str(caught.value)


def file_problem(path: Path) -> str:
    with pytest.raises(WorkloadError) as caught:
        load(path)
    assert len(caught.value.problems) == 1
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on", "on"),
        ("off", "off"),
        ("yes", "yes"),
        ("No", "No"),
        ("0100", "0100"),
        ("1:30", "1:30"),
        ("1_000", "1_000"),
        ("2026-12-01", "2026-12-01"),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("0o17", 15),
        ("0x1F", 31),
        ("-7", -7),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("'5'", "5"),
        ('"true"', "true"),
        ("!!str 5", "5"),
        ("!!int '5'", 5),
        ("! 5", "5"),
    ],
)
def test_scalars_follow_the_core_rules_of_yaml_1_2(text: str, value: object) -> None:
    found = data(f"a: {text}\n")["a"]
    assert found == value
    assert type(found) is type(value)


def test_every_node_knows_its_line_and_column() -> None:
    node, _ = parse("a: 1\nb:\n  - x\n  - {c: 2}\n", "w.yaml")
    assert str(node.find(("b", 0)).where) == "w.yaml:3:5"
    assert str(node.find(("b", 1, "c")).where) == "w.yaml:4:9"
    assert str(node.find(("b", 1, "c")).key_where) == "w.yaml:4:6"


def test_repeated_keys_name_both_lines_and_all_are_told() -> None:
    _, problems = parse("a: 1\nb: 2\na: 3\nb: {c: 1, c: 2}\n", "w.yaml")
    assert [str(problem) for problem in problems] == [
        "w.yaml:3:1: key 'a' is given twice: here and on line 1",
        "w.yaml:4:1: key 'b' is given twice: here and on line 2",
        "w.yaml:4:11: key 'c' is given twice: here and on line 4",
    ]


def test_anchors_and_aliases_work() -> None:
    assert data("a: &x [1, 2]\nb: *x\n") == {"a": [1, 2], "b": [1, 2]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: *x\n", "w.yaml:1:4: alias *x has no anchor &x before it"),
        ("a: &x [*x]\n", "w.yaml:1:8: alias *x stands inside what it names"),
        ("a:\n\tb: 1\n", "w.yaml:2:1: a tab where YAML wants spaces"),
        ("a: 1\n---\nb: 2\n", "w.yaml:2:1: a second document begins here; a workload file holds one"),
        ("a: !!python/name:os.system\n", "w.yaml:1:4: the tag !!python/name:os.system is not known here"),
        ("a: !x 1\n", "w.yaml:1:4: the tag '!x' is not known here"),
        ("<<: {a: 1}\n", "w.yaml:1:1: merge keys (<<) are no part of YAML 1.2"),
        ("? [a]\n: 1\n", "w.yaml:1:3: a list or mapping cannot be a key"),
        ("a: 'b\n", "w.yaml:2:1: found unexpected end of stream"),
        ("a: b: c\n", "w.yaml:1:5: a second `: ` on one line"),
        ("a: [1, 2\nb: 3\n", "w.yaml:2:2: expected ',' or ']', but got ':'"),
        ("", "w.yaml: is empty; `gdsfw init` writes a workload to start from"),
        ("# only a comment\n", "w.yaml: is empty"),
        ('a: "\\0"\n', "w.yaml:1:4: a value with a NUL"),
        ("%YAML " + "1" * 5000, "w.yaml: "),
        ("a: !!int x\n", "w.yaml:1:4: 'x' does not fit its tag !!int"),
    ],
)
def test_text_that_is_no_workload_gives_one_message(text: str, message: str) -> None:
    assert only_problem(text).startswith(message)


@pytest.mark.parametrize("text", ["a: {directory: ${DIR}}\n", "a: [1, ${DIR}]\n"])
def test_a_variable_in_flow_style_is_told_to_be_quoted(text: str) -> None:
    message = only_problem(text)
    assert message.startswith("w.yaml:1:")
    assert 'quote it: "${DIR}"' in message


def test_an_alias_bomb_is_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    assert "values with all aliases written out" in only_problem("\n".join(lines))


@pytest.mark.parametrize("text", ["[" * 100_000, "a: " + "[" * 1000 + "]" * 1000, "{a: " * 500, "- " * 2000 + "x"])
def test_deep_nesting_is_refused(text: str) -> None:
    assert "deep" in only_problem(text)


def test_giant_scalars_are_refused() -> None:
    assert "a value of 100000 characters" in only_problem("a: " + "x" * 100_000)


def test_a_long_number_is_not_worth_reading() -> None:
    assert data("a: " + "9" * 5000)["a"] == "9" * 5000


def test_files_that_are_no_text_say_where(tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_bytes("version: 1\nname: caf\u00e9\n".encode("latin-1"))
    assert file_problem(path) == f"{path}:2:10: byte 0xe9 is no UTF-8 text (save it as UTF-8)"
    path.write_bytes("version: 1".encode("utf-16"))
    assert "UTF-16" in file_problem(path)
    path.write_bytes(b"version: 1\njobs: \0\n")
    assert file_problem(path) == f"{path}:2:7: contains a NUL byte"
    path.write_bytes(b"version: 1\n\x07")
    assert "U+0007" in file_problem(path)


def test_a_byte_order_mark_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_bytes(b"\xef\xbb\xbfjobs: [{name: a}]\n")
    assert load(path).jobs[0].name == "a"


def test_what_is_no_file_says_so(tmp_path: Path) -> None:
    assert file_problem(tmp_path) == f"{tmp_path}: is a directory, not a workload file"
    assert "no such file" in file_problem(tmp_path / "absent.yaml")
    (tmp_path / "empty.yaml").touch()
    assert "is empty" in file_problem(tmp_path / "empty.yaml")


def test_endless_and_huge_files_are_refused(tmp_path: Path) -> None:
    huge = tmp_path / "huge.yaml"
    with huge.open("wb") as file:
        os.truncate(file.fileno(), 2**40)
    assert "larger than 256 KiB" in file_problem(huge)
    with pytest.raises(WorkloadError, match="larger than"):
        read_text("/dev/zero")


def test_a_file_of_the_largest_size_is_read(tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    text = "jobs: [{name: a}]\n"
    path.write_text(text + ("#" * 79 + "\n") * ((MAX_FILE_BYTES - len(text)) // 80))
    assert load(path).jobs[0].name == "a"
