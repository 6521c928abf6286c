from __future__ import annotations

import pytest
from gdsfw.workload import units
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [
        (4096, 4096),
        ("4096", 4096),
        ("4k", 4096),
        ("4K", 4096),
        ("4KiB", 4096),
        ("4kB", 4000),
        ("4KB", 4000),
        ("1m", 2**20),
        ("1M", 2**20),
        ("1MiB", 2**20),
        ("1MB", 10**6),
        ("1g", 2**30),
        ("1G", 2**30),
        ("1GiB", 2**30),
        ("1GB", 10**9),
        ("2T", 2**41),
        ("1.5GiB", 3 * 2**29),
        ("4 KiB", 4096),
        ("512B", 512),
        (0, 0),
    ],
)
def test_sizes(text: object, nbytes: int) -> None:
    assert units.parse_size(text) == nbytes


@pytest.mark.parametrize(
    "text", ["4Ki", "4kib", "4Kb", "4mb", "4x", "KiB", "", "-1", -1, "1e3", 1.5, True, None, "4 k b", "0x10", [4], "٤k"]
)
def test_what_is_no_size_says_what_is_valid(text: object) -> None:
    with pytest.raises(ValueError, match=r"4KiB|least"):
        units.parse_size(text)


def test_a_leading_zero_is_refused_because_readers_differ_about_it() -> None:
    with pytest.raises(ValueError, match="octal; write 100k"):
        units.parse_size("0100k")


def test_a_fraction_of_a_byte_is_refused() -> None:
    with pytest.raises(ValueError, match="whole number of bytes"):
        units.parse_size("0.3k")


def test_sizes_beyond_63_bits_are_refused() -> None:
    with pytest.raises(ValueError, match="too large"):
        units.parse_size("8192P")


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("500ms", 500_000_000),
        ("5s", 5_000_000_000),
        ("2m", 120_000_000_000),
        ("1h", 3_600_000_000_000),
        ("10us", 10_000),
        ("7ns", 7),
        ("1.5s", 1_500_000_000),
        (0, 0),
    ],
)
def test_durations(text: object, nanoseconds: int) -> None:
    assert units.parse_duration(text) == nanoseconds


@pytest.mark.parametrize("text", [5, 5.5, "5", "5sec", "1:30", "s", True, None, "-5s", "05s"])
def test_a_duration_without_a_known_unit_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match=r"500ms|zero"):
        units.parse_duration(text)


def test_a_bare_number_says_how_to_write_seconds() -> None:
    with pytest.raises(ValueError, match="write 5s for seconds"):
        units.parse_duration(5)


def test_percentages_are_shares_of_a_file() -> None:
    percent = units.parse_size_or_percent("10%")
    assert percent == units.Percent(10.0)
    assert isinstance(percent, units.Percent)
    assert percent.of(1_048_576) == 104_857
    assert str(percent) == "10%"


@pytest.mark.parametrize("text", ["101%", "-1%", "%", "ten%"])
def test_percentages_outside_a_file_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"outside|size"):
        units.parse_size_or_percent(text)


def test_percentages_are_no_plain_sizes() -> None:
    with pytest.raises(ValueError, match="unknown unit '%'"):
        units.parse_size("10%")


def test_rates_may_say_per_second() -> None:
    assert units.parse_rate("100MiB/s") == units.parse_rate("100MiB") == 100 * 2**20


@given(st.integers(0, units.MAX_BYTES))
def test_formatted_sizes_and_durations_read_back_exactly(number: int) -> None:
    assert units.parse_size(units.format_size(number)) == number
    assert units.parse_duration(units.format_duration(number)) == number


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [(0, "0 bytes"), (1, "1 byte"), (1023, "1023 bytes"), (1536, "1.5 KiB"), (1023 * 2**20, "1023 MiB")],
)
def test_approximate_sizes(nbytes: int, text: str) -> None:
    assert units.approximate(nbytes) == text
