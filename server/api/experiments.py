"""Experiments: how they stand, their configuration, the best trials, importance, failures."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from ...store import StoreError
from ...store.reading import ExperimentView
from ..experiments import Experiments, Shown
from .common import ExperimentName, answered, shown
from .models import Best, ExperimentSummary, Failure, HistoryPoint, Importance

__all__ = ["router"]

router = APIRouter(tags=["experiments"])
# Whether a manager lives is not in the store.
_LASTING = 2.0
_SUMMARY = "summary"


@router.get("/experiments", response_model=list[ExperimentSummary])
def list_experiments(request: Request) -> Response:
    """All experiments that this server shows."""
    experiments: Experiments = request.app.state.experiments
    told = [_summary(each) for each in experiments.all()]
    return Response(b"[" + b",".join(filter(None, told)) + b"]", media_type="application/json")


@router.get("/experiments/{experiment}", response_model=ExperimentSummary)
def get_experiment(request: Request, experiment: ExperimentName) -> Response:
    """How an experiment stands."""
    meant = shown(request, experiment)
    return answered(request, meant, _SUMMARY, meant.view.summary, _LASTING)


@router.get("/experiments/{experiment}/config", response_model=dict[str, Any])
def get_config(request: Request, experiment: ExperimentName) -> Response:
    """Its configuration in the canonical form, with the search space."""
    meant = shown(request, experiment)
    return answered(request, meant, "config", meant.view.config)


@router.get("/experiments/{experiment}/best", response_model=Best)
def get_best(
    request: Request, experiment: ExperimentName, count: Annotated[int, Query(ge=1, le=1000)] = 1
) -> Response:
    """The best trials: the first `count` by one objective, the Pareto front by several."""
    meant = shown(request, experiment)
    return answered(request, meant, ("best", count), lambda: {"trials": meant.view.best(count)})


@router.get("/experiments/{experiment}/history", response_model=list[HistoryPoint])
def get_history(request: Request, experiment: ExperimentName) -> Response:
    """Every result in the order in which they came, with the best so far."""
    meant = shown(request, experiment)
    return answered(request, meant, "history", meant.view.history)


@router.get("/experiments/{experiment}/failures", response_model=list[Failure])
def get_failures(request: Request, experiment: ExperimentName) -> Response:
    """The ways in which trials failed, the most frequent first."""
    meant = shown(request, experiment)
    return answered(request, meant, "failures", meant.view.failures)


@router.get("/experiments/{experiment}/importance", response_model=Importance)
def get_importance(
    request: Request,
    experiment: ExperimentName,
    objective: Annotated[str | None, Query(max_length=100)] = None,
) -> Response:
    """How much each parameter matters for an objective; `why_not` says why that cannot be told."""
    meant = shown(request, experiment)
    return answered(request, meant, ("importance", objective), lambda: _importance(meant.view, objective))


def _importance(view: ExperimentView, objective: str | None) -> Any:
    from ..experiment_table import read_table
    from ..figures import importance

    return importance(read_table(view, curves=0), objective)


def _summary(meant: Shown) -> bytes:
    """How an experiment stands, as JSON; nothing of one that cannot be read, so that it does not hide the others."""
    try:
        return meant.answers.answer(_SUMMARY, meant.view.summary, _LASTING).body
    except StoreError:
        return b""
