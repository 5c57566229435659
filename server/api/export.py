"""The export of all trials, written while they are read."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter, Request
from starlette.responses import StreamingResponse

from ...store.reading import csv_lines, json_lines
from .responses import ExperimentName, view_of

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
