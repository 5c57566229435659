"""Experiments: status, configuration, best trials, importance, failures."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from ...store import StoreError
from ...store.reading import ExperimentView, closest_object
from ..experiments import Experiments, Shown
from ..health import read_health
from .models import Best, Closest, ExperimentSummary, Failure, Front, Health, HistoryPoint, Importance
from .responses import ExperimentName, cached_response, shown

experiment_router = APIRouter(tags=["experiments"])
# Whether the manager is alive is not in the store.
_LASTING = 2.0
_SUMMARY = "summary"


@experiment_router.get("/experiments", response_model=list[ExperimentSummary])
def list_experiments(request: Request) -> Response:
    """List the experiments of this server."""
    experiments: Experiments = request.app.state.experiments
    summaries = [_summary(each) for each in experiments.all()]
    return Response(b"[" + b",".join(filter(None, summaries)) + b"]", media_type="application/json")


@experiment_router.get("/experiments/{experiment}", response_model=ExperimentSummary)
def get_experiment(request: Request, experiment: ExperimentName) -> Response:
    """Return the status of an experiment."""
    meant = shown(request, experiment)
    return cached_response(request, meant, _SUMMARY, meant.view.summary, _LASTING)


@experiment_router.get("/experiments/{experiment}/config", response_model=dict[str, Any])
def get_config(request: Request, experiment: ExperimentName) -> Response:
    """Return the configuration in canonical form, with the search space."""
    meant = shown(request, experiment)
    return cached_response(request, meant, "config", meant.view.config)


@experiment_router.get("/experiments/{experiment}/best", response_model=Best)
def get_best(
    request: Request, experiment: ExperimentName, count: Annotated[int, Query(ge=1, le=1000)] = 1
) -> Response:
    """Return the best trials: the first `count` by one objective, the Pareto front by several."""
    meant = shown(request, experiment)
    return cached_response(request, meant, ("best", count), lambda: {"trials": meant.view.best(count)})


@experiment_router.get("/experiments/{experiment}/front", response_model=Front)
def get_front(request: Request, experiment: ExperimentName) -> Response:
    """Return the Pareto front of several objectives: its trials, its hypervolume over time, its knee."""
    meant = shown(request, experiment)
    return cached_response(request, meant, "front", meant.view.front)


@experiment_router.get("/experiments/{experiment}/closest", response_model=Closest | None)
def get_closest(request: Request, experiment: ExperimentName) -> Response:
    """Return the nearly best trial that changes the defaults least, for `keep_close`; null without one."""
    meant = shown(request, experiment)
    return cached_response(request, meant, "closest", lambda: _closest(meant.view))


@experiment_router.get("/experiments/{experiment}/history", response_model=list[HistoryPoint])
def get_history(request: Request, experiment: ExperimentName) -> Response:
    """Return every result in order of arrival, with the best so far."""
    meant = shown(request, experiment)
    return cached_response(request, meant, "history", meant.view.history)


@experiment_router.get("/experiments/{experiment}/failures", response_model=list[Failure])
def get_failures(request: Request, experiment: ExperimentName) -> Response:
    """Return the failures in groups, the most frequent first."""
    meant = shown(request, experiment)
    return cached_response(request, meant, "failures", meant.view.failures)


@experiment_router.get("/experiments/{experiment}/importance", response_model=Importance)
def get_importance(
    request: Request,
    experiment: ExperimentName,
    objective: Annotated[str | None, Query(max_length=100)] = None,
) -> Response:
    """Return how much each parameter matters for an objective; `why_not` is why this is unknown."""
    meant = shown(request, experiment)
    return cached_response(
        request, meant, ("importance", objective), lambda: _importance(meant.view, objective)
    )


@experiment_router.get("/experiments/{experiment}/health", response_model=Health)
def get_health(request: Request, experiment: ExperimentName) -> Response:
    """Return notes on how the search went: whether it learned, ranges that are too narrow, useless parameters."""
    meant = shown(request, experiment)
    return cached_response(request, meant, "health", lambda: {"notes": read_health(meant.view)})


def _closest(view: ExperimentView) -> object:
    found = view.closest_to_defaults()
    return None if found is None else closest_object(found, lambda trial: trial)


def _importance(view: ExperimentView, objective: str | None) -> Any:
    from ..experiment_table import read_table
    from ..figures import importance

    return importance(read_table(view, curves=0), objective)


def _summary(meant: Shown) -> bytes:
    """Return a summary as JSON; that of an unreadable experiment is short, so that it does not hide the others."""
    try:
        return meant.responses.get(_SUMMARY, meant.view.summary, _LASTING).body
    except StoreError:
        return b""
