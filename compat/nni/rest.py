"""NNI's REST API under `/api/v1/nni`, to read: for dashboards and scripts that were written for it."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response

from ...server import Experiments, hidden_values, reads_only
from ...server.api import Status, TrialName, json_response, view_of
from ...store import StoreError
from ...store.reading import ExperimentView, TrialQuery
from .rest_forms import (
    NniMetadata,
    nni_export,
    nni_job,
    nni_jobs,
    nni_metadata,
    nni_metrics,
    nni_profile,
    nni_statistics,
)

_routes = APIRouter(include_in_schema=False)
_CURRENT = "current"
Kind = Literal["PERIODICAL", "FINAL"] | None
_VERSION = "3.0.0"  # whose interface this is


def _view(request: Request) -> ExperimentView:
    """Return the experiment in front of the path, where NNI has its url_prefix; the current one without it."""
    return view_of(request, request.path_params.get("experiment", _CURRENT))


@_routes.get("/version")
def get_version() -> Response:
    """Return the version of NNI whose interface this is."""
    return Response(_VERSION, media_type="text/plain")


@_routes.get("/check-status")
def check_status(request: Request) -> Response:
    """Return the status of the experiment and what ended it."""
    summary = _view(request).summary()
    return json_response({"status": summary.status, "errors": [summary.error] if summary.error else []})


@_routes.get("/experiment")
def get_profile(request: Request) -> Response:
    """Return the config and how far the experiment is."""
    profile = nni_profile(_view(request))
    return json_response(hidden_values(profile) if reads_only(request.scope) else profile)


@_routes.get("/experiment-metadata")
def get_metadata(request: Request) -> Response:
    """Return the line of the experiment in the list of all."""
    return json_response(nni_metadata(_view(request)))


@_routes.get("/experiments-info")
def list_metadata(request: Request) -> Response:
    """Return a line for each experiment."""
    experiments: Experiments = request.app.state.experiments
    return json_response([*filter(None, map(_metadata, experiments.views()))])


def _metadata(view: ExperimentView) -> NniMetadata | None:
    """Return the line of an experiment, None if it cannot be read: it does not hide the others."""
    try:
        return nni_metadata(view)
    except StoreError:
        return None


@_routes.get("/job-statistics")
def get_statistics(request: Request) -> Response:
    """Return how many trials have each status."""
    return json_response(nni_statistics(_view(request)))


@_routes.get("/trial-jobs")
def list_jobs(request: Request, status: Annotated[Status | None, Query()] = None) -> Response:
    """Return the trials."""
    query = TrialQuery(statuses=[status] if status else (), limit=None)
    return json_response(nni_jobs(_view(request), query))


@_routes.get("/trial-jobs/{trial}")
def get_job(request: Request, trial: TrialName) -> Response:
    """Return a trial."""
    view = _view(request)
    return json_response(nni_job(view, view.trial(trial)))


@_routes.get("/metric-data")
def list_metrics(request: Request, type: Kind = None) -> Response:
    """Return the results of all trials."""
    return _metrics(_view(request), None, type)


@_routes.get("/metric-data-latest")
def list_latest_metrics(request: Request) -> Response:
    """Return the final results, and the newest intermediate one of each trial."""
    return json_response(list(nni_metrics(_view(request), latest=True)))


@_routes.get("/metric-data-range/{first}/{last}")
def list_metrics_between(request: Request, first: int, last: int) -> Response:
    """Return the results of the trials with these numbers, the last one included."""
    view = _view(request)
    numbers = range(max(first, 0), min(last + 1, view.summary().trials))
    return json_response([metric for number in numbers for metric in nni_metrics(view, str(number))])


@_routes.get("/metric-data/{trial}")
def list_metrics_of(request: Request, trial: TrialName, type: Kind = None) -> Response:
    """Return the results of a trial."""
    return _metrics(_view(request), trial, type)


@_routes.get("/trial-file/{trial}/{name}")
def get_file(request: Request, trial: TrialName, name: Literal["stdout", "stderr", "trial.log"]) -> Response:
    """Return what a trial printed; `trial.log` is its stdout."""
    piece = _view(request).trial_log(trial, "stdout" if name == "trial.log" else name)
    return Response(piece.text, media_type="text/plain")


@_routes.get("/export-data")
def export_data(request: Request) -> Response:
    """Return parameters and final results of the succeeded trials."""
    return json_response(list(nni_export(_view(request))))


def _metrics(view: ExperimentView, trial: str | None, kind: Kind) -> Response:
    return json_response([metric for metric in nni_metrics(view, trial) if kind in (None, metric["type"])])


# Of the current experiment, and with an id in front of any other: where NNI has its url_prefix.
router = APIRouter()
for _prefix in ("/api/v1/nni", "/{experiment}/api/v1/nni"):
    router.include_router(_routes, prefix=_prefix)
