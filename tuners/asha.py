"""Asynchronous successive halving that pauses and promotes: no trial waits for a rung to fill.

Li et al., A System for Massively Parallel Hyperparameter Tuning, MLSys 2020. This is the form of the paper; the one
that stops trials is the assessor of the same name, which goes with any tuner.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from dataclasses import dataclass, field

from .arguments import integer
from .scheduled import Member, ScheduledTuner


@dataclass(slots=True, eq=False)
class _Climber(Member):
    """A member, and the rung that it is on the way to or waits at."""

    rung: int = 0


@dataclass(slots=True)
class _Rung:
    """All that came to a budget, as (loss, order of arrival), ascending, and those of them that wait there."""

    budget: int
    results: list[tuple[float, int]] = field(default_factory=list)
    waiting: list[tuple[float, int, _Climber]] = field(default_factory=list)  # a heap

    def arrive(self, member: _Climber) -> None:
        """Take a member that has reached the budget; one that failed or has done all it can is not promoted."""
        place = (member.loss, len(self.results))
        insort(self.results, place)
        if not (member.failed or member.complete):
            heapq.heappush(self.waiting, (*place, member))

    def take_promotable(self, eta: int) -> _Climber | None:
        """Take out the best that waits, if it is among the best 1 / eta (Li et al. 2020, algorithm 2)."""
        if not self.waiting:
            return None
        rank = bisect_left(self.results, self.waiting[0][:2])
        return heapq.heappop(self.waiting)[-1] if rank < len(self.results) // eta else None


class ASHATuner(ScheduledTuner):
    """Trains random configurations on a small budget, and promotes from each rung the best 1 / ``eta`` so far.

    Budgets are intermediate results: ``grace_period``, ``grace_period`` eta, and so on, and ``R`` for a full run. At
    the end of a rung a trial is paused. Whenever a rung has grown, those that wait there and are now among its best 1
    / ``eta`` go on from their checkpoints; other free places go to new configurations. Raises ValueError for other
    arguments.

    >>> tuner = ASHATuner(R=9, eta=3, seed=1)
    >>> tuner.update_search_space({"x": {"_type": "uniform", "_value": [0, 1]}})
    >>> [tuner.generate_parameters(i).budget for i in range(3)]
    [1, 1, 1]
    """

    def __init__(
        self,
        optimize_mode: str = "maximize",
        R: int = 60,
        eta: int = 3,
        grace_period: int = 1,
        seed: int | None = None,
    ) -> None:
        super().__init__(optimize_mode, seed)
        R, self._eta = integer("R", R, 1), integer("eta", eta, 2)
        budget = integer("grace_period", grace_period, 1)
        self._rungs: list[_Rung] = []
        while budget < R:
            self._rungs.append(_Rung(budget))
            budget *= self._eta
        self._rungs.append(_Rung(R))

    def _new_member(self) -> Member:
        return _Climber(self._sample(), self._rungs[0].budget)

    def _is_paused_at(self, member: Member) -> bool:
        return isinstance(member, _Climber) and member.rung < len(self._rungs) - 1

    def _arrived(self, member: Member) -> None:
        if not isinstance(member, _Climber):
            return
        rung = self._rungs[member.rung]
        rung.arrive(member)
        if rung is self._rungs[-1]:
            return
        while (promoted := rung.take_promotable(self._eta)) is not None:
            self._promote(promoted)

    def _compare_now(self) -> None:
        """Let the best of the highest rung that anybody waits at go on, so that somebody comes to the end."""
        for rung in reversed(self._rungs[:-1]):
            if rung.waiting:
                if not self._rungs[-1].results:
                    self._promote(heapq.heappop(rung.waiting)[-1])
                return

    def _promote(self, member: _Climber) -> None:
        member.rung += 1
        self._let_go_on(member, self._rungs[member.rung].budget)
