"""A callback that tracks an experiment with Weights & Biases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..protocol import Parameters
from .listening import Row, RunListener, TrackerRun
from .requirements import required

wandb = required("wandb", "0.20")

__all__ = ["WandbCallback"]


class WandbCallback(RunListener):
    """Makes a run for the experiment, and a run with parameters and metrics for each trial; the group is its id.

    The options are those of `wandb.init`, such as `project`, `entity` and `mode="offline"`. The files of the runs are
    in the experiment's folder, unless `dir` names another.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self._options = options

    def open_experiment(self, experiment: Row) -> None:
        """Open the run of the experiment."""
        self._id = experiment["id"]
        self._options = {"dir": experiment["folder"], **self._options}
        self._experiment = self._run(self._id, job_type="experiment")

    def open_run(self, trial: Row, parameters: Parameters) -> TrackerRun:
        """Open the run of a trial."""
        number = trial["sequence_id"]
        return self._run(
            f"{self._id}-{number}", name=f"trial {number}", job_type="trial", config=dict(parameters)
        )

    def log(self, run: TrackerRun, metrics: Mapping[str, float], step: int) -> None:
        """Log all metrics of a result. The step is one of them: W&B's own steps cannot repeat, as a retry does."""
        run.log({**metrics, "training_iteration": step})

    def close_run(self, run: TrackerRun, trial: Row) -> None:
        """Record how the trial ended, and end its run."""
        run.summary.update({"status": trial["status"], "reason": trial["reason"]})
        run.finish(exit_code=int(trial["status"] == "FAILED"))

    def close_experiment(self, experiment: Row) -> None:
        """Record the best trial, and end the run of the experiment."""
        for best in experiment["best"][:1]:
            self._experiment.summary.update({"best_trial": best["sequence_id"], "best_value": best["value"]})
        self._experiment.finish(exit_code=int(experiment["status"] == "ERROR"))

    def _run(self, run_id: str, **options: Any) -> TrackerRun:
        ours = {"id": run_id, "group": self._id, "reinit": "create_new", "resume": "allow"}
        if self._options.get("mode") == "offline":
            del ours["resume"]  # W&B knows only online whether there was an earlier run
        return wandb.init(**ours, **options, **self._options)
