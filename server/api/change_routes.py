"""Endpoints that change an experiment: each sends one message to its manager, which commits the change first."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from ...manager.control import (
    add_trial,
    change_experiment,
    import_results,
    kill_trial,
    rerun_trial,
    stop_experiment,
)
from .models import Added, Change, Import, Imported, Killed, Limits, NewTrial, Stop
from .responses import ExperimentName, TrialName, json_response, view_of

change_router = APIRouter(tags=["changes"])


@change_router.patch("/experiments/{experiment}", response_model=Limits)
def patch_experiment(request: Request, experiment: ExperimentName, change: Change) -> Response:
    """Change limits or concurrency at any time, the search space while the experiment is running."""
    view = view_of(request, experiment)
    return json_response(change_experiment(view.folder, change.model_dump(exclude_unset=True)))


@change_router.post("/experiments/{experiment}/stop", status_code=202, response_model=dict[str, bool])
def post_stop(request: Request, experiment: ExperimentName, stop: Stop | None = None) -> Response:
    """Stop the experiment: running trials get the grace period, and results are kept."""
    view = view_of(request, experiment)
    stop_experiment(view.folder, (stop or Stop()).reason)
    return json_response({"stopping": True}, 202)


@change_router.post("/experiments/{experiment}/trials", status_code=201, response_model=Added)
def post_trial(request: Request, experiment: ExperimentName, trial: NewTrial) -> Response:
    """Run a trial with the user's own parameters."""
    view = view_of(request, experiment)
    return _made(view.experiment_id, add_trial(view.folder, trial.parameters))


@change_router.post("/experiments/{experiment}/trials/{trial}/rerun", status_code=201, response_model=Added)
def post_rerun(request: Request, experiment: ExperimentName, trial: TrialName) -> Response:
    """Run a new trial with the same parameters."""
    view = view_of(request, experiment)
    return _made(view.experiment_id, rerun_trial(view.folder, view.sequence_id(trial)))


@change_router.post("/experiments/{experiment}/trials/{trial}/kill", status_code=202, response_model=Killed)
def post_kill(request: Request, experiment: ExperimentName, trial: TrialName) -> Response:
    """Kill a trial; the experiment continues."""
    view = view_of(request, experiment)
    return json_response(kill_trial(view.folder, view.sequence_id(trial)), 202)


@change_router.post("/experiments/{experiment}/import", response_model=Imported)
def post_import(request: Request, experiment: ExperimentName, results: Import) -> Response:
    """Import results measured elsewhere into the tuner."""
    view = view_of(request, experiment)
    rows = [row.model_dump() for row in results.data]
    imported, left_out = import_results(view.folder, rows)
    return json_response({"imported": imported, "left_out": left_out})


def _made(experiment_id: str, added: dict[str, object]) -> Response:
    place = f"/api/v1/experiments/{experiment_id}/trials/{added['sequence_id']}"
    return json_response(added, 201, {"location": place})
