"""The base class of assessors, with NNI's method names, the three verdicts, and results as gains for most rules.

A gain is a result as a number that is better the larger it is; NaN is the worst.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from enum import Enum
from typing import Any

from ..plugins import CheckpointFolder
from ..protocol import metric_value, rounded


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


def gain_of(value: Any, sign: float, name: str = "default") -> float:
    """Return a reported value as a number, the larger the better; NaN becomes the worst."""
    gain = sign * metric_value(value, name)
    return -math.inf if math.isnan(gain) else gain


class GainReader:
    """Reads the gain in reports of the objective `name`; `sign` is 1 to maximize, -1 to minimize."""

    def __init__(self, sign: float, name: str = "default") -> None:
        self._sign, self._name = sign, name

    def check(self, report: Any) -> None:
        """Raise `MetricError` for a report that is not a number."""
        metric_value(report, self._name)

    def read(self, history: Sequence[Any], place: int) -> float:
        """Return the gain of a trial at a place of its history."""
        return gain_of(history[place], self._sign, self._name)

    def shown(self, gain: float) -> str:
        """Return a gain as the reported value."""
        return "no number" if gain == -math.inf else rounded(self._sign * gain + 0.0)


class Gains:
    """The gains of trials after the same number of results, ascending."""

    def __init__(self) -> None:
        self._gains = array("d")

    def __len__(self) -> int:
        return len(self._gains)

    def add(self, gain: float) -> None:
        """Add a gain."""
        insort(self._gains, gain)

    def remove(self, gain: float) -> None:
        """Remove a gain that was added."""
        del self._gains[bisect_left(self._gains, gain)]

    def better(self, gain: float) -> int:
        """Return how many are larger."""
        return len(self._gains) - bisect_right(self._gains, gain)

    @property
    def median(self) -> float:
        """The lower of the two middle values."""
        return self._gains[(len(self._gains) - 1) // 2]
