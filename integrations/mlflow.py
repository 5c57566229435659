"""A callback that tracks an experiment with MLflow."""

from __future__ import annotations

import time
from collections.abc import Mapping

from ..protocol import Parameters
from .listening import Row, RunListener
from .requirements import required

mlflow = required("mlflow", "3.0")

__all__ = ["MLflowCallback"]

_EXPERIMENT, _TRIAL = "pitchpipe.experiment_id", "pitchpipe.trial_id"
_STATUS = {"SUCCEEDED": "FINISHED", "EARLY_STOPPED": "FINISHED", "FAILED": "FAILED"}  # others: KILLED


class MLflowCallback(RunListener):
    """Makes a run for the experiment, and a nested run with parameters, metrics and status for each trial.

    `tracking_uri` and `experiment_name` are MLflow's, with its defaults. A resumed experiment continues its runs.
    """

    def __init__(self, tracking_uri: str | None = None, experiment_name: str = "Default") -> None:
        super().__init__()
        self._uri, self._name = tracking_uri, experiment_name

    def open_experiment(self, experiment: Row) -> None:
        """Connect, and open the run of the experiment."""
        self._client = mlflow.MlflowClient(self._uri)
        named = self._client.get_experiment_by_name(self._name)
        self._place = named.experiment_id if named else self._client.create_experiment(self._name)
        self._id = experiment["id"]
        self._parent = self._run("experiment", self._id, {})

    def open_run(self, trial: Row, parameters: Parameters) -> str:
        """Open the run of a trial; return its id."""
        tags = {"mlflow.parentRunId": self._parent}
        run = self._run(trial["trial_id"], f"trial {trial['sequence_id']}", tags)
        given = [mlflow.entities.Param(name, str(value)) for name, value in parameters.items()]
        self._client.log_batch(run, params=given)
        return run

    def log(self, run: str, metrics: Mapping[str, float], step: int) -> None:
        """Log all metrics of a result at once."""
        now = int(time.time() * 1000)
        values = [mlflow.entities.Metric(name, value, now, step) for name, value in metrics.items()]
        self._client.log_batch(run, metrics=values)

    def close_run(self, run: str, trial: Row) -> None:
        """Set the status of a run, and the reason of its end as a tag."""
        self._client.set_tag(run, "pitchpipe.reason", trial["reason"] or "")
        self._client.set_terminated(run, _STATUS.get(trial["status"], "KILLED"))

    def close_experiment(self, experiment: Row) -> None:
        """Tag the run of the experiment with the best trial, and end it."""
        for best in experiment["best"][:1]:
            self._client.set_tag(self._parent, "pitchpipe.best", f"trial {best['sequence_id']}")
        self._client.set_terminated(self._parent, "FAILED" if experiment["status"] == "ERROR" else "FINISHED")

    def _run(self, trial: str, name: str, tags: Mapping[str, str]) -> str:
        """Return the id of a run, of a trial or the experiment; the one that an earlier manager made is continued."""
        query = f"tags.`{_EXPERIMENT}` = '{self._id}' and tags.`{_TRIAL}` = '{trial}'"
        for run in self._client.search_runs([self._place], query, max_results=1):
            self._client.update_run(run.info.run_id, status="RUNNING")
            return run.info.run_id
        marks = {**tags, _EXPERIMENT: self._id, _TRIAL: trial}
        return self._client.create_run(self._place, tags=marks, run_name=name).info.run_id
