"""`pitchpipe trials`: the trials of an experiment as a table."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from ...store.reading import ExperimentView, TrialQuery, duration_text, number_text, parameters_text
from ..finding import chosen_experiment
from ..table import print_table
from ..verb import experiment_options, verb

__all__ = ["trials"]

_STATUSES = (
    "WAITING",
    "RUNNING",
    "PAUSED",
    "SUCCEEDED",
    "FAILED",
    "EARLY_STOPPED",
    "USER_CANCELED",
    "SYS_CANCELED",
)
_ORDERS = ("number", "best", "highest", "lowest", "longest", "latest")
_HEAD = ("#", "id", "status", "result", "took", "parameters", "reason")


@verb("trials", "pitchpipe trials", "pitchpipe trials k3x9a2bq --sort best --limit 10 --status SUCCEEDED")
@experiment_options
@click.option(
    "--sort", type=click.Choice(_ORDERS), default="number", show_default=True,
    help="Sort by number, result (best, highest or lowest first), duration (longest first) or end (latest first).",
)  # fmt: skip
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=100,
    show_default=True,
    help="Show at most this many (0 = all).",
)
@click.option(
    "--status", "statuses", multiple=True, type=click.Choice(_STATUSES, case_sensitive=False),
    help="Show only trials with this status; may be repeated.",
)  # fmt: skip
def trials(
    experiment: str | None,
    experiment_id: str | None,
    directory: Path | None,
    sort: str,
    limit: int,
    statuses: tuple[str, ...],
) -> None:
    """List the trials of an experiment with results, parameters and why they failed."""
    with ExperimentView(chosen_experiment(experiment, experiment_id, directory)) as view:
        names = view.metric_names()
        page = view.trials(_query(sort, limit, statuses, view.objectives()[0]))
    # By number, the newest are the ones to see; in every other order, the first.
    shown = page.trials[::-1] if sort == "number" else page.trials
    print_table(_HEAD, [_row(trial, names) for trial in shown], _HEAD.index("parameters"))
    if len(shown) < page.total:
        click.echo(f"{len(shown)} of {page.total} trials; --limit 0 shows all", err=True)


def _query(sort: str, limit: int, statuses: tuple[str, ...], objective: dict[str, str]) -> TrialQuery:
    result = f"value.{objective['name']}"
    field, descending = {
        "number": ("sequence_id", True),
        "best": ("best", False),
        "highest": (result, True),
        "lowest": (result, False),
        "longest": ("duration", True),
        "latest": ("end_time", True),
    }[sort]
    return TrialQuery(statuses=statuses, sort=field, descending=descending, limit=limit or None)


def _row(trial: dict[str, Any], names: list[str]) -> tuple[str, ...]:
    begin, end = trial["start_time"], trial["end_time"] or time.time()
    return (
        str(trial["sequence_id"]),
        trial["trial_id"],
        trial["status"],
        " ".join(number_text(trial["values"][name]) for name in names if name in trial["values"]),
        "" if begin is None else duration_text(max(0.0, end - begin)),
        parameters_text(trial["parameters"]),
        trial["reason"],
    )
