"""The default rule: successive halving that needs no number of steps, or only hopeless trials.

The rungs are those of ASHA (Li et al., MLSys 2020). How long trials are, and whether their reports foretell their final
results, is learned from the trials themselves.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..plugins import loss_sign, one_of
from ..protocol import Config, counted, main_objective, objectives_of, rounded
from .base import Assessor, AssessResult, GainReader
from .halving import Rung, levels, why_stopped

_LIMIT = 12  # trials that ended without a final result, before a good one is left to run to its end
_FEWEST = 4  # finished trials that a comparison of early and final results needs
_MEMORY = 100  # of these trials, the latest
_FORETELLS = 0.3  # the least rank correlation, where final results are something else than the reports
_EQUAL = 0.01  # of the range of a trial's results: so near to one of them, its final result is one of them
_RUNG_SHARE = 0.5  # of the shortest finished trial: there is no rung later, where little is left to save
# The same, where only hopeless trials are stopped: not before, since early stops would tell a model little.
_STAGE_SHARES = (0.25, 0.8)
_CAUTION = 1.3  # times the largest change seen
_MARGIN = 0.1  # of the distance of the best to the median: how far behind the best a hopeless trial stays
# Counts of results: 1, 2, 3, 4, 5, 7, 9, 12 ...; at some, the rungs, trials are compared with each other.
_STAGES = levels(1, 3**0.25, 2**40)


class _Halving:
    """At each rung the best 1 / eta continue; at a later rung than the first, none before `least` have come."""

    def __init__(self, eta: float, least: int) -> None:
        self.eta, self.least = eta, least
        self.rungs = {_STAGES.index(level) for level in levels(1, eta, 2**40)}


# Until a trial has finished, 1, 3, 9, 27 ...: few go far, so that the first final result comes soon.
_COARSE = _Halving(3, 2)
# Then 1, 2, 3, 5, 9, 16, 27 ...: a trial is dropped later, on more evidence, and more trials finish.
_FINE = _Halving(3**0.5, 3)


@dataclass(kw_only=True, slots=True)
class _Trial:
    """A trial: its results so far as gains (count, best, lowest, last, one for each stage), and its final gain."""

    count: int = 0
    lowest: float = math.inf
    best: float = -math.inf
    last: float = -math.inf
    gains: list[float] = field(default_factory=list)
    judged: int = 0  # stages, the rungs among them
    final: float = -math.inf

    def follow(self, gain: float) -> None:
        """Note a result."""
        self.last, self.best, self.lowest = gain, max(self.best, gain), min(self.lowest, gain)

    @property
    def ends_as_reported(self) -> bool:
        """Whether the final result is the last or the best one that was reported."""
        nearest = min((self.last, self.best), key=lambda gain: abs(self.final - gain))
        return self.final == nearest or abs(self.final - nearest) <= _EQUAL * (self.best - self.lowest)


class AutoAssessor(Assessor):
    """Stops a trial that is not among the best at a rung; with `hopeless_only`, one that cannot become the best.

    Until a trial has finished, the best third continues at each rung: after 1, 3, 9, 27 ... results. A rung is used as
    soon as there are two trials and one has gone beyond it. The very first trial at a later rung is stopped. After 12
    trials without a final result, the next good one is left to run to its end.

    From then on the rungs are 1, 2, 3, 5, 9, 16, 27 ... results, up to half of the shortest finished trial. The best
    58 % (1 / sqrt(3)) continue; the first two trials at a later rung do not. Where final results are something else
    than the last or the best report, a rung is used only if four finished trials show a rank correlation of at least
    0.3.

    With `hopeless_only`, a trial is stopped between a quarter and four fifths of the shortest finished trial, if 1.3
    times the largest change that finished trials made after that point would leave it clearly behind the best final
    result. Four trials must have finished.

    With several objectives, or limits on outcomes, no trial is stopped.

    >>> rule = AutoAssessor(optimize_mode="maximize")
    >>> for level in (0.5, 0.6, 0.7):
    ...     verdict = [rule.assess_trial(str(level), [level, level + 0.1][:n]) for n in (1, 2)]
    >>> rule.reason, rule.assess_trial("bad", [0.1])
    (None, <AssessResult.Bad: False>)
    >>> rule.reason
    '0.1 is not among the best 1 of 4 after 1 result'
    """

    judges_several = False  # objectives: `pitchpipe validate` and the start of a run warn of it

    def __init__(self, optimize_mode: str = "maximize", hopeless_only: bool = False) -> None:
        one_of("hopeless_only", hopeless_only, (True, False))
        self._reader = GainReader(-loss_sign(optimize_mode))
        self._hopeless_only = hopeless_only
        self._is_off = False
        self._stages: list[Rung] = []
        self._running: dict[str, _Trial] = {}
        self._finished: deque[_Trial] = deque(maxlen=_MEMORY)
        self._best = -math.inf  # of all final results
        self._farthest = 0  # the most results of a trial
        self._unfinished = 0  # trials that ended without a final result
        self._probe: str | None = None  # runs to its end, so that the first final result comes
        self.reason: str | None = None

    def update_objectives(self, objectives: Sequence[Config]) -> None:
        """Take the objectives of an experiment."""
        parsed = objectives_of(objectives)
        main = main_objective(parsed)
        self._is_off = len(parsed) > 1 or main.is_limited
        self._reader = GainReader(-main.sign, main.name)

    def assess_trial(self, trial_job_id: str, trial_history: list[Any]) -> AssessResult:
        """Return Bad when the trial is worth no more time, else Good."""
        self.reason = None
        if self._is_off or not trial_history:
            return AssessResult.Good
        self._reader.check(trial_history[-1])
        trial = self._running.setdefault(trial_job_id, _Trial())
        if len(trial_history) <= trial.count:  # a new attempt, or the call was repeated
            self._restart(trial_job_id)
            trial = self._running[trial_job_id]
        reached = self._follow(trial, trial_history)
        if self._hopeless_only:
            self.reason = self._why_hopeless(trial, len(trial.gains) - 1) if reached else None
        elif trial_job_id != self._probe:
            self.reason = self._why_behind(trial)
            if self.reason and self._needs_probe(trial):
                self._probe, self.reason = trial_job_id, None
        return AssessResult(self.reason is None)

    def receive_trial_result(self, trial_job_id: str, value: Any) -> None:
        """Take the final result of a trial."""
        trial = self._running.get(trial_job_id)
        if trial is not None:
            trial.final = self._reader.read([value], 0)

    def trial_end(self, trial_job_id: str, success: bool) -> None:
        """Learn from the trial, if it succeeded, how long trials are and what their reports foretell."""
        trial = self._running.pop(trial_job_id, None)
        if self._probe == trial_job_id:
            self._probe = None
        if trial is None:
            return
        if success and trial.final > -math.inf:
            self._finished.append(trial)
            self._best = max(self._best, trial.final)
        else:
            self._unfinished += 1

    def _follow(self, trial: _Trial, history: list[Any]) -> bool:
        """Note the new results of a trial; return whether it reached a stage."""
        known = len(trial.gains)
        for place in range(trial.count, len(history)):
            gain = self._reader.read(history, place)
            trial.follow(gain)
            if place + 1 == _STAGES[len(trial.gains)]:
                self._enter(len(trial.gains), gain)
                trial.gains.append(gain)
        trial.count = len(history)
        self._farthest = max(self._farthest, trial.count)
        return len(trial.gains) > known

    def _restart(self, trial_job_id: str) -> None:
        for stage, gain in enumerate(self._running[trial_job_id].gains):
            self._stages[stage].results.remove(gain)
        self._running[trial_job_id] = _Trial()

    def _enter(self, stage: int, gain: float) -> None:
        if stage == len(self._stages):
            self._stages.append(Rung(_STAGES[stage]))
        self._stages[stage].results.add(gain)

    def _why_behind(self, trial: _Trial) -> str | None:
        """Return why a trial is stopped at a rung that it has reached and that is used by now, or None."""
        halving = _FINE if self._finished else _COARSE
        for stage in range(trial.judged, len(trial.gains)):
            is_rung = stage in halving.rungs
            if is_rung and not self._is_used(stage):
                break
            trial.judged = stage + 1
            if is_rung and (reason := self._why_behind_at(stage, trial.gains[stage], halving)):
                return reason
        return None

    def _why_behind_at(self, stage: int, gain: float, halving: _Halving) -> str | None:
        rung, least = self._stages[stage], halving.least if stage else 1
        places, count = rung.places(halving.eta, least), len(rung.results)
        if rung.results.better(gain) < places or not self._foretells(stage):
            return None
        return why_stopped(self._reader.shown(gain), rung.level, places, count, least)

    def _is_used(self, stage: int) -> bool:
        """Return whether trials are known to go on beyond a rung, and can be compared at the first one."""
        if self._finished:
            return _STAGES[stage] <= _RUNG_SHARE * self._shortest()
        return self._farthest > _STAGES[stage] and len(self._stages[0].results) > 1

    def _shortest(self) -> int:
        return min(trial.count for trial in self._finished)

    def _needs_probe(self, trial: _Trial) -> bool:
        """Return whether this trial, about to be stopped, shall bring the first final result."""
        if self._finished or self._probe is not None or self._unfinished < _LIMIT:
            return False
        first = self._stages[0]
        return first.results.better(trial.gains[0]) < first.places(_COARSE.eta, 1)

    def _foretells(self, stage: int) -> bool:
        """Return whether the results at a stage say something about the final ones, as far as is known."""
        if all(trial.ends_as_reported for trial in self._finished):
            return True
        peers = [trial for trial in self._finished if len(trial.gains) > stage]
        if len(peers) < _FEWEST:
            return False
        early = _ranks([trial.gains[stage] for trial in peers])
        final = _ranks([trial.final for trial in peers])
        covariance = sum(a * b for a, b in zip(early, final, strict=True))
        spread = sum(a * a for a in early) * sum(b * b for b in final)
        return covariance >= _FORETELLS * spread**0.5 > 0

    def _why_hopeless(self, trial: _Trial, stage: int) -> str | None:
        """Return why a trial cannot become the best, or None if it may."""
        peers = [peer for peer in self._finished if len(peer.gains) > stage and peer.gains[stage] > -math.inf]
        first, last = _STAGE_SHARES
        if len(peers) < _FEWEST or not first <= _STAGES[stage] / self._shortest() <= last:
            return None
        change = max(0.0, *(peer.final - peer.gains[stage] for peer in peers))
        finals = sorted(peer.final for peer in self._finished)
        bar = self._best - _MARGIN * (self._best - finals[len(finals) // 2])
        gain = trial.gains[stage]
        if not gain + _CAUTION * change < bar or not self._foretells(stage):
            return None
        return (
            f"{self._reader.shown(gain)} after {counted(_STAGES[stage], 'result')} cannot become the best,"
            f" {self._reader.shown(self._best)}: finished trials changed by at most {rounded(change)} from there"
        )


def _ranks(values: Sequence[Any]) -> list[float]:
    """Return the ranks, less their mean; equal values share theirs."""
    ordered, middle = sorted(values), (len(values) - 1) / 2
    return [(bisect_left(ordered, value) + bisect_right(ordered, value) - 1) / 2 - middle for value in values]
