"""Hyperband: many configurations on a small budget, the best of them on larger and larger ones.

Li et al., Hyperband: A Novel Bandit-Based Approach to Hyperparameter Optimization, JMLR 18, 2018.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ..plugins import integer, one_of
from ..protocol import rounded
from .base import Member, ScheduledTuner
from .tuner import NoMoreTrialError


@dataclass(slots=True, eq=False, kw_only=True)
class _Bracket:
    """Successive halving: `sizes` and `budgets` of its rungs, and the members of the rung that it is at."""

    sizes: list[int]
    budgets: list[int]
    rung: int = 0
    members: list[Member] = field(default_factory=list)

    @property
    def is_filled(self) -> bool:
        return self.rung > 0 or len(self.members) >= self.sizes[0]

    @property
    def is_last_rung(self) -> bool:
        return self.rung == len(self.sizes) - 1

    def shrink(self, eta: int) -> None:
        """Shrink this rung and those above: no more members will come."""
        count = len(self.members)
        self.sizes[self.rung :] = [max(1, count // eta**i) for i in range(len(self.sizes) - self.rung)]


def halvings(ratio: float, eta: int) -> int:
    """Return how often a full budget can be divided by eta; `ratio` is the full budget over the least.

    >>> halvings(81, 3), halvings(80, 3)
    (4, 3)
    """
    count = 0
    while eta ** (count + 1) <= ratio:
        count += 1
    return count


def bracket_plan(s: int, s_max: int, R: int, eta: int) -> tuple[list[int], list[int]]:
    """Return the sizes and the budgets of the rungs of bracket s (Li et al. 2018, algorithm 1).

    >>> bracket_plan(2, 2, 9, 3)
    ([9, 3, 1], [1, 3, 9])
    """
    count = math.ceil((s_max + 1) * eta**s / (s + 1))
    sizes = [max(1, count // eta**i) for i in range(s + 1)]
    return sizes, [max(1, R * eta**i // eta**s) for i in range(s + 1)]


class HyperbandTuner(ScheduledTuner[Member]):
    """Runs brackets of successive halving one after the other, without end; budgets are intermediate results.

    `R` is the budget of a full run; `eta` members compete for one place in the next rung. Bracket s starts
    ceil((s_max + 1) / (s + 1) eta^s) configurations with the budget R / eta^s (Li et al. 2018, algorithm 1). At the end
    of a rung trials are paused; the best continue from their checkpoints, the others are stopped. With `exec_mode`
    `parallelism` the next bracket opens while the last still waits for results, with `serial` it does not. Raises
    ValueError for other arguments.

    >>> tuner = HyperbandTuner(R=9, eta=3, seed=1)
    >>> tuner.update_search_space({"x": {"_type": "uniform", "_value": [0, 1]}})
    >>> [tuner.generate_parameters(i).budget for i in range(16)]
    [1, 1, 1, 1, 1, 1, 1, 1, 1, 3, 3, 3, 3, 3, 9, 9]
    """

    def __init__(
        self,
        optimize_mode: str = "maximize",
        R: int = 60,
        eta: int = 3,
        exec_mode: str = "parallelism",
        seed: int | None = None,
    ) -> None:
        super().__init__(optimize_mode, seed)
        self._R, self._eta = integer("R", R, 1), integer("eta", eta, 2)
        self._serial = one_of("exec_mode", exec_mode, ("parallelism", "serial")) == "serial"
        self._s_max = halvings(self._R, self._eta)
        self._opened = 0
        self._brackets: list[_Bracket] = []  # those that are not over

    def _compare_now(self) -> None:
        """Let no rung wait for new trials."""
        for bracket in list(self._brackets):
            if not bracket.is_filled:
                bracket.shrink(self._eta)
            self._look_at(bracket)

    def _new_member(self) -> Member:
        bracket = self._brackets[-1] if self._brackets and not self._brackets[-1].is_filled else None
        if bracket is None and self._serial and self._brackets:
            raise NoMoreTrialError("the next bracket begins when this one is over")
        try:
            parameters = self._sample()
        except NoMoreTrialError:
            self._compare_now()
            raise
        if bracket is None:
            bracket = self._open()
        member = Member(parameters=parameters, target=bracket.budgets[0])
        bracket.members.append(member)
        return member

    def _open(self) -> _Bracket:
        s = self._s_max - self._opened % (self._s_max + 1)
        sizes, budgets = bracket_plan(s, self._s_max, self._R, self._eta)
        bracket = _Bracket(sizes=sizes, budgets=budgets)
        self._opened += 1
        self._brackets.append(bracket)
        return bracket

    def _bracket_of(self, member: Member) -> _Bracket | None:
        return next((bracket for bracket in self._brackets if member in bracket.members), None)

    def _is_paused_at(self, member: Member) -> bool:
        bracket = self._bracket_of(member)
        return bracket is not None and not bracket.is_last_rung

    def _arrived(self, member: Member) -> None:
        bracket = self._bracket_of(member)
        if bracket is not None:
            self._look_at(bracket)

    def _look_at(self, bracket: _Bracket) -> None:
        """Promote from rung to rung while all members of the current one have arrived."""
        while bracket.is_filled and all(member.waits for member in bracket.members):
            if bracket.is_last_rung:
                self._brackets.remove(bracket)
                return
            self._promote(bracket)

    def _promote(self, bracket: _Bracket) -> None:
        ranked = sorted(bracket.members, key=lambda member: member.loss)
        bracket.rung += 1
        places = bracket.sizes[bracket.rung]
        able = [member for member in ranked if not member.failed]
        bracket.members = able[:places]
        for member in bracket.members:
            if not member.complete:
                self._continue(member, bracket.budgets[bracket.rung])
        for member in ranked:
            if member not in bracket.members:
                budget = bracket.budgets[bracket.rung - 1]
                rank = f"not among the best {places} of {len(ranked)} with a budget of {budget}"
                self._end(member, f"{rounded(self._sign * member.loss)} is {rank}")
