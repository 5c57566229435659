"""Callbacks: code of the user that is told what happens in an experiment while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["Callback"]

Row = Mapping[str, Any]


class Callback:
    """Base of all callbacks: overwrite what you want to be told.

    Every method is called on the thread of the manager's event loop, after what it tells was committed, with dicts of
    plain values that are yours to keep. Nothing goes on while it runs, so keep it short; a slow one belongs into a
    thread of its own. An exception is logged once, and the callback is told nothing more: it never ends an experiment.
    When a manager is killed and the experiment resumed, what had been committed is not told again.
    """

    def setup(self, experiment: Row) -> None:
        """The experiment runs (again): id, status, folder, counts of trials by status, best."""

    def on_trial_start(self, trial: Row) -> None:
        """An attempt of a trial runs; `attempt` is 1 for the first."""

    def on_trial_result(self, trial: Row, result: Row) -> None:
        """A trial reported a result, intermediate or final (`done`); NaN and results nobody asked for included."""

    def on_checkpoint(self, trial: Row, checkpoint: Row) -> None:
        """A trial saved a checkpoint: its `path`, `sequence` (the next result's number), `value` and `time`."""

    def on_trial_pause(self, trial: Row) -> None:
        """A trial was paused: it gave its slot away."""

    def on_trial_recover(self, trial: Row) -> None:
        """An attempt failed and the trial will be run again."""

    def on_trial_complete(self, trial: Row) -> None:
        """A trial ended in any other way than failing: succeeded, stopped early, cancelled."""

    def on_trial_error(self, trial: Row) -> None:
        """A trial has failed for good; `failure_kind`, `reason` and `error` say why."""

    def on_experiment_end(self, experiment: Row) -> None:
        """Nothing runs any more; the same row as in `setup`."""
