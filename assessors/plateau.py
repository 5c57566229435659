"""Rules that look at how long a trial has not improved on its own best result.

Prechelt, Early Stopping - But When?, in Neural Networks: Tricks of the Trade, 1998 (the class UP of criteria, with a
least improvement).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..plugins import as_json, integer, loss_sign, number, optional_mapping
from ..protocol import Config, Json, counted, rounded
from .base import Assessor, AssessResult, gain_of
from .registry import REGISTRY


class PlateauAssessor(Assessor):
    """Stops a trial whose best result has not been improved on by more than `min_delta` for `patience` results.

    It is judged from `start_step` results on, by itself alone: other trials do not matter. NaN is the worst value.
    `optimize_mode` is `maximize` or `minimize`. Raises ValueError for other arguments.

    >>> rule = PlateauAssessor(optimize_mode="minimize", patience=2)
    >>> rule.assess_trial("t", [0.9, 0.5, 0.6]), rule.assess_trial("t", [0.9, 0.5, 0.6, 0.5])
    (<AssessResult.Good: True>, <AssessResult.Bad: False>)
    >>> rule.reason
    'no better than 0.5 for the last 2 of 4 results'
    """

    def __init__(
        self,
        optimize_mode: str = "maximize",
        patience: int = 10,
        min_delta: float = 0.0,
        start_step: int = 0,
    ) -> None:
        self._sign = -loss_sign(optimize_mode)
        self._patience = integer("patience", patience, 1)
        self._progress = Progress(number("min_delta", min_delta, 0.0))
        self._start_step = integer("start_step", start_step, 0)
        self.reason: str | None = None

    def assess_trial(self, trial_job_id: str, trial_history: list[Any]) -> AssessResult:
        """Return Bad when the last `patience` results brought nothing, else Good."""
        self.reason = None
        count = len(trial_history)
        state = self._progress.follow(trial_job_id, count, lambda i: gain_of(trial_history[i], self._sign))
        still = count - state.since
        if count < self._start_step or still < self._patience:
            return AssessResult.Good
        best = "NaN" if state.best == float("-inf") else rounded(self._sign * state.best + 0.0)
        self.reason = f"no better than {best} for the last {still} of {counted(count, 'result')}"
        return AssessResult.Bad

    def trial_end(self, trial_job_id: str, success: bool) -> None:
        """Forget the trial."""
        self._progress.forget(trial_job_id)


class PatientAssessor(Assessor):
    """Stops a trial only if the rule `assessor` would and it has not improved for `patience` results.

    `assessor` is a name, and `assessor_args` its class_args; `optimize_mode` is passed on to it. An improvement
    is one by more than `min_delta` over the trial's best. After the patience has run out, a trial is stopped at the
    next result that the rule finds bad; rules that judge only at some results (ASHA) are asked only there.
    Raises ValueError for other arguments, its own or the rule's.

    >>> rule = PatientAssessor(assessor="Medianstop", optimize_mode="maximize", patience=2)
    >>> rule.assess_trial("good", [0.8, 0.9, 0.9, 0.9])
    <AssessResult.Good: True>
    >>> rule.trial_end("good", success=True)
    >>> [rule.assess_trial("bad", [0.1, 0.2, 0.2, 0.2][:n]).name for n in (1, 2, 3, 4)]
    ['Good', 'Good', 'Good', 'Bad']
    >>> rule.reason
    '0.2 is below the median 0.875 of 1 trial after 4 results; no improvement for 2 results'
    """

    def __init__(
        self,
        assessor: str = "Medianstop",
        patience: int = 3,
        min_delta: float = 0.0,
        optimize_mode: str = "maximize",
        assessor_args: Mapping[str, Json] | None = None,
    ) -> None:
        self._sign = -loss_sign(optimize_mode)
        self._patience = integer("patience", patience, 1)
        self._progress = Progress(number("min_delta", min_delta, 0.0))
        given = optional_mapping("assessor_args", assessor_args).get("optimize_mode", optimize_mode)
        if given != optimize_mode:
            raise ValueError(
                f"assessor_args: optimize_mode {as_json(given)} contradicts {as_json(optimize_mode)} of optimize_mode"
            )
        self._rule = REGISTRY.create_inner(assessor, assessor_args, optimize_mode=optimize_mode)
        self.reason: str | None = None

    def update_objectives(self, objectives: Sequence[Config]) -> None:
        """Pass the objectives on to a rule that takes them; an improvement is one in the main objective."""
        update = getattr(self._rule, "update_objectives", None)
        if update is not None:
            update(objectives)

    def update_search_space(self, search_space: Any) -> None:
        """Pass the search space on."""
        self._rule.update_search_space(search_space)

    def assess_trial(self, trial_job_id: str, trial_history: list[Any]) -> AssessResult:
        """Return the verdict of the rule, or Good while the trial improves."""
        self.reason = None
        count = len(trial_history)
        state = self._progress.follow(trial_job_id, count, lambda i: gain_of(trial_history[i], self._sign))
        verdict = AssessResult(self._rule.assess_trial(trial_job_id, trial_history))
        still = count - state.since
        if verdict is AssessResult.Good or still < self._patience:
            return AssessResult.Good
        why = self._rule.reason or f"{type(self._rule).__name__} found it bad"
        self.reason = f"{why}; no improvement for {counted(still, 'result')}"
        return verdict

    def trial_end(self, trial_job_id: str, success: bool) -> None:
        """Pass the end on, and forget the trial."""
        self._rule.trial_end(trial_job_id, success)
        self._progress.forget(trial_job_id)


@dataclass(slots=True)
class _Trial:
    """How many results were seen, the best of them, and when it came (counted from 1)."""

    count: int = 0
    best: float = -math.inf
    since: int = 0


class Progress:
    """Follows the best result of each running trial, larger being better; `min_delta` is what counts as an improvement.

    >>> progress = Progress(0.0)
    >>> progress.follow("t", 3, [0.1, 0.5, 0.4].__getitem__).since
    2
    """

    def __init__(self, min_delta: float) -> None:
        self._min_delta = min_delta
        self._trials: dict[str, _Trial] = {}

    def follow(self, trial: str, count: int, gain_at: Callable[[int], float]) -> _Trial:
        """Read the new results of a trial that has `count` in total, and return its state.

        With no more results than before, the trial is in a new attempt.
        """
        state = self._trials.setdefault(trial, _Trial())
        if count <= state.count:
            state = self._trials[trial] = _Trial()
        for i in range(state.count, count):
            gain = gain_at(i)
            if gain > state.best + self._min_delta or state.since == 0:
                state.best, state.since = gain, i + 1
        state.count = count
        return state

    def forget(self, trial: str) -> None:
        """Forget a trial that ended."""
        self._trials.pop(trial, None)
