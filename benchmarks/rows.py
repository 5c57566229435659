"""The parts of the budget table: rows, their limits, and how a measured value compares with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from measuring import Outcome, Probe

__all__ = ["Group", "Limit", "Peer", "Row"]


@dataclass(frozen=True, slots=True)
class Limit:
    """The budget of a row: less than `value`, or at least that."""

    value: float
    at_least: bool = False

    def is_met(self, measured: float) -> bool:
        """Return whether a measured value keeps to the budget."""
        return measured >= self.value if self.at_least else measured < self.value

    def verdict(self, measured: float) -> str:
        """Say whether the budget is met, or by which factor it is missed."""
        if self.is_met(measured):
            return "met"
        factor = self.value / measured if self.at_least else measured / self.value
        return f"**missed**, {factor:.2f} times" if self.value else "**missed**"


@dataclass(frozen=True, slots=True)
class Peer:
    """A peer that a row is compared with: the name of its probe."""

    probe: str


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. `key` names the number that the probe reports, `show` formats it.

    `machine` names the probe of what the machine does at most.
    """

    what: str
    key: str
    limit: Limit | None
    show: Callable[[float], str]
    ours: str = "Pitchpipe"
    peers: Sequence[Peer] = ()
    machine: str = ""
    note: str = ""

    def measured(self, outcomes: Mapping[str, Outcome]) -> float | None:
        """Return our median."""
        return outcomes[self.ours].median(self.key)

    def compared(self, outcomes: Mapping[str, Outcome]) -> list[tuple[str, float | None, float | None]]:
        """Return name, median and ratio of each peer; a ratio above 1 says how many times better ours is."""
        mine = self.measured(outcomes)
        found = []
        for peer in self.peers:
            theirs = outcomes[peer.probe].median(self.key)
            found.append((peer.probe, theirs, self._ratio(mine, theirs)))
        return found

    def share(self, outcomes: Mapping[str, Outcome]) -> tuple[float, float] | None:
        """Return what the machine does at most and our share of it, None if there is no such measurement."""
        most = outcomes[self.machine].median(self.key) if self.machine else None
        share = self._ratio(self.measured(outcomes), most)
        return None if most is None or share is None else (most, share)

    def _ratio(self, mine: float | None, theirs: float | None) -> float | None:
        if not mine or not theirs or mine < 0:
            return None
        more_is_better = self.limit is not None and self.limit.at_least
        return mine / theirs if more_is_better else theirs / mine


@dataclass(frozen=True, slots=True)
class Group:
    """Probes that are measured side by side, and the rows that they fill."""

    name: str
    probes: Sequence[Probe]
    rows: Sequence[Row]
