"""What a scheduler may do besides suggesting parameters: set budgets, use checkpoints, pause, resume and stop trials.

Hyperband and population-based training need these; other tuners do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Parameters of a new trial with a budget, or with the checkpoint of another trial to start from.

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
    """Lets a tuner pause, resume and stop existing trials; the dispatcher provides a connected one.

    This one is not connected: its methods raise RuntimeError. Unpickling always returns one like this.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return TrialControl, ()

    def pause(self, trial_job_id: str, reason: str) -> None:
        """Make a trial save a checkpoint and free its slot."""
        raise _not_connected("pause")

    def resume(
        self,
        trial_job_id: str,
        parameters: Mapping[str, Any] | None,
        checkpoint_of: str | None,
        budget: float | None,
        pauses_at_budget: bool = False,
    ) -> None:
        """Continue a paused trial."""
        raise _not_connected("resume")

    def stop(self, trial_job_id: str, reason: str) -> None:
        """End a trial."""
        raise _not_connected("stop")


def _not_connected(what: str) -> RuntimeError:
    return RuntimeError(f"cannot {what} trials: the tuner is not run by a manager")
