"""Trials: the table, single trials, their results, the export of all."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import StreamingResponse

from ...store.reading import (
    Condition,
    ExperimentView,
    QueryError,
    TrialQuery,
    csv_lines,
    detail_object,
    json_lines,
    plain_field,
)
from ..secrecy import hidden_values
from ..security import reads_only
from .models import Curve, CurvePage, Kind, Results, Status, TrialDetail, TrialPage
from .responses import BIGGEST, ExperimentName, TrialName, cached_response, json_response, view_of

trial_router = APIRouter(tags=["trials"])
export_router = APIRouter(tags=["export"])
_MOST_TRIALS = 1000
_MOST_CURVES = 500
_NOTES_LAST = 0.25  # seconds
Metric = Annotated[str, Query(min_length=1, max_length=200)]
Points = Annotated[int, Query(ge=2, le=10_000, description="The approximate number of results per trial.")]


class TableQuery(BaseModel):
    """A requested page of the table, its key in the cache: conditions stay text, because 1 == True in Python."""

    model_config = ConfigDict(frozen=True)

    status: Annotated[tuple[Status, ...] | None, Field(max_length=8)] = None
    kind: Annotated[tuple[Kind, ...] | None, Field(max_length=7, description="Of failure.")] = None
    where: Annotated[
        tuple[Annotated[str, Field(max_length=300)], ...] | None,
        Field(max_length=20, description="Conditions such as `parameters.lr < 0.1 and tags = baseline`."),
    ] = None
    search: Annotated[str, Field(max_length=200, description="Text anywhere in a trial.")] = ""
    sort: Annotated[
        str,
        Field(
            max_length=300,
            description="`best`, `sequence_id`, `value`, `value.NAME`, `metrics.NAME`, `last`, `parameters.NAME` ...",
        ),
    ] = "sequence_id"
    descending: bool = False
    offset: Annotated[int, Field(ge=0, le=BIGGEST)] = 0
    limit: Annotated[int, Field(ge=0, le=_MOST_TRIALS)] = 100

    def query(self) -> TrialQuery:
        """Return the query for the store; raise `QueryError`."""
        return TrialQuery(
            statuses=self.status or (),
            kinds=self.kind or (),
            conditions=[condition for text in self.where or () for condition in Condition.parse_all(text)],
            search=self.search,
            sort=plain_field(self.sort),
            descending=self.descending,
            offset=self.offset,
            limit=self.limit,
        )


@trial_router.get("/experiments/{experiment}/trials", response_model=TrialPage)
def list_trials(
    request: Request, experiment: ExperimentName, table: Annotated[TableQuery, Query()]
) -> Response:
    """Return a page of the table of trials, filtered and sorted; trials without a value come last."""
    lasting = _NOTES_LAST if table.query().asks_notes else math.inf  # notes are not in the database
    return cached_response(request, experiment, _page, table, lasting=lasting)


@trial_router.get("/experiments/{experiment}/trials/{trial}", response_model=TrialDetail)
def get_trial(request: Request, experiment: ExperimentName, trial: TrialName) -> Response:
    """Return everything about one trial."""
    return cached_response(request, experiment, _detail, trial)


@trial_router.get("/experiments/{experiment}/trials/{trial}/metrics", response_model=Results)
def get_metrics(
    request: Request,
    experiment: ExperimentName,
    trial: TrialName,
    since: Annotated[str | None, Query(max_length=50, description="The cursor of the last response.")] = None,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
) -> Response:
    """Return the intermediate results of a trial since a cursor, as they were reported."""
    return json_response(view_of(request, experiment).metrics(trial, since, limit))


@trial_router.get("/experiments/{experiment}/trials/{trial}/curve", response_model=Curve)
def get_curve(
    request: Request,
    experiment: ExperimentName,
    trial: TrialName,
    metric: Metric = "default",
    points: Points = 1000,
) -> Response:
    """Return one metric of a trial's intermediate results, thinned out but with its spikes."""
    return cached_response(request, experiment, ExperimentView.curve, trial, metric, points)


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
    if points * len(trial or ()) > 200_000:
        raise QueryError("too many points of too many trials: request fewer of either")
    return cached_response(request, experiment, _curves, tuple(trial or ()), metric, points)


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
    config = view.config()  # an unreadable experiment is an error, not an empty file
    if reads_only(request.scope):
        config = hidden_values(config)
    name = f'attachment; filename="{view.experiment_id}.{format}"'
    lines = csv_lines(view) if format == "csv" else json_lines(view, config)
    media = "text/csv" if format == "csv" else "application/json"
    return StreamingResponse(lines, media_type=media, headers={"content-disposition": name})


def _page(view: ExperimentView, table: TableQuery) -> object:
    return view.trials(table.query())


def _detail(view: ExperimentView, trial: str) -> object:
    return detail_object(view.trial(trial))


def _curves(view: ExperimentView, trials: tuple[int, ...], metric: str, points: int) -> object:
    numbers = trials or [best.sequence_id for best in view.best(20)]
    return {"curves": view.curves(numbers, metric, points)}
