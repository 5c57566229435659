"""Callbacks: users' code that is called while an experiment runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Row = Mapping[str, Any]


class Callback:
    """Base of all callbacks: override the methods that you need.

    Each is called on the thread of the manager's event loop, once what it reports is committed, with dicts of plain
    values that are yours to keep. The experiment waits for it, so keep it short; slow work belongs in a thread of its
    own. A callback that raises is logged and never called again; it does not end the experiment. When a manager is
    killed and the experiment resumed, what was committed before is not reported again.
    """

    def setup(self, experiment: Row) -> None:
        """Take note that the experiment runs (again): id, status, folder, counts of trials by status, best."""

    def on_trial_start(self, trial: Row) -> None:
        """Take note that an attempt of a trial runs; `attempt` is 1 for the first."""

    def on_trial_result(self, trial: Row, result: Row) -> None:
        """Take a result, intermediate or final (`done`), NaN included."""

    def on_checkpoint(self, trial: Row, checkpoint: Row) -> None:
        """Take a saved checkpoint: its `path`, `sequence` (the next result's number), `value` and `time`."""

    def on_trial_pause(self, trial: Row) -> None:
        """Take note that a trial was paused and its slot is free."""

    def on_trial_recover(self, trial: Row) -> None:
        """Take note that an attempt failed and the trial will run again."""

    def on_trial_complete(self, trial: Row) -> None:
        """Take a trial that succeeded, was stopped early or was canceled."""

    def on_trial_error(self, trial: Row) -> None:
        """Take a trial that has failed for good; `failure_kind`, `reason` and `error` say why."""

    def on_experiment_end(self, experiment: Row) -> None:
        """Take the experiment, as in `setup`, once nothing runs any more."""
