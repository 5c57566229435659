"""`pitchpipe trials`: the trials of an experiment as a table."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..verb import experiment_options, verb

if TYPE_CHECKING:
    from ...runner import Objective, Trial

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
    """List the trials of an experiment with results, parameters and reasons of failure."""
    from ..finding import chosen_experiment
    from ..reading import objectives_of_row, viewed
    from ..table import print_table

    with viewed(chosen_experiment(experiment, experiment_id, directory)) as store:
        objective = objectives_of_row(store.experiment())[0]
        found = [trial for trial in store.trials() if not statuses or trial.status.value in statuses]
    found.sort(key=_sort_key(sort, objective))
    # Sorted by number, show the newest; in every other order, the first.
    shown = found if not limit else found[-limit:] if sort == "number" else found[:limit]
    print_table(_HEAD, [_row(trial, time.time()) for trial in shown], _HEAD.index("parameters"))
    if len(shown) < len(found):
        click.echo(f"{len(shown)} of {len(found)} trials; --limit 0 shows all", err=True)


def _sort_key(sort: str, objective: Objective) -> Callable[[Trial], Any]:
    sign = 1.0 if objective.direction == "minimize" else -1.0

    def by_result(sign: float) -> Callable[[Trial], Any]:
        return lambda trial: (trial.values is None, sign * trial.values[0] if trial.values else 0.0)

    keys: dict[str, Callable[[Trial], Any]] = {
        "number": lambda trial: trial.sequence_id,
        "best": by_result(sign),
        "highest": by_result(-1.0),
        "lowest": by_result(1.0),
        "longest": lambda trial: -(_duration(trial, time.time()) or 0.0),
        "latest": lambda trial: -(trial.end_time or float("inf")),
    }
    return keys[sort]


def _duration(trial: Trial, now: float) -> float | None:
    if trial.start_time is None:
        return None
    return max(0.0, (trial.end_time or now) - trial.start_time)


def _row(trial: Trial, now: float) -> tuple[str, ...]:
    from ...store.reading import duration_text, number_text, parameters_text

    duration = _duration(trial, now)
    return (
        str(trial.sequence_id),
        trial.trial_id,
        trial.status.value,
        " ".join(number_text(value) for value in trial.values or ()),
        "" if duration is None else duration_text(duration),
        parameters_text(json.loads(trial.record)["parameters"]),
        trial.reason,
    )
