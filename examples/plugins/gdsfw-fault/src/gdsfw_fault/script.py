"""Which calls are hit: each worker counts on its own, so that what other threads do changes nothing."""

from __future__ import annotations

import os
import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gdsfw.errors import BackendError, Domain

if TYPE_CHECKING:
    from gdsfw_fault.options import FaultOptions, Rule

_DOMAINS = {"gpu": Domain.GPU, "file": Domain.FILE}
#: Calls of a rule that are remembered for the result; the rest is counted.
REMEMBERED = 10


@dataclass(slots=True)
class Hit:
    """What happens to one call.

    Args:
        error: raised instead of the call.
        delay_ns: how much longer it takes.
        short: most bytes that it moves; 0 for no limit.
    """

    error: OSError | BackendError | None = None
    delay_ns: int = 0
    short: int = 0


NOTHING = Hit()


class RuleCount:
    """One rule in one thread: calls so far, and those that were hit.

    Args:
        chance: an own sequence of random numbers, so that rules do not disturb each other.
    """

    def __init__(self, rule: Rule, chance: random.Random) -> None:
        self.rule = rule
        self.calls = 0
        self.hits = 0
        self.first: list[int] = []
        self._chance = chance

    def hit(self) -> bool:
        """Count a call; whether the rule is about it."""
        self.calls += 1
        rule = self.rule
        if rule.nth is not None:
            due = self.calls == rule.nth
        elif rule.every is not None:
            due = self.calls % rule.every == 0
        else:
            due = self._chance.random() < (rule.probability or 0)
        if due:
            self.hits += 1
            if len(self.first) < REMEMBERED:
                self.first.append(self.calls)
        return due


class Script:
    """The rules as one thread goes through them.

    Args:
        who: `worker 0`, or `main` for the hooks that belong to no worker.
    """

    def __init__(self, options: FaultOptions, who: str) -> None:
        self.who = who
        # Seeded by text, which gives the same numbers in every process.
        self.counts = [
            RuleCount(rule, random.Random(f"{options.seed} {who} {number}"))
            for number, rule in enumerate(options.rules)
        ]
        self._by_call: dict[str, list[RuleCount]] = {}
        for count in self.counts:
            self._by_call.setdefault(count.rule.on, []).append(count)

    def look(self, call: str) -> Hit:
        """What happens to the next call: the delays of all rules that fit, the smallest count, the first error."""
        counts = self._by_call.get(call)
        if counts is None:
            return NOTHING
        rules = [count.rule for count in counts if count.hit()]
        if not rules:
            return NOTHING
        return Hit(
            error=next((_error(rule, call) for rule in rules if rule.errno or rule.code), None),
            delay_ns=sum(rule.delay_ns for rule in rules),
            short=min((rule.short_bytes for rule in rules if rule.short_bytes), default=0),
        )

    def strike(self, call: str) -> None:
        """Sleep and fail, as the rules say of this call."""
        act(self.look(call))


def act(hit: Hit) -> None:
    """Sleep, then raise.

    Raises:
        OSError, BackendError: the error that is to be met.
    """
    if hit.delay_ns:
        time.sleep(hit.delay_ns / 1e9)
    if hit.error is not None:
        raise hit.error


def _error(rule: Rule, call: str) -> OSError | BackendError:
    """What the backend itself would raise."""
    if rule.domain is not None and rule.code is not None:
        return BackendError(call, _DOMAINS[rule.domain], rule.code)
    return OSError(rule.errno, os.strerror(rule.errno))
