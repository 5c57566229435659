"""Logs of the experiment and output of trials: listed, read in pieces, followed."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from starlette.responses import StreamingResponse

from ...store.reading import Follow
from .event_streams import EVENT_STREAM, log_stream, stream_response
from .models import LogFile, LogPiece
from .responses import ExperimentName, LogName, Offset, TrialName, json_response, view_of

router = APIRouter(tags=["logs"])
Lines = Annotated[
    int | None, Query(ge=0, le=100_000, description="The number of last lines, instead of `offset`.")
]
Limit = Annotated[int, Query(ge=4, le=1024 * 1024, description="Bytes.")]


async def _part(lines: Lines = None, offset: Offset = 0, limit: Limit = 256 * 1024) -> Follow:
    return Follow(lines, offset, limit)


Part = Annotated[Follow, Depends(_part)]


@router.get("/experiments/{experiment}/logs", response_model=list[LogFile])
def list_logs(request: Request, experiment: ExperimentName) -> Response:
    """List the logs of the manager, the dispatcher and the agents."""
    return json_response(view_of(request, experiment).logs())


@router.get("/experiments/{experiment}/logs/{name}", response_model=LogPiece)
def get_log(request: Request, experiment: ExperimentName, name: LogName, part: Part) -> Response:
    """Return a piece of a log."""
    return json_response(view_of(request, experiment).log(name, part))


@router.get("/experiments/{experiment}/logs/{name}/follow", **EVENT_STREAM)
async def follow_log(
    request: Request, experiment: ExperimentName, name: LogName, offset: Offset = 0
) -> StreamingResponse:
    """Stream what is written to a log from byte `offset` on."""
    view = await asyncio.to_thread(view_of, request, experiment)
    return await stream_response(request, log_stream(lambda follow: view.log(name, follow), offset))


@router.get("/experiments/{experiment}/trials/{trial}/logs", response_model=list[LogFile])
def list_trial_logs(request: Request, experiment: ExperimentName, trial: TrialName) -> Response:
    """List the files with the output and the parameters of a trial."""
    return json_response(view_of(request, experiment).trial_logs(trial))


@router.get("/experiments/{experiment}/trials/{trial}/logs/{name}", response_model=LogPiece)
def get_trial_log(
    request: Request, experiment: ExperimentName, trial: TrialName, name: LogName, part: Part
) -> Response:
    """Return a piece of a trial's output."""
    return json_response(view_of(request, experiment).trial_log(trial, name, part))


@router.get("/experiments/{experiment}/trials/{trial}/logs/{name}/follow", **EVENT_STREAM)
async def follow_trial_log(
    request: Request, experiment: ExperimentName, trial: TrialName, name: LogName, offset: Offset = 0
) -> StreamingResponse:
    """Stream what a trial prints from byte `offset` on."""
    view = await asyncio.to_thread(view_of, request, experiment)
    return await stream_response(
        request, log_stream(lambda follow: view.trial_log(trial, name, follow), offset)
    )
