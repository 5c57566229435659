"""The cautious rule: successive halving where early results are known to foretell the final ones.

The rungs are those of ASHA (Li et al., MLSys 2020). What it adds is a reason to trust them, taken from the trials that
ran to their end: at each rung, Spearman's rank correlation between their results there and their final ones.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..plugins import loss_sign
from ..protocol import main_objective, objectives_of
from .base import Assessor, AssessResult
from .gains import GainReader, Gains, counted

__all__ = ["AutoAssessor"]

_ETA = 3
_FEWEST = 4  # trials that ran to their end, before any other is stopped at a rung
_MEMORY = 100  # of these trials, the latest
_FORETELLS = 0.3  # the least rank correlation of a rung that is judged at
_SHARE = 0.5  # of the shortest of these trials: there is no judgement later, where little is left to save


@dataclass(slots=True)
class _Trial:
    """A trial: how many results it has made, its gain at each rung it has reached, and its final gain."""

    count: int = 0
    gains: list[float] = field(default_factory=list)
    final: float | None = None


class AutoAssessor(Assessor):
    """Stops a trial that is not among the best third at a rung, where early results foretell final ones.

    The rungs are 1, 3, 9, 27 ... results. A rung is judged at once four trials have run to their end, twice as many
    results as at the rung and more, and the rank correlation between their results at the rung and their final results
    is at least 0.3. So trials that report something else than their final result on the way, or the other way round,
    are not stopped. With several objectives, or limits on outcomes, no trial is.

    >>> rule = AutoAssessor(optimize_mode="maximize")
    >>> for level in (0.5, 0.6, 0.7, 0.8):
    ...     _ = rule.assess_trial(str(level), [level - 0.2]), rule.assess_trial(str(level), [level - 0.2, level])
    ...     rule.receive_trial_result(str(level), level)
    ...     rule.trial_end(str(level), success=True)
    >>> rule.assess_trial("bad", [0.1])
    <AssessResult.Bad: False>
    >>> rule.reason
    '0.1 is not among the best 1 of 5 after 1 result; results there foretell the final ones (rank correlation 1.00)'
    """

    def __init__(self, optimize_mode: str = "maximize") -> None:
        self._reader = GainReader(-loss_sign(optimize_mode))
        self._is_off = False
        self._rungs: list[Gains] = []
        self._running: dict[str, _Trial] = {}
        self._finished: deque[_Trial] = deque(maxlen=_MEMORY)
        self.reason: str | None = None

    def update_objectives(self, objectives: Sequence[Mapping[str, Any]]) -> None:
        """Take the objectives of an experiment."""
        found = objectives_of(objectives)
        main = main_objective(found)
        self._is_off = len(found) > 1 or main.is_limited
        self._reader = GainReader(-main.sign, main.name)

    def assess_trial(self, trial_job_id: str, trial_history: list[Any]) -> AssessResult:
        """Return Bad when the trial is not among the best third at a rung that is judged at, else Good."""
        self.reason = None
        if self._is_off or not trial_history:
            return AssessResult.Good
        self._reader.check(trial_history[-1])
        trial = self._running.setdefault(trial_job_id, _Trial())
        if len(trial_history) <= trial.count:  # a new attempt, or the call was repeated
            self._restart(trial)
        trial.count = len(trial_history)
        while _ETA ** len(trial.gains) <= trial.count:
            rung = len(trial.gains)
            gain = self._reader.read(trial_history, _ETA**rung - 1)
            self._enter(rung, gain)
            trial.gains.append(gain)
            self.reason = self.reason or self._objection(rung, gain)
        return AssessResult(self.reason is None)

    def receive_trial_result(self, trial_job_id: str, value: Any) -> None:
        """Take the final result of a trial."""
        trial = self._running.get(trial_job_id)
        if trial is not None:
            trial.final = self._reader.read([value], 0)

    def trial_end(self, trial_job_id: str, success: bool) -> None:
        """Compare early and final results of the trial, if it succeeded."""
        trial = self._running.pop(trial_job_id, None)
        if trial is not None and success and trial.final is not None:
            self._finished.append(trial)

    def _restart(self, trial: _Trial) -> None:
        for rung, gain in enumerate(trial.gains):
            self._rungs[rung].remove(gain)
        trial.gains = []

    def _enter(self, rung: int, gain: float) -> None:
        if rung == len(self._rungs):
            self._rungs.append(Gains())
        self._rungs[rung].add(gain)

    def _objection(self, rung: int, gain: float) -> str | None:
        """Return why a trial with this gain is stopped at a rung, or None."""
        results = self._rungs[rung]
        places = max(1, len(results) // _ETA)
        if results.better(gain) < places:
            return None
        correlation = self._correlation(rung)
        if correlation is None or correlation < _FORETELLS:
            return None
        rank = f"not among the best {places} of {len(results)} after {counted(_ETA**rung, 'result')}"
        why = f"results there foretell the final ones (rank correlation {correlation:.2f})"
        return f"{self._reader.shown(gain)} is {rank}; {why}"

    def _correlation(self, rung: int) -> float | None:
        """Return the rank correlation at a rung with the final results, None if too little is known."""
        if len(self._finished) < _FEWEST or _ETA**rung > _SHARE * min(
            trial.count for trial in self._finished
        ):
            return None
        early = _ranks([trial.gains[rung] for trial in self._finished])
        final = _ranks([trial.final for trial in self._finished])
        covariance = sum(a * b for a, b in zip(early, final, strict=True))
        spread = sum(a * a for a in early) * sum(b * b for b in final)
        return covariance / spread**0.5 if spread else None


def _ranks(values: Sequence[Any]) -> list[float]:
    """Return the ranks, less their mean; equal values share theirs."""
    ordered, middle = sorted(values), (len(values) - 1) / 2
    return [(bisect_left(ordered, one) + bisect_right(ordered, one) - 1) / 2 - middle for one in values]
