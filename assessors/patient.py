"""A wrapper that gives trials more time: another rule decides, but a trial that still improves continues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..plugins import integer, loss_sign, number, optional_mapping, shown
from .base import Assessor, AssessResult
from .gains import counted, gain_of
from .progress import Progress
from .registry import REGISTRY


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
        assessor_args: Mapping[str, Any] | None = None,
    ) -> None:
        self._sign = -loss_sign(optimize_mode)
        self._patience = integer("patience", patience, 1)
        self._progress = Progress(number("min_delta", min_delta, 0.0))
        given = optional_mapping("assessor_args", assessor_args).get("optimize_mode", optimize_mode)
        if given != optimize_mode:
            raise ValueError(
                f"assessor_args: optimize_mode {shown(given)} contradicts {shown(optimize_mode)} of optimize_mode"
            )
        self._rule = REGISTRY.create_inner(assessor, assessor_args, optimize_mode=optimize_mode)
        self.reason: str | None = None

    def update_objectives(self, objectives: Sequence[Mapping[str, Any]]) -> None:
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
