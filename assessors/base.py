"""The base class of assessors, with NNI's method names, and the three verdicts."""

from __future__ import annotations

from enum import Enum
from typing import Any

from ..plugins import CheckpointFolder


class AssessResult(Enum):
    """The verdict on a running trial; a plain bool is understood as Good or Bad.

    >>> AssessResult(True)
    <AssessResult.Good: True>
    """

    Good = True
    Bad = False
    Pause = "pause"


class Assessor(CheckpointFolder):
    """Judges running trials; subclass it and override `assess_trial`.

    `__init__` of this class need not be called. Calls are never concurrent.

    >>> class Impatient(Assessor):
    ...     def assess_trial(self, trial_job_id, trial_history):
    ...         self.reason = f"{trial_history[-1]} is not above 0.5"
    ...         return AssessResult(trial_history[-1] > 0.5)
    >>> Impatient().assess_trial("AbCdE", [0.2])
    <AssessResult.Bad: False>
    """

    #: Why the last verdict was Bad or Pause, in one sentence; kept with the trial.
    reason: str | None = None

    def update_search_space(self, search_space: Any) -> None:
        """Take the search space in its JSON form; few assessors need it."""

    def assess_trial(self, trial_job_id: str, trial_history: list[Any]) -> AssessResult | bool:
        """Return the verdict on a trial by its intermediate results so far, oldest first."""
        raise NotImplementedError(f"{type(self).__name__} does not override assess_trial")

    def trial_end(self, trial_job_id: str, success: bool) -> None:
        """Note that a trial ended; `success` is False if it failed or was stopped."""

    def load_checkpoint(self) -> None:
        """Restore what `save_checkpoint` wrote; called at the start of a resumed run."""

    def save_checkpoint(self) -> None:
        """Save the assessor's state; assessors that pickle do not need this."""

    def _on_exit(self) -> None:
        """Clean up; called when the dispatcher ends normally."""

    def _on_error(self) -> None:
        """Clean up; called when the dispatcher ends by an error."""
