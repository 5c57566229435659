"""What a tuner may ask for besides new parameters: budgets, checkpoints of other trials, pause, resume and end.

Schedulers such as Hyperband and population-based training need these; other tuners do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Parameters of a new trial that is told a budget, or that starts from the checkpoint of another trial.

    Return it in place of plain parameters. `budget` is in the units that the tuner and the trials agree on, usually
    intermediate results; `checkpoint_of` is the id of a trial. With `pauses_at_budget` the budget counts intermediate
    results, and a trial that obeys it is paused there instead of ending.

    >>> Suggestion({"lr": 0.1}, budget=3)
    Suggestion(parameters={'lr': 0.1}, budget=3, checkpoint_of=None, pauses_at_budget=False)
    """

    parameters: Any
    budget: float | None = None
    checkpoint_of: str | None = None
    pauses_at_budget: bool = False


class TrialControl:
    """What a tuner may do to trials that were made already; the dispatcher gives it one that is connected.

    This one is connected to nothing: its methods raise RuntimeError. A copy made by pickle is one like this.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return TrialControl, ()

    def pause(self, trial_job_id: str, reason: str) -> None:
        """Have a trial save a checkpoint and give up its place."""
        raise _not_connected("pause")

    def resume(
        self,
        trial_job_id: str,
        parameters: Mapping[str, Any] | None,
        checkpoint_of: str | None,
        budget: float | None,
        pauses_at_budget: bool = False,
    ) -> None:
        """Have a paused trial go on."""
        raise _not_connected("resume")

    def stop(self, trial_job_id: str, reason: str) -> None:
        """End a trial."""
        raise _not_connected("stop")


def _not_connected(what: str) -> RuntimeError:
    return RuntimeError(f"nobody is there to {what} trials: the tuner is not run by a manager that can")
