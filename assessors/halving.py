"""The rungs of successive halving: at each, a trial continues if it is among the best 1 / eta so far.

Li et al., A System for Massively Parallel Hyperparameter Tuning, MLSys 2020 (ASHA), in its stopping form: no trial
waits for others, so an early one may continue with a result that would not suffice later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..plugins import loss_sign
from ..protocol import objectives_of
from .base import Assessor, AssessResult
from .gains import GainReader, Gains, counted
from .outcomes import OutcomeReader, Standing


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
    """Why a trial is stopped: its result, the rung, and how many of how many may continue there.

    `places` is 0 if none continues before `least` have arrived.
    """

    result: Any
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

    def compare_by(self, results: Callable[[], _Results]) -> None:
        """Compare results of another kind, before any trial has come."""
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
            bracket=running.bracket.number,
            rung=i,
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
        self._reader: Any = GainReader(-loss_sign(optimize_mode))
        self._ladder = ladder
        self.reason: str | None = None

    def update_objectives(self, objectives: Sequence[Mapping[str, Any]]) -> None:
        """Take the objectives of an experiment; several, or limits, are judged by non-dominated rank."""
        found = objectives_of(objectives)
        if len(found) == 1 and not found[0].is_limited:
            self._reader = GainReader(-found[0].sign, found[0].name)
        else:
            self._reader = OutcomeReader(found)
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


def _explained(stop: Stop, shown: str) -> str:
    """Return why a trial with the shown result is stopped."""
    why = why_stopped(shown, stop.level, stop.places, stop.count, stop.least)
    return f"{why} (rung {stop.rung} of bracket {stop.bracket})"


def why_stopped(shown: str, level: int, places: int, count: int, least: int) -> str:
    """Return in words why a result is not enough at a rung.

    >>> why_stopped("0.5", level=3, places=1, count=4, least=2)
    '0.5 is not among the best 1 of 4 after 3 results'
    """
    rank = f"not among the best {places} of {count}"
    if places == 0:
        rank = f"number {count} of the {least} that must come before any continues"
    return f"{shown} is {rank} after {counted(level, 'result')}"
