"""Hyperband's brackets as an assessor: asynchronous successive halving from several first rungs at once.

Li et al., Hyperband: A Novel Bandit-Based Approach to Hyperparameter Optimization, JMLR 18, 2018; asynchronous as in
Li et al., MLSys 2020, section 3.3: each bracket is an ASHA of its own.
"""

from __future__ import annotations

import math

from ..plugins import integer
from .halving import Bracket, HalvingAssessor, Ladder, Rung


class HyperbandAssessor(HalvingAssessor):
    """Spreads trials over brackets that begin to judge early, later, or never, and halves each asynchronously.

    `R` is how many results a full trial makes, `eta` how many compete for one place. Of s_max + 1 brackets, bracket
    s judges after R / eta^s results and every eta times as many, below R; it gets the share of trials that it has in
    Hyperband, where it starts ceil((s_max + 1) / (s + 1) eta^s) of them (Li et al. 2018, algorithm 1). So some trials
    are never judged. NaN is the worst value. Raises ValueError for other arguments.

    >>> rule = HyperbandAssessor(optimize_mode="maximize", R=9, eta=3)
    >>> [rule.assess_trial(f"t{i}", [0.9 - i / 10]).name for i in range(6)]
    ['Good', 'Good', 'Bad', 'Bad', 'Good', 'Good']
    >>> rule.reason is None, rule.assess_trial("t1", [0.8] * 3).name
    (True, 'Good')
    """

    def __init__(self, optimize_mode: str = "maximize", R: int = 60, eta: int = 3) -> None:
        R, eta = integer("R", R, 1), integer("eta", eta, 2)
        s_max = 0
        while eta ** (s_max + 1) <= R:
            s_max += 1
        super().__init__(
            optimize_mode, Ladder([_bracket(s, s_max, R, eta) for s in range(s_max, -1, -1)], eta)
        )


def _bracket(s: int, s_max: int, R: int, eta: int) -> Bracket:
    rungs = [Rung(max(1, R // eta**i)) for i in range(s, 0, -1)]
    return Bracket(s, rungs, math.ceil((s_max + 1) * eta**s / (s + 1)))
