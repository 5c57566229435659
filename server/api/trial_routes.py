"""Trials: the table, single trials, their results, the export of all."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response
from starlette.responses import StreamingResponse

from ...store.reading import (
    Condition,
    QueryError,
    TrialQuery,
    csv_lines,
    detail_object,
    json_lines,
    plain_field,
)
from .models import Curve, CurvePage, Kind, Results, Status, TrialDetail, TrialPage
from .responses import ExperimentName, Offset, TrialName, cached_response, json_response, shown, view_of

trial_router = APIRouter(tags=["trials"])
export_router = APIRouter(tags=["export"])
_MOST_TRIALS = 1000
_MOST_CURVES = 500
_NOTES_LAST = 0.25  # seconds
Limit = Annotated[int, Query(ge=0, le=_MOST_TRIALS)]
Metric = Annotated[str, Query(min_length=1, max_length=200)]
Points = Annotated[int, Query(ge=2, le=10_000, description="The approximate number of results per trial.")]


@trial_router.get("/experiments/{experiment}/trials", response_model=TrialPage)
def list_trials(
    request: Request,
    experiment: ExperimentName,
    status: Annotated[list[Status] | None, Query(max_length=8)] = None,
    kind: Annotated[list[Kind] | None, Query(max_length=7, description="Of failure.")] = None,
    where: Annotated[
        list[Annotated[str, Query(max_length=300)]] | None,
        Query(max_length=20, description="Conditions such as `parameters.lr < 0.1 and tags = baseline`."),
    ] = None,
    search: Annotated[str, Query(max_length=200, description="Text anywhere in a trial.")] = "",
    sort: Annotated[
        str,
        Query(
            max_length=300,
            description="`best`, `sequence_id`, `value`, `value.NAME`, `last`, `duration`, `parameters.NAME` ...",
        ),
    ] = "sequence_id",
    descending: bool = False,
    offset: Offset = 0,
    limit: Limit = 100,
) -> Response:
    """Return a page of the table of trials, filtered and sorted; trials without a value come last."""
    meant = shown(request, experiment)
    key = (
        "trials",
        *map(tuple, (status or (), kind or (), where or ())),
        search,
        sort,
        descending,
        offset,
        limit,
    )

    def query() -> TrialQuery:
        conditions = [condition for text in where or () for condition in Condition.parse_all(text)]
        return TrialQuery(
            statuses=status or (),
            kinds=kind or (),
            conditions=conditions,
            search=search,
            sort=plain_field(sort),
            descending=descending,
            offset=offset,
            limit=limit,
        )

    asked = query()
    lasting = _NOTES_LAST if asked.asks_notes else math.inf  # notes are not in the database
    return cached_response(request, meant, key, lambda: meant.view.trials(asked), lasting)


@trial_router.get("/experiments/{experiment}/trials/{trial}", response_model=TrialDetail)
def get_trial(request: Request, experiment: ExperimentName, trial: TrialName) -> Response:
    """Return everything about one trial."""
    meant = shown(request, experiment)
    return cached_response(request, meant, ("trial", trial), lambda: detail_object(meant.view.trial(trial)))


@trial_router.get("/experiments/{experiment}/trials/{trial}/metrics", response_model=Results)
def get_metrics(
    request: Request,
    experiment: ExperimentName,
    trial: TrialName,
    since: Annotated[str | None, Query(max_length=50, description="The cursor of the last response.")] = None,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
) -> Response:
    """Return the intermediate results of a trial since a cursor, as they were reported."""
    return json_response(shown(request, experiment).view.metrics(trial, since, limit))


@trial_router.get("/experiments/{experiment}/trials/{trial}/curve", response_model=Curve)
def get_curve(
    request: Request,
    experiment: ExperimentName,
    trial: TrialName,
    metric: Metric = "default",
    points: Points = 1000,
) -> Response:
    """Return one metric of a trial's intermediate results, thinned out but with its spikes."""
    meant = shown(request, experiment)
    key = ("curve", trial, metric, points)
    return cached_response(request, meant, key, lambda: meant.view.curve(trial, metric, points))


@trial_router.get("/experiments/{experiment}/curves", response_model=CurvePage)
def list_curves(
    request: Request,
    experiment: ExperimentName,
    trial: Annotated[
        list[Annotated[int, Query(ge=0, lt=2**53)]] | None,
        Query(max_length=_MOST_CURVES, description="Numbers of trials; without any, the best."),
    ] = None,
    metric: Metric = "default",
    points: Points = 100,
) -> Response:
    """Return one metric of many trials, each thinned out to about `points` results."""
    meant = shown(request, experiment)
    view = meant.view
    if points * len(trial or ()) > 200_000:
        raise QueryError("too many points of too many trials: request fewer of either")

    def compute() -> object:
        numbers = trial or [best.sequence_id for best in view.best(20)]
        return {"curves": view.curves(numbers, metric, points)}

    return cached_response(request, meant, ("curves", tuple(trial or ()), metric, points), compute)


@export_router.get(
    "/experiments/{experiment}/export",
    response_class=StreamingResponse,
    responses={
        200: {
            "content": {
                "application/json": {"schema": {"type": "object"}},
                "text/csv": {"schema": {"type": "string"}},
            },
            "description": "The format, as of `pitchpipe export`.",
        }
    },
)
def export_trials(
    request: Request, experiment: ExperimentName, format: Literal["json", "csv"] = "json"
) -> StreamingResponse:
    """Export all trials: JSON with intermediate results, or CSV with a row per trial."""
    view = view_of(request, experiment)
    view.config()  # an unreadable experiment is an error, not an empty file
    name = f'attachment; filename="{view.experiment_id}.{format}"'
    lines, media = (
        (csv_lines(view), "text/csv") if format == "csv" else (json_lines(view), "application/json")
    )
    return StreamingResponse(lines, media_type=media, headers={"content-disposition": name})
