"""What the budget table consists of: rows, the limit of each, and how a measured value compares with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from measuring import Outcome, Probe

__all__ = ["Group", "Limit", "Peer", "Row"]


@dataclass(frozen=True, slots=True)
class Limit:
    """The budget of a row: at least or less than `value`."""

    value: float
    at_least: bool

    def is_met(self, measured: float) -> bool:
        """Whether a measured value keeps to the budget."""
        return measured >= self.value if self.at_least else measured < self.value

    def verdict(self, measured: float) -> str:
        """Met, or missed by which factor."""
        if self.is_met(measured):
            return "met"
        factor = self.value / measured if self.at_least else measured / self.value
        return f"**missed**, {factor:.2f} times" if self.value else "**missed**"


@dataclass(frozen=True, slots=True)
class Peer:
    """Whom a row is compared with: the probe's name, and its key if that is another than ours."""

    probe: str
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. `key` is the number in the probe's answer, `show` how it is written."""

    what: str
    key: str
    limit: Limit | None
    show: Callable[[float], str]
    ours: str = "Pitchpipe"
    peers: Sequence[Peer] = ()
    higher_is_better: bool = False
    note: str = ""

    def measured(self, outcomes: Mapping[str, Outcome]) -> float | None:
        """Our median."""
        return outcomes[self.ours].median(self.key)

    def compared(self, outcomes: Mapping[str, Outcome]) -> list[tuple[str, float | None, float | None]]:
        """Name, median and ratio (above 1: ours is better by that) of each peer."""
        mine = self.measured(outcomes)
        found = []
        for peer in self.peers:
            theirs = outcomes[peer.probe].median(peer.key or self.key)
            found.append((peer.probe, theirs, self._ratio(mine, theirs)))
        return found

    def _ratio(self, mine: float | None, theirs: float | None) -> float | None:
        if not mine or not theirs or mine < 0:
            return None
        return mine / theirs if self.higher_is_better else theirs / mine


@dataclass(frozen=True, slots=True)
class Group:
    """Probes that are measured side by side, and the rows that come of them."""

    name: str
    probes: Sequence[Probe]
    rows: Sequence[Row]
