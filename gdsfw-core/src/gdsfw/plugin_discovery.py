"""Finds the plugins of installed distributions by entry point, and picks those that GDSFW_PLUGINS leaves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points

from gdsfw.hookspecs import PROJECT

#: Environment variable: comma-separated names to load only those, `-name` to leave one out.
SELECTION_VARIABLE = "GDSFW_PLUGINS"


@dataclass(frozen=True)
class Selection:
    """Which plugins to load. `only` empty: all that are not in `blocked`."""

    only: frozenset[str] = frozenset()
    blocked: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, text: str) -> Selection:
        """From the value of GDSFW_PLUGINS, for instance `posix,noop` or `-fault`."""
        words = [word.strip() for word in text.split(",") if word.strip()]
        blocked = frozenset(word[1:].strip() for word in words if word.startswith("-"))
        return cls(frozenset(word for word in words if not word.startswith("-")), blocked)

    def __contains__(self, name: object) -> bool:
        return name not in self.blocked and (not self.only or name in self.only)

    def unknown(self, names: Iterable[str]) -> list[str]:
        """Names that are selected by name but not among `names`."""
        return sorted(self.only - self.blocked - set(names))


@dataclass(frozen=True)
class PluginFailure:
    """A plugin that is not used, and why.

    Args:
        name: of the entry point.
        distribution: that offers it, with its version; several when two offer one name.
        reason: what is wrong with it, in a line.
        hint: how to fix it, or empty.
    """

    name: str
    distribution: str
    reason: str
    hint: str = ""


@dataclass(frozen=True)
class Offer:
    """One plugin that a distribution offers."""

    name: str
    distribution: str
    version: str
    entry_point: EntryPoint

    @property
    def source(self) -> str:
        """The distribution with its version."""
        return f"{self.distribution} {self.version}".strip()


def offers() -> list[Offer]:
    """Every plugin that the installed distributions offer, in order of their names."""
    found = [_offer(point) for point in entry_points(group=PROJECT)]
    return sorted(found, key=lambda offer: (offer.name, offer.distribution))


def _offer(point: EntryPoint) -> Offer:
    try:
        assert point.dist is not None
        name, version = point.dist.metadata["Name"] or "", point.dist.metadata["Version"] or ""
    except Exception:  # a distribution without metadata must not cost the others
        name, version = "", ""
    return Offer(point.name, name or "unknown distribution", version, point)


def split_clashes(found: Iterable[Offer]) -> tuple[list[Offer], list[PluginFailure]]:
    """Offers whose name is theirs alone, and a failure for each name that several distributions offer."""
    by_name: dict[str, list[Offer]] = {}
    for offer in found:
        by_name.setdefault(offer.name, []).append(offer)
    alone = [group[0] for group in by_name.values() if len(group) == 1]
    return alone, [_clash(name, group) for name, group in by_name.items() if len(group) > 1]


def _clash(name: str, group: list[Offer]) -> PluginFailure:
    owners = " and ".join(offer.source for offer in group)
    reason = f"the plugin name {name!r} is offered by {owners}; none of them is used"
    return PluginFailure(name, owners, reason, "uninstall all but one")
