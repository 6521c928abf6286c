"""Values of a workload that have more than one spelling: each has one parser and one canonical spelling.

One parser rather than a union of types, so that one mistake gives one message.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

from gdsfw.engine.spec import BlockSizes
from gdsfw.workload.names import near, unknown_key_hint
from gdsfw.workload.units import parse_rate, parse_size, shown

Direction = Literal["read", "write"]

VALID_BLOCKS = (
    "valid: a size (4KiB), a range (4KiB-64KiB or {min: 4KiB, max: 64KiB, step: 4KiB}), a weighted split "
    "({4KiB: 60, 64KiB: 40}), or {read: ..., write: ...} of these"
)
VALID_CPUS = "valid: auto, [0, 2, 4] or 0-3,8"
#: A job's name is part of its files' names.
NAME_PATTERN = r"^[A-Za-z0-9_][A-Za-z0-9_.+@-]{0,99}$"
#: More CPUs than any machine has; a typing error such as 0-99999999 must not fill memory.
MAX_CPU = 65535


class Mistake(NamedTuple):
    """What is wrong with a part of a value: the keys that lead to the part, and the message."""

    path: tuple[str | int, ...]
    message: str


class InvalidValueError(ValueError):
    """A value with mistakes, each at its own place inside the value."""

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        """Hold at least one mistake."""
        super().__init__("; ".join(mistake.message for mistake in mistakes))
        self.mistakes = tuple(mistakes)


class _Collector:
    """Runs parsers and keeps what they complain about, so that all mistakes of a value are told at once."""

    def __init__(self) -> None:
        self.mistakes: list[Mistake] = []

    def run(self, parser: Callable[[Any], Any], value: object, *path: str | int) -> Any:
        try:
            return parser(value)
        except InvalidValueError as error:
            self.mistakes += [Mistake((*path, *inner.path), inner.message) for inner in error.mistakes]
        except ValueError as error:
            self.mistakes.append(Mistake(path, str(error)))
        return None

    def add(self, message: str, *path: str | int) -> None:
        self.mistakes.append(Mistake(path, message))

    def finish(self) -> None:
        if self.mistakes:
            raise InvalidValueError(self.mistakes)


#: Keys of a pair of block sizes, and of a range.
_PAIR = ("read", "write")
_RANGE = ("min", "max", "step")


@dataclass(frozen=True)
class BlockSizeSpec:
    """Block sizes of reads and of writes, in bytes."""

    read: BlockSizes
    write: BlockSizes


def single_block(nbytes: int) -> BlockSizeSpec:
    """The same one size for both directions."""
    blocks = BlockSizes(((nbytes, 1),))
    return BlockSizeSpec(blocks, blocks)


def parse_block_size(value: object) -> BlockSizeSpec:
    """Block sizes from a size, a range, a weighted split, or a pair of these.

    Raises:
        ValueError: what is wrong, with the valid forms.
    """
    if isinstance(value, BlockSizeSpec):
        return value
    if isinstance(value, Mapping) and _has_names_of(value, _PAIR):
        return _parse_pair(value)
    blocks = _parse_blocks(value)
    return BlockSizeSpec(blocks, blocks)


def _has_names_of(value: Mapping[Any, Any], names: Sequence[str]) -> bool:
    """Whether a mapping is meant to have keys of these names; sizes are keys of a split."""
    return any(isinstance(key, str) and not key[:1].isdigit() and near(key, names) for key in value)


def _check_names(collector: _Collector, value: Mapping[Any, Any], names: Sequence[str], needed: Sequence[str]) -> None:
    """Tell unknown keys; a needed one is missing only where no other key was meant to be it."""
    unknown = [key for key in value if key not in names]
    for key in unknown:
        collector.add(f"unknown key {key!r} ({unknown_key_hint(str(key), names)})", key)
    for missing in needed if not unknown else ():
        if missing not in value:
            collector.add(f"{missing!r} is missing: both {' and '.join(map(repr, needed))} are needed")


def _parse_pair(value: Mapping[Any, Any]) -> BlockSizeSpec:
    collector = _Collector()
    _check_names(collector, value, _PAIR, needed=_PAIR)
    parsed = {key: collector.run(_parse_blocks, value[key], key) for key in _PAIR if key in value}
    collector.finish()
    return BlockSizeSpec(parsed["read"], parsed["write"])


def _parse_blocks(value: object) -> BlockSizes:
    """Block sizes of one direction."""
    if isinstance(value, Mapping) and value:
        return _parse_range(value) if _has_names_of(value, _RANGE) else _parse_split(value.items())
    if isinstance(value, str) and "/" in value:
        return _parse_split([tuple(part.partition("/")[::2]) for part in value.split(":")])
    if isinstance(value, str) and "-" in value.strip()[1:]:
        low, _, high = value.partition("-")
        return _parse_range({"min": low.strip(), "max": high.strip()})
    if not isinstance(value, (int, str)) or isinstance(value, bool):
        raise ValueError(f"{shown(value)} is no block size ({VALID_BLOCKS})")
    return BlockSizes(((parse_size(value, minimum=1), 1),))


def _parse_range(value: Mapping[Any, Any]) -> BlockSizes:
    collector = _Collector()
    _check_names(collector, value, _RANGE, needed=_RANGE[:2])
    size = partial(parse_size, minimum=1)
    parsed = {key: collector.run(size, value[key], key) for key in _RANGE if key in value}
    collector.finish()
    low, high = parsed["min"], parsed["max"]
    if low > high:
        raise ValueError(f"the range's min ({low} bytes) is larger than its max ({high} bytes)")
    if low == high:
        return BlockSizes(((low, 1),))
    # As in fio, sizes of a range are multiples of its smallest, so that they stay aligned.
    return BlockSizes(((low, 0), (high, 0)), step=parsed.get("step", low))


def _parse_split(items: Any) -> BlockSizes:
    collector = _Collector()
    choices: list[tuple[int, int]] = []
    for key, weight in items:
        nbytes = collector.run(partial(parse_size, minimum=1), key, key)
        # A key that is no size is one mistake, whatever it was given.
        parsed = collector.run(_parse_weight, weight, key) if nbytes is not None else None
        if nbytes is not None and parsed is not None:
            choices.append((nbytes, parsed))
    if len({nbytes for nbytes, _ in choices}) < len(choices):
        collector.add("the split names one size twice")
    collector.finish()
    return BlockSizes(tuple(choices) if len(choices) > 1 else ((choices[0][0], 1),))


def _parse_weight(value: object) -> int:
    number = int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value
    if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= 1_000_000:
        raise ValueError(f"{shown(value)} is no weight (valid: a whole number from 1 to 1000000)")
    return number


def dump_block_size(spec: BlockSizeSpec) -> Any:
    """The canonical spelling of `spec`."""
    if spec.read == spec.write:
        return _dump_blocks(spec.read)
    return {"read": _dump_blocks(spec.read), "write": _dump_blocks(spec.write)}


def _dump_blocks(blocks: BlockSizes) -> Any:
    if blocks.step:
        return {"min": blocks.smallest, "max": blocks.largest, "step": blocks.step}
    if len(blocks.choices) == 1:
        return blocks.choices[0][0]
    return {str(nbytes): weight for nbytes, weight in blocks.choices}


class Rates(NamedTuple):
    """A limit for each direction, per second; 0 is no limit."""

    read: int
    write: int


def parse_rates(parser: Callable[[object], int], value: object) -> Rates:
    """One limit for each direction on its own, or `{read, write}` with either left out.

    Raises:
        ValueError: what is wrong.
    """
    if isinstance(value, Rates):
        return value
    if not isinstance(value, Mapping):
        one = parser(value)
        return Rates(one, one)
    collector = _Collector()
    _check_names(collector, value, _PAIR, needed=())
    if not value:
        collector.add("an empty mapping (valid: read, write)")
    parsed = {key: collector.run(parser, value[key], key) for key in _PAIR if key in value}
    collector.finish()
    return Rates(parsed.get("read", 0), parsed.get("write", 0))


parse_byte_rates = partial(parse_rates, parse_rate)


def _parse_iops(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value < 2**63:
        raise ValueError(f"{shown(value)} is no rate in I/Os per second (valid: a whole number from 1)")
    return value


parse_iops_rates = partial(parse_rates, _parse_iops)


def dump_rates(rates: Rates) -> Any:
    """The canonical spelling of `rates`."""
    if rates.read == rates.write:
        return rates.read
    return {key: limit for key, limit in rates._asdict().items() if limit}


def _parse_index(kind: str, most: int, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise ValueError(f"{shown(value)} is no {kind} number (valid: 0 to {most})")
    return value


def _parse_indexes(kind: str, most: int, value: Sequence[Any]) -> tuple[int, ...]:
    collector = _Collector()
    parsed = [collector.run(partial(_parse_index, kind, most), item, index) for index, item in enumerate(value)]
    collector.finish()
    if not parsed or len(set(parsed)) < len(parsed):
        raise ValueError(f"an empty list of {kind}s" if not parsed else f"the list names one {kind} twice")
    return tuple(parsed)


def parse_cpus(value: object) -> tuple[int, ...] | Literal["auto"]:
    """CPU numbers from a list or from text such as "0-3,8", or `auto`.

    Raises:
        ValueError: what is wrong, with the valid forms.
    """
    if value == "auto":
        return "auto"
    if isinstance(value, int) and not isinstance(value, bool):
        value = [value]
    if isinstance(value, str):
        value = _parse_cpu_text(value)
    if not isinstance(value, (list, tuple)):
        raise ValueError(f"{shown(value)} is no list of CPUs ({VALID_CPUS})")
    return _parse_indexes("CPU", MAX_CPU, value)


def _parse_cpu_text(text: str) -> list[int]:
    cpus: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r" *([0-9]{1,5})(?:-([0-9]{1,5}))? *", part, re.ASCII)
        if match is None or int(match[2] or match[1]) < int(match[1]):
            raise ValueError(f"{shown(text)} is no list of CPUs ({VALID_CPUS})")
        cpus += range(int(match[1]), int(match[2] or match[1]) + 1)
    return cpus


def parse_devices(value: object) -> tuple[int, ...] | Literal["all"]:
    """Device ordinals from a list or one number, or `all`.

    Raises:
        ValueError: what is wrong, with the valid forms.
    """
    if value == "all":
        return "all"
    if isinstance(value, int) and not isinstance(value, bool):
        value = [value]
    if not isinstance(value, (list, tuple)):
        raise ValueError(f"{shown(value)} is no list of devices (valid: all, 0 or [0, 1])")
    return _parse_indexes("device", 1023, value)


def _parse_percentile(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 100:
        raise ValueError(f"{shown(value)} is no percentile (valid: a number above 0, at most 100)")
    return float(value)


def parse_percentiles(value: object) -> tuple[float, ...] | Literal["none"]:
    """Percentiles in rising order, or `none` for no latencies at all.

    Raises:
        ValueError: what is wrong, with the valid forms.
    """
    if value == "none":
        return "none"
    if not isinstance(value, (list, tuple)) or not value:
        raise ValueError(f"{shown(value)} is no list of percentiles (valid: none or [50, 99, 99.9])")
    collector = _Collector()
    parsed = [collector.run(_parse_percentile, item, index) for index, item in enumerate(value)]
    collector.finish()
    return tuple(sorted(set(parsed)))


def parse_name(value: object) -> str:
    """A name that can be part of a file name.

    Raises:
        ValueError: what is wrong, with the valid characters.
    """
    if not isinstance(value, str):
        raise ValueError(f'{shown(value)} is no text; quote it: "{shown(value)}"')
    if re.match(NAME_PATTERN, value, re.ASCII) is None:
        raise ValueError(
            f"{shown(value)} is no name (valid: 1 to 100 letters, digits, _ . + @ and -, not beginning with . + @ or -)"
        )
    return value
