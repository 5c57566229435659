"""The routes of Ray Tune's old TuneServer as a thin view of the current experiment, with plain JSON both ways.

    GET /trials                    {"trials": [...]}
    GET /trials/ID                 {"trial": {...}}; 404 with the message when there is none
    PUT /trials/ID                 kills it: {"trials": [{...}]}
    PUT /stop_experiment           stops the experiment: {"trials": [...]}
    POST /trials {"name", "spec"}  201: adds the trials of the spec, {"trials": [...]}
    HEAD                           200

A trial is {"id", "trainable_name", "config", "status", "result"}; the statuses are Tune's.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from ...manager.control import add_trials, kill_trial, stop_experiment
from ...protocol import Json, JsonObject
from ...runner import TrialStatus
from ...server import hidden_values
from ...server.api import PROBLEMS, TrialName, cached_response, json_response, view_of
from ...store.reading import ExperimentView, TrialQuery, TrialRow
from .variants import variants

# Tune has one status for all failures and one for every other end.
TUNE_STATUS: dict[TrialStatus, str] = {
    TrialStatus.WAITING: "PENDING",
    TrialStatus.RUNNING: "RUNNING",
    TrialStatus.PAUSED: "PAUSED",
    TrialStatus.SUCCEEDED: "TERMINATED",
    TrialStatus.FAILED: "ERROR",
    TrialStatus.EARLY_STOPPED: "TERMINATED",
    TrialStatus.USER_CANCELED: "TERMINATED",
    TrialStatus.SYS_CANCELED: "TERMINATED",
}

_CURRENT = "current"
router = APIRouter(tags=["TuneServer"], responses=PROBLEMS)


class TuneTrial(BaseModel):
    """A trial in Tune's terms."""

    id: str
    trainable_name: str
    config: Json
    status: str
    result: JsonObject | None


class TuneTrials(BaseModel):
    """Trials in Tune's terms."""

    trials: list[TuneTrial]


class OneTuneTrial(BaseModel):
    """A trial in Tune's terms."""

    trial: TuneTrial


class NewTrials(BaseModel):
    """Trials to be added: a name for people, and a spec with `config` and `num_samples`."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(max_length=200)]
    spec: Annotated[JsonObject, Field(examples=[{"config": {"lr": {"grid_search": [0.1, 0.01]}}}])]


@router.api_route("/trials", methods=["GET"], response_model=TuneTrials)
def get_trials(request: Request) -> Response:
    """Return all trials."""
    return cached_response(request, _CURRENT, _trials)


@router.get("/trials/{trial}", response_model=OneTuneTrial)
def get_trial(request: Request, trial: TrialName) -> Response:
    """Return one trial."""
    view = view_of(request, _CURRENT)
    return json_response({"trial": _tune_trial(view.trial(trial), _trainable(view))})


@router.head("/trials", include_in_schema=False)
@router.head("/trials/{trial}", include_in_schema=False)
def head_trials() -> Response:
    """Return nothing, successfully."""
    return Response(media_type="application/json")


@router.put("/trials/{trial}", response_model=TuneTrials)
def put_trial(request: Request, trial: TrialName) -> Response:
    """Kill a trial; one that has ended stays as it is."""
    view = view_of(request, _CURRENT)
    number = view.sequence_id(trial)
    if not TrialStatus(view.trial(number).status).is_final:
        kill_trial(view.folder, number)
    return json_response({"trials": [_tune_trial(view.trial(number), _trainable(view))]})


@router.put("/stop_experiment", response_model=TuneTrials)
def put_stop(request: Request) -> Response:
    """Stop the experiment."""
    view = view_of(request, _CURRENT)
    stop_experiment(view.folder)
    return json_response(_trials(view))


@router.post("/trials", status_code=201, response_model=TuneTrials)
def post_trials(request: Request, new: NewTrials) -> Response:
    """Add the trials of a spec: one for each combination of its grids, `num_samples` times."""
    view = view_of(request, _CURRENT)
    added = add_trials(view.folder, variants(new.spec))
    trials = [_tune_trial(view.trial(trial["sequence_id"]), _trainable(view)) for trial in added]
    return json_response({"trials": trials}, 201, {"location": "/trials/"})


def _trials(view: ExperimentView) -> JsonObject:
    """Return all trials, as `TuneTrials` describes them."""
    name = _trainable(view)
    return {"trials": [_tune_trial(trial, name) for trial in view.trials(TrialQuery(limit=None)).trials]}


def _tune_trial(trial: TrialRow, trainable: str) -> JsonObject:
    return {
        "id": trial.trial_id,
        "trainable_name": trainable,
        "config": trial.parameters,
        "status": TUNE_STATUS[TrialStatus(trial.status)],
        "result": _result(trial),
    }


def _result(trial: TrialRow) -> JsonObject | None:
    """Return the last result in the form of Tune's; None before the first."""
    last = trial.final if trial.final is not None else trial.last
    if last is None:
        return None
    reported = last if isinstance(last, dict) else {"default": last}
    return {
        **reported,
        "trial_id": trial.trial_id,
        "training_iteration": max(1, trial.intermediate_results),
        "done": trial.final is not None,
    }


def _trainable(view: ExperimentView) -> str:
    """Return the command of the trials without secrets: readers see it, too."""
    return str(hidden_values(view.config().get("trialCommand") or "function"))
