"""All trials for other programs, written as they are read."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter, Request
from starlette.responses import StreamingResponse

from ...store.reading import csv_lines, json_lines
from .common import ExperimentName, view_of

__all__ = ["router"]

router = APIRouter(tags=["export"])


@router.get(
    "/experiments/{experiment}/export",
    response_class=StreamingResponse,
    responses={
        200: {
            "content": {
                "application/json": {"schema": {"type": "object"}},
                "text/csv": {"schema": {"type": "string"}},
            },
            "description": "As `pitchpipe export` writes them.",
        }
    },
)
def export_trials(
    request: Request, experiment: ExperimentName, format: Literal["json", "csv"] = "json"
) -> StreamingResponse:
    """All trials with their results: JSON with intermediate results, or CSV with a row a trial."""
    view = view_of(request, experiment)
    view.config()  # an experiment that cannot be read is a problem, not an empty file
    name = f'attachment; filename="{view.experiment_id}.{format}"'
    lines, media = (
        (csv_lines(view), "text/csv") if format == "csv" else (json_lines(view), "application/json")
    )
    return StreamingResponse(lines, media_type=media, headers={"content-disposition": name})
