"""Asynchronous successive halving: a trial continues from a rung if it is among the best 1 / eta that reached it.

Li et al., A System for Massively Parallel Hyperparameter Tuning, MLSys 2020. This is the form that stops trials, as
in Ray Tune and Optuna; the form that pauses and promotes them is the tuner of the same name.
"""

from __future__ import annotations

from ..plugins import integer, number, synonym
from .halving import Bracket, HalvingAssessor, Ladder, Rung, levels

_ENDLESS = 2**40  # results; without max_t there are rungs up to here


class ASHAAssessor(HalvingAssessor):
    """Judges trials after grace_period, grace_period eta, grace_period eta^2 ... results, and stops all but the best.

    At each of these rungs the best 1 / `eta` of the trials that reached it continue, and always the best one.
    `max_t` is how many results a full trial makes: from there on no trial is judged. Bracket s of `brackets`
    begins s rungs later and gets eta^-s of the trials. The first `min_competitors` - 1 trials at a rung do not
    continue. `reduction_factor` is another name of `eta`, whose default is 3. NaN is the worst value. Raises ValueError
    for other arguments.

    >>> rule = ASHAAssessor(optimize_mode="maximize", eta=3)
    >>> rule.assess_trial("good", [0.8]), rule.assess_trial("bad", [0.5])
    (<AssessResult.Good: True>, <AssessResult.Bad: False>)
    >>> rule.reason
    '0.5 is not among the best 1 of 2 after 1 result (rung 0 of bracket 0)'
    """

    def __init__(
        self,
        optimize_mode: str = "maximize",
        eta: float | None = None,
        grace_period: int = 1,
        max_t: int | None = None,
        brackets: int = 1,
        min_competitors: int = 1,
        reduction_factor: float | None = None,
    ) -> None:
        given = synonym("eta", eta, "reduction_factor", reduction_factor)
        self._eta = number("eta", 3 if given is None else given, 1.1)
        grace = integer("grace_period", grace_period, 1)
        most = _ENDLESS if max_t is None else integer("max_t", max_t, 1)
        rungs = levels(grace, self._eta, most)
        count = integer("brackets", brackets, 1)
        if count > max(1, len(rungs)):
            raise ValueError(
                f"brackets must be at most {max(1, len(rungs))}, the number of rungs, not {count}"
            )
        ladder = Ladder(
            [Bracket(s, [Rung(level) for level in rungs[s:]], self._eta**-s) for s in range(count)],
            self._eta,
            integer("min_competitors", min_competitors, 1),
        )
        super().__init__(optimize_mode, ladder)
