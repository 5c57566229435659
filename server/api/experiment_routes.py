"""Experiments: what is read of them, and the changes, each a message to the manager, which commits it first."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from ...manager.control import (
    TrialIds,
    add_trial,
    change_experiment,
    import_results,
    kill_trial,
    rerun_trial,
    stop_experiment,
)
from ...protocol import JsonObject
from ...store import StoreError
from ...store.reading import ExperimentView, closest_object
from ...telling import region_object
from ..experiments import ServedExperiment
from ..health import health_object
from ..secrecy import hidden_values
from ..security import reads_only
from . import models
from .responses import ExperimentName, TrialName, cached_response, experiments_of, json_response, view_of

experiment_router = APIRouter(tags=["experiments"])
change_router = APIRouter(tags=["changes"])
# Whether the manager is alive is not in the store.
_LASTING = 2.0


@experiment_router.get("/experiments", response_model=list[models.ExperimentSummary])
def list_experiments(request: Request) -> Response:
    """List the experiments of this server."""
    summaries = [_summary(each) for each in experiments_of(request).all()]
    return Response(b"[" + b",".join(filter(None, summaries)) + b"]", media_type="application/json")


@experiment_router.get("/experiments/{experiment}", response_model=models.ExperimentSummary)
def get_experiment(request: Request, experiment: ExperimentName) -> Response:
    """Return the status of an experiment."""
    return cached_response(request, experiment, ExperimentView.summary, lasting=_LASTING)


@experiment_router.get("/experiments/{experiment}/config", response_model=JsonObject)
def get_config(request: Request, experiment: ExperimentName) -> Response:
    """Return the configuration in canonical form, with the search space; readers get it without secrets."""
    compute = _config_without_secrets if reads_only(request.scope) else ExperimentView.config
    return cached_response(request, experiment, compute)


@experiment_router.get("/experiments/{experiment}/best", response_model=models.Best)
def get_best(
    request: Request, experiment: ExperimentName, count: Annotated[int, Query(ge=1, le=1000)] = 1
) -> Response:
    """Return the best trials: the first `count` by one objective, the Pareto front by several."""
    return cached_response(request, experiment, _best, count)


@experiment_router.get("/experiments/{experiment}/front", response_model=models.Front)
def get_front(request: Request, experiment: ExperimentName) -> Response:
    """Return the Pareto front of several objectives: its trials, its hypervolume over time, its knee."""
    return cached_response(request, experiment, ExperimentView.front)


@experiment_router.get("/experiments/{experiment}/closest", response_model=models.Closest | None)
def get_closest(request: Request, experiment: ExperimentName) -> Response:
    """Return the nearly best trial that changes the defaults least, for `keep_close`; null without one."""
    return cached_response(request, experiment, _closest)


@experiment_router.get("/experiments/{experiment}/history", response_model=list[models.HistoryPoint])
def get_history(request: Request, experiment: ExperimentName) -> Response:
    """Return every result in order of arrival, with the best so far."""
    return cached_response(request, experiment, ExperimentView.history)


@experiment_router.get("/experiments/{experiment}/failures", response_model=list[models.Failure])
def get_failures(request: Request, experiment: ExperimentName) -> Response:
    """Return the failures in groups, the most frequent first."""
    return cached_response(request, experiment, ExperimentView.failures)


@experiment_router.get("/experiments/{experiment}/failure_regions", response_model=list[models.FailureRegion])
def get_failure_regions(request: Request, experiment: ExperimentName) -> Response:
    """Return the values of parameters with which most trials fail in one way."""
    return cached_response(request, experiment, _failure_regions)


def _failure_regions(view: ExperimentView) -> list[JsonObject]:
    return [region_object(region) for region in view.failure_regions()]


@experiment_router.get("/experiments/{experiment}/importance", response_model=models.Importance)
def get_importance(
    request: Request,
    experiment: ExperimentName,
    objective: Annotated[str | None, Query(max_length=100)] = None,
) -> Response:
    """Return how much each parameter matters for an objective; `why_not` is why this is unknown."""
    from ..experiment_table import read_importance  # the figures take long to load

    return cached_response(request, experiment, read_importance, objective)


@experiment_router.get("/experiments/{experiment}/health", response_model=models.Health)
def get_health(request: Request, experiment: ExperimentName) -> Response:
    """Return notes on how the search went: whether it learned, ranges that are too narrow, useless parameters."""
    return cached_response(request, experiment, health_object)


def _config_without_secrets(view: ExperimentView) -> object:
    return hidden_values(view.config())


def _best(view: ExperimentView, count: int) -> object:
    return {"trials": view.best(count)}


def _closest(view: ExperimentView) -> object:
    closest = view.closest_to_defaults()
    return None if closest is None else closest_object(closest, lambda trial: trial)


def _summary(experiment: ServedExperiment) -> bytes:
    """Return a summary as JSON; that of an unreadable experiment is short, so that it does not hide the others."""
    try:
        return experiment.response(ExperimentView.summary, lasting=_LASTING).body
    except StoreError:
        return b""


# ---------------------------------------------------------------------- changes


@change_router.patch("/experiments/{experiment}", response_model=models.Limits)
def patch_experiment(request: Request, experiment: ExperimentName, change: models.Change) -> Response:
    """Change limits or concurrency at any time, the search space while the experiment is running."""
    view = view_of(request, experiment)
    return json_response(change_experiment(view.folder, change.model_dump(exclude_unset=True)))


@change_router.post("/experiments/{experiment}/stop", status_code=202, response_model=dict[str, bool])
def post_stop(request: Request, experiment: ExperimentName, stop: models.Stop | None = None) -> Response:
    """Stop the experiment: running trials get the grace period, and results are kept."""
    view = view_of(request, experiment)
    stop_experiment(view.folder, (stop or models.Stop()).reason)
    return json_response({"stopping": True}, 202)


@change_router.post("/experiments/{experiment}/trials", status_code=201, response_model=models.Added)
def post_trial(request: Request, experiment: ExperimentName, trial: models.NewTrial) -> Response:
    """Run a trial with the user's own parameters."""
    view = view_of(request, experiment)
    return _made(view.experiment_id, add_trial(view.folder, trial.parameters))


@change_router.post(
    "/experiments/{experiment}/trials/{trial}/rerun", status_code=201, response_model=models.Added
)
def post_rerun(request: Request, experiment: ExperimentName, trial: TrialName) -> Response:
    """Run a new trial with the same parameters."""
    view = view_of(request, experiment)
    return _made(view.experiment_id, rerun_trial(view.folder, view.sequence_id(trial)))


@change_router.post(
    "/experiments/{experiment}/trials/{trial}/kill", status_code=202, response_model=models.Killed
)
def post_kill(request: Request, experiment: ExperimentName, trial: TrialName) -> Response:
    """Kill a trial; the experiment continues."""
    view = view_of(request, experiment)
    return json_response(kill_trial(view.folder, view.sequence_id(trial)), 202)


@change_router.post("/experiments/{experiment}/import", response_model=models.Imported)
def post_import(request: Request, experiment: ExperimentName, results: models.Import) -> Response:
    """Import results measured elsewhere into the tuner."""
    view = view_of(request, experiment)
    rows = [row.model_dump() for row in results.data]
    imported, left_out = import_results(view.folder, rows)
    return json_response({"imported": imported, "left_out": left_out})


def _made(experiment_id: str, added: TrialIds) -> Response:
    place = f"/api/v1/experiments/{experiment_id}/trials/{added['sequence_id']}"
    return json_response(added, 201, {"location": place})
