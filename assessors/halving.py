"""Successive halving: at each rung, a trial continues if it is among the best 1 / eta that reached it so far.

Li et al., A System for Massively Parallel Hyperparameter Tuning, MLSys 2020 (ASHA)
Li et al., Hyperband: A Novel Bandit-Based Approach to Hyperparameter Optimization, JMLR 18, 2018 (brackets)

This is the form that stops trials, as in Ray Tune and Optuna: no trial waits for others, so an early one may continue
with a result that would not suffice later. The forms that pause and promote trials are the tuners of the same names.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..plugins import integer, loss_sign, number, synonym
from ..protocol import Config, counted, objectives_of
from .base import Assessor, AssessResult, GainReader, Gains
from .outcomes import OutcomeReader, Standing

_ENDLESS = 2**40  # results; without max_t there are rungs up to here


class HalvingAssessor(Assessor):
    """Judges trials at the rungs of a ladder; a subclass says which rungs."""

    def __init__(self, optimize_mode: str, ladder: Ladder) -> None:
        self._reader: Any = GainReader(-loss_sign(optimize_mode))
        self._ladder = ladder
        self.reason: str | None = None

    def update_objectives(self, objectives: Sequence[Config]) -> None:
        """Take the objectives of an experiment; several, or limits, are judged by non-dominated rank."""
        parsed = objectives_of(objectives)
        if len(parsed) == 1 and not parsed[0].is_limited:
            self._reader = GainReader(-parsed[0].sign, parsed[0].name)
        else:
            self._reader = OutcomeReader(parsed)
            goals = len(self._reader.goals)
            self._ladder.compare_by(lambda: Standing(goals))

    def assess_trial(self, trial_job_id: str, trial_history: list[Any]) -> AssessResult:
        """Return Bad when the trial reached a rung and is not among the best there, else Good."""
        if trial_history:
            self._reader.check(trial_history[-1])  # refused at once, not at the next rung
        stop = self._ladder.judge(
            trial_job_id, len(trial_history), lambda i: self._reader.read(trial_history, i)
        )
        self.reason = None if stop is None else _explained(stop, self._reader.shown(stop.result))
        return AssessResult(stop is None)

    def trial_end(self, trial_job_id: str, success: bool) -> None:
        """Forget the trial; its results at the rungs still count, however it ended."""
        self._ladder.end(trial_job_id)


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
    '0.5 is not among the best 1 of 2 after 1 result'
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
        brackets = [_bracket(s, s_max, R, eta) for s in range(s_max, -1, -1)]
        super().__init__(optimize_mode, Ladder(brackets, eta))


def _bracket(s: int, s_max: int, R: int, eta: int) -> Bracket:
    rungs = [Rung(max(1, R // eta**i)) for i in range(s, 0, -1)]
    return Bracket(s, rungs, math.ceil((s_max + 1) * eta**s / (s + 1)))


def _explained(stop: Stop, shown: str) -> str:
    """Return why a trial with the shown result is stopped."""
    why = why_stopped(shown, stop.level, stop.places, stop.count, stop.least)
    return f"{why} (bracket {stop.bracket} of {stop.brackets})" if stop.brackets > 1 else why


class _Results(Protocol):
    """The results of trials at one rung: `Gains`, or the `Standing` of several objectives."""

    def __len__(self) -> int: ...
    def add(self, result: Any, /) -> None: ...
    def remove(self, result: Any, /) -> None: ...
    def better(self, result: Any, /) -> int: ...


@dataclass(slots=True)
class Rung:
    """All results that trials had at one level (a number of results)."""

    level: int
    results: _Results = field(default_factory=Gains)

    def replace(self, old: Any, new: Any) -> None:
        """Add a result, in place of the one that the same trial had in an earlier attempt."""
        if old is not None:
            self.results.remove(old)
        self.results.add(new)

    def places(self, eta: float, least: int) -> int:
        """Return how many may continue: the best 1 / eta, at least one; none before `least` have arrived."""
        return max(1, int(len(self.results) / eta)) if len(self.results) >= least else 0


@dataclass(slots=True)
class Bracket:
    """The rungs that a share of the trials is judged at, the lowest first; `weight` is that share."""

    number: int
    rungs: list[Rung]
    weight: float = 1.0
    trials: int = 0


@dataclass(slots=True)
class _Running:
    """A running trial: its bracket, and its result at each rung it has reached."""

    bracket: Bracket
    results: list[Any] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Why a trial is stopped: its result, the level of the rung, and how many of how many may continue there.

    `bracket` is counted from 1. `places` is 0 if none continues before `least` have arrived.
    """

    result: Any
    bracket: int
    brackets: int
    level: int
    places: int
    count: int
    least: int


class Ladder:
    """Brackets of rungs and the trials in them; a judgement costs O(log n) comparisons for n trials.

    `eta` trials compete for one place; none continues from a rung before `least` have reached it.
    A new trial goes to the bracket that is farthest below its share.

    >>> ladder = Ladder([Bracket(0, [Rung(1), Rung(3)])], eta=2)
    >>> ladder.judge("a", 1, lambda i: 0.5), ladder.judge("b", 1, lambda i: 0.4).places
    (None, 1)
    """

    def __init__(self, brackets: list[Bracket], eta: float, least: int = 1) -> None:
        self._brackets, self._eta, self._least = brackets, eta, least
        self._running: dict[str, _Running] = {}

    def compare_by(self, results: Callable[[], _Results]) -> None:
        """Replace how results are compared; call this before the first trial."""
        for bracket in self._brackets:
            for rung in bracket.rungs:
                rung.results = results()

    def judge(self, trial: str, count: int, result_at: Callable[[int], Any]) -> Stop | None:
        """Record a trial's results at the rungs it has reached; return why to stop it, or None.

        `count` is the number of its results, `result_at(i)` the i-th from 0.
        """
        running = self._running.get(trial)
        if running is None:
            running = self._running[trial] = _Running(self._next_bracket())
        rungs, stop = running.bracket.rungs, None
        first = len(running.results)
        if first and count <= rungs[first - 1].level:  # a new attempt, or the call was repeated
            first = next(i for i in range(first) if rungs[i].level >= count)
        for i in range(first, len(rungs)):
            rung = rungs[i]
            if rung.level > count:
                break
            stop = stop or self._enter(running, i, result_at(rung.level - 1))
        return stop

    def end(self, trial: str) -> None:
        """Forget a trial that ended; its results at the rungs stay."""
        self._running.pop(trial, None)

    def _enter(self, running: _Running, i: int, result: Any) -> Stop | None:
        rung = running.bracket.rungs[i]
        known = i < len(running.results)
        rung.replace(running.results[i] if known else None, result)
        running.results[i : i + 1] = [result]
        places = rung.places(self._eta, self._least)
        if rung.results.better(result) < places:
            return None
        return Stop(
            result=result,
            bracket=running.bracket.number + 1,
            brackets=len(self._brackets),
            level=rung.level,
            places=places,
            count=len(rung.results),
            least=self._least,
        )

    def _next_bracket(self) -> Bracket:
        bracket = min(self._brackets, key=lambda each: (each.trials + 1) / each.weight)
        bracket.trials += 1
        return bracket


def levels(grace_period: int, eta: float, most: float) -> list[int]:
    """Return grace_period, grace_period eta, grace_period eta^2 and so on, rounded, all below `most`.

    >>> levels(1, 3, 27), levels(2, 1.5, 10)
    ([1, 3, 9], [2, 3, 4, 7])
    """
    counts: list[int] = []
    level = float(grace_period)
    while round(level) < most:
        if not counts or round(level) > counts[-1]:
            counts.append(round(level))
        level *= eta
    return counts


def why_stopped(shown: str, level: int, places: int, count: int, least: int) -> str:
    """Return in words why a result is not enough at a rung.

    >>> why_stopped("0.5", level=3, places=1, count=4, least=2)
    '0.5 is not among the best 1 of 4 after 3 results'
    """
    rank = f"not among the best {places} of {count}"
    if places == 0:
        rank = f"number {count} of the {least} that must come before any continues"
    return f"{shown} is {rank} after {counted(level, 'result')}"
