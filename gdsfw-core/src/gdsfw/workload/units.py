"""Sizes, durations, rates and percentages: from the text of a workload to bytes and nanoseconds, and back."""

from __future__ import annotations

import re
from dataclasses import dataclass

#: Bytes of each size suffix. A bare letter is binary, as in fio; `B` after a letter is decimal, as in the SI.
SIZE_SUFFIXES: dict[str, int] = {
    "": 1,
    "B": 1,
    **{letter: 1024**power for power, letters in enumerate(("kK", "mM", "gG", "tT", "pP"), 1) for letter in letters},
    **{f"{letter}iB": 1024**power for power, letter in enumerate("KMGTP", 1)},
    **{f"{letter}B": 1000**power for power, letter in enumerate("KMGTP", 1)},
    "kB": 1000,
}
#: Nanoseconds of each duration suffix.
DURATION_SUFFIXES: dict[str, int] = {
    "ns": 1,
    "us": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 86400 * 10**9,
}
#: Offsets and sizes are signed 64-bit numbers in every interface below.
MAX_BYTES = 2**63 - 1

VALID_SIZES = "valid: 4096, 4k or 4KiB (1024s), 4kB (1000s); letters k M G T P"
VALID_DURATIONS = "valid: 500ms, 5s, 2m, 1h; units ns us ms s m h d"

SIZE_PATTERN = r"^(0|[1-9][0-9]*)(\.[0-9]+)? ?(B|[kKmMgGtTpP]|[KMGTP]iB|[kKMGTP]B)?$"
PERCENT_PATTERN = r"^(0|[1-9][0-9]*)(\.[0-9]+)? ?%$"
DURATION_PATTERN = r"^(0|[1-9][0-9]*)(\.[0-9]+)? ?(ns|us|ms|s|m|h|d)$"

_NUMBER = re.compile(r"([0-9]+)(?:\.([0-9]+))? ?([A-Za-zµ%]*)", re.ASCII)
_PERCENT = re.compile(PERCENT_PATTERN, re.ASCII)


@dataclass(frozen=True)
class Percent:
    """A share of a file's size, as `10%`. Documented for `size` and `offset` only."""

    value: float

    def of(self, nbytes: int) -> int:
        """This share of `nbytes`, rounded down to whole bytes."""
        return min(nbytes, int(nbytes * self.value / 100))

    def __str__(self) -> str:
        """As a workload writes it: `10%`."""
        return f"{self.value:g}%"


def _scaled(text: str, suffixes: dict[str, int], kind: str, valid: str) -> int:
    """`text` times its suffix as a whole number.

    Raises:
        ValueError: no number, an unknown suffix, a leading zero, or a fraction of the smallest unit.
    """
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{shown(text)} is no {kind} ({valid})")
    whole, fraction, suffix = match[1], match[2] or "", match[3]
    if len(whole) > 1 and whole.startswith("0"):
        plain = (whole.lstrip("0") or "0") + suffix
        raise ValueError(f"{shown(text)} begins with a zero, which some read as octal; write {plain}")
    if suffix not in suffixes:
        raise ValueError(f"{shown(text)} has {f'an unknown unit {shown(suffix)}' if suffix else 'no unit'} ({valid})")
    scale: int = 10 ** len(fraction)
    product = int(whole + fraction) * suffixes[suffix]
    if product % scale:
        raise ValueError(f"{shown(text)} is no whole number of {'bytes' if kind == 'size' else 'nanoseconds'}")
    return product // scale


def shown(value: object) -> str:
    """`value` as a message quotes it, not too long: YAML's spelling of true, false and null."""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = "null" if value is None else repr(value)
    return text if len(text) <= 80 else f"{text[:60]}... ({len(text)} characters)"


def _not_text(value: object, kind: str, valid: str) -> ValueError:
    return ValueError(f"{shown(value)} is no {kind} ({valid})")


def parse_size(value: object, *, minimum: int = 0) -> int:
    """Bytes of a size such as 4096, "4k", "4KiB" (1024) or "4kB" (1000).

    Raises:
        ValueError: not a size, below `minimum` bytes or above 2**63 - 1.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        nbytes = value
    elif isinstance(value, str):
        nbytes = _scaled(value, SIZE_SUFFIXES, "size", VALID_SIZES)
    else:
        raise _not_text(value, "size", VALID_SIZES)
    if nbytes < minimum:
        raise ValueError(f"{shown(value)} is too small: the least is {minimum} byte{'s' if minimum != 1 else ''}")
    if nbytes > MAX_BYTES:
        raise ValueError(f"{shown(value)} is too large: the most is 2**63 - 1 bytes")
    return nbytes


def parse_size_or_percent(value: object, *, minimum: int = 0) -> int | Percent:
    """Bytes of a size, or a Percent for "10%".

    Raises:
        ValueError: neither, or a percentage outside 0 to 100.
    """
    if isinstance(value, str) and _PERCENT.match(value.strip()):
        percent = float(value.strip().rstrip("% "))
        if percent > 100 or (minimum and percent == 0):
            least = "above 0%" if minimum else "at least 0%"
            raise ValueError(f"{shown(value)} is outside its range (valid: {least}, at most 100%)")
        return Percent(percent)
    return parse_size(value, minimum=minimum)


def parse_rate(value: object) -> int:
    """Bytes per second of a rate such as "100MiB" or "100MiB/s".

    Raises:
        ValueError: not a rate, or zero.
    """
    if isinstance(value, str):
        value = value.strip().removesuffix("/s")
    return parse_size(value, minimum=1)


def parse_duration(value: object, *, minimum: int = 0) -> int:
    """Nanoseconds of a duration such as "500ms" or "5s"; a bare number has no unit and is refused, except 0.

    Raises:
        ValueError: not a duration, or below `minimum` nanoseconds.
    """
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value:
        raise ValueError(f"{shown(value)} has no unit: write {shown(value)}s for seconds ({VALID_DURATIONS})")
    if not isinstance(value, str):
        if value != 0 or isinstance(value, bool):
            raise _not_text(value, "duration", VALID_DURATIONS)
        value = "0s"
    if re.fullmatch(r"[0-9]+(:[0-9]+)+", value):
        raise ValueError(f"{shown(value)} is no duration: write minutes and seconds as seconds ({VALID_DURATIONS})")
    nanoseconds = _scaled(value, DURATION_SUFFIXES, "duration", VALID_DURATIONS)
    if nanoseconds < minimum:
        raise ValueError(f"{shown(value)} is too short: the least is {format_duration(minimum)}")
    if nanoseconds > MAX_BYTES:
        raise ValueError(f"{shown(value)} is too long: the most is 2**63 - 1 nanoseconds")
    return nanoseconds


def format_size(nbytes: int) -> str:
    """The shortest exact text: "4KiB", "10MiB", "1000" (bytes)."""
    for power, letter in ((5, "P"), (4, "T"), (3, "G"), (2, "M"), (1, "K")):
        if nbytes and nbytes % 1024**power == 0:
            return f"{nbytes // 1024**power}{letter}iB"
    return str(nbytes)


def format_duration(nanoseconds: int) -> str:
    """The shortest exact text in one unit: "5s", "1500ms", "2m"."""
    if nanoseconds == 0:
        return "0s"
    exact = [name for name, factor in DURATION_SUFFIXES.items() if nanoseconds % factor == 0]
    suffix = max(exact, key=DURATION_SUFFIXES.__getitem__)
    return f"{nanoseconds // DURATION_SUFFIXES[suffix]}{suffix}"


def approximate(nbytes: int) -> str:
    """A size as people say it: "1.5 GiB", "10 MiB", "511 bytes"."""
    for power, letter in ((5, "P"), (4, "T"), (3, "G"), (2, "M"), (1, "K")):
        scaled = nbytes / 1024**power
        if scaled >= 1:
            return f"{scaled:.3g} {letter}iB" if scaled < 1000 else f"{scaled:.0f} {letter}iB"
    return f"{nbytes} byte{'s' if nbytes != 1 else ''}"
