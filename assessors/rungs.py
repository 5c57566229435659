"""The rungs of successive halving: at each, a trial continues if it is among the best 1 / eta so far.

Li et al., A System for Massively Parallel Hyperparameter Tuning, MLSys 2020 (ASHA), in its stopping form: no trial
waits for others, so an early one may continue with a result that would not suffice later.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, insort
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..plugins import loss_sign
from ..protocol import metric_value
from .base import Assessor, AssessResult
from .gains import counted, gain_of

__all__ = ["Bracket", "HalvingAssessor", "Ladder", "Rung", "levels"]


@dataclass(slots=True)
class Rung:
    """All results that trials had at one level (a number of results), ascending; larger is better."""

    level: int
    gains: array[float] = field(default_factory=lambda: array("d"))

    def replace(self, old: float | None, new: float) -> None:
        """Add a result, in place of the one that the same trial had in an earlier attempt."""
        if old is not None:
            del self.gains[bisect_left(self.gains, old)]
        insort(self.gains, new)

    def places(self, eta: float, least: int) -> int:
        """Return how many may continue: the best 1 / eta, at least one; none before `least` have arrived."""
        return max(1, int(len(self.gains) / eta)) if len(self.gains) >= least else 0


@dataclass(slots=True)
class Bracket:
    """The rungs that a share of the trials is judged at, the lowest first; `weight` is that share."""

    number: int
    rungs: list[Rung]
    weight: float = 1.0
    trials: int = 0


@dataclass(slots=True)
class _Running:
    """A running trial: its bracket, and its gain at each rung it has reached."""

    bracket: Bracket
    gains: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Why a trial is stopped: its gain, the rung, and how many of how many may continue there.

    `places` is 0 if none continues before `least` have arrived.
    """

    gain: float
    bracket: int
    rung: int
    level: int
    places: int
    count: int
    least: int


class Ladder:
    """Brackets of rungs and the trials in them; a judgement costs O(log n) comparisons for n trials.

    `eta` trials compete for one place; none continues from a rung before `least` have reached it.
    A new trial goes to the bracket that lacks most of its share.

    >>> ladder = Ladder([Bracket(0, [Rung(1), Rung(3)])], eta=2)
    >>> ladder.judge("a", 1, lambda i: 0.5), ladder.judge("b", 1, lambda i: 0.4).places
    (None, 1)
    """

    def __init__(self, brackets: list[Bracket], eta: float, least: int = 1) -> None:
        self._brackets, self._eta, self._least = brackets, eta, least
        self._running: dict[str, _Running] = {}

    def judge(self, trial: str, count: int, gain_at: Callable[[int], float]) -> Stop | None:
        """Record a trial's gains at the rungs it has reached; return why to stop it, or None.

        `count` is the number of its results, `gain_at(i)` the gain of the i-th from 0.
        """
        running = self._running.get(trial)
        if running is None:
            running = self._running[trial] = _Running(self._next_bracket())
        rungs, stop = running.bracket.rungs, None
        first = len(running.gains)
        if first and count <= rungs[first - 1].level:  # a new attempt, or the call was repeated
            first = next(i for i in range(first) if rungs[i].level >= count)
        for i in range(first, len(rungs)):
            rung = rungs[i]
            if rung.level > count:
                break
            stop = stop or self._enter(running, i, gain_at(rung.level - 1))
        return stop

    def end(self, trial: str) -> None:
        """Forget a trial that ended; its gains at the rungs stay."""
        self._running.pop(trial, None)

    def _enter(self, running: _Running, i: int, gain: float) -> Stop | None:
        rung = running.bracket.rungs[i]
        known = i < len(running.gains)
        rung.replace(running.gains[i] if known else None, gain)
        running.gains[i : i + 1] = [gain]
        places = rung.places(self._eta, self._least)
        if places and gain >= rung.gains[-places]:
            return None
        return Stop(
            gain=gain,
            bracket=running.bracket.number,
            rung=i,
            level=rung.level,
            places=places,
            count=len(rung.gains),
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
    found: list[int] = []
    level = float(grace_period)
    while round(level) < most:
        if not found or round(level) > found[-1]:
            found.append(round(level))
        level *= eta
    return found


class HalvingAssessor(Assessor):
    """Judges trials at the rungs of a ladder; a subclass says which rungs."""

    def __init__(self, optimize_mode: str, ladder: Ladder) -> None:
        self._sign = -loss_sign(optimize_mode)
        self._ladder = ladder
        self.reason: str | None = None

    def assess_trial(self, trial_job_id: str, trial_history: list[Any]) -> AssessResult:
        """Return Bad when the trial reached a rung and is not among the best there, else Good."""
        if trial_history:
            metric_value(trial_history[-1])  # an invalid value is refused at once, not at the next rung
        stop = self._ladder.judge(
            trial_job_id, len(trial_history), lambda i: gain_of(trial_history[i], self._sign)
        )
        self.reason = None if stop is None else _explained(stop, self._sign)
        return AssessResult(stop is None)

    def trial_end(self, trial_job_id: str, success: bool) -> None:
        """Forget the trial; its results at the rungs still count, however it ended."""
        self._ladder.end(trial_job_id)


def _explained(stop: Stop, sign: float) -> str:
    """Return why a trial is stopped; `sign` turns its gain into the reported value."""
    worst = stop.gain == float("-inf")
    shown = "no number" if worst else f"{sign * stop.gain + 0.0:.6g}"
    rank = f"not among the best {stop.places} of {stop.count}"
    if stop.places == 0:
        rank = f"number {stop.count} of the {stop.least} that must come before any continues"
    where = f"(rung {stop.rung} of bracket {stop.bracket})"
    return f"{shown} is {rank} after {counted(stop.level, 'result')} {where}"
