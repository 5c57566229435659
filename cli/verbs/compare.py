"""`pitchpipe compare`: experiments side by side: their results after the same number of trials, their differences."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..failures import USAGE, Failure
from ..verb import complete_experiment, directory_option, verb

if TYPE_CHECKING:
    from ...runner import Objective, Trial
    from ...store import ExperimentFolder, ExperimentRow

__all__ = ["compare"]

_STEPS = (1, 2, 5)
# These differ between any two experiments, so they say nothing.
_PASSED_OVER = ("experimentId", "experimentName", "seed")


@dataclass(frozen=True, slots=True)
class _Side:
    """One of the compared experiments; `curve` is the best value after each finished trial."""

    row: ExperimentRow
    objective: Objective
    trials: int
    curve: list[float]

    @property
    def best(self) -> float | None:
        return self.curve[-1] if self.curve else None


@verb("compare", "pitchpipe compare k3x9a2bq nightly", "pitchpipe compare k3x9a2bq nightly --json")
@click.argument(
    "experiments", nargs=-1, required=True, metavar="ID ID...", shell_complete=complete_experiment
)
@directory_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def compare(experiments: tuple[str, ...], directory: Path | None, as_json: bool) -> None:
    """Compare the best values after the same number of finished trials, and the configs.

    They must have the same first objective. Trials are counted in the order in which they ended.
    """
    from ..finding import chosen_experiment
    from ..table import print_table

    if len(experiments) < 2:
        raise Failure("give at least two experiments to compare", USAGE)
    sides = [_read(chosen_experiment(name, None, directory)) for name in experiments]
    _refuse_other_objectives(sides)
    differing = _differences([side.row.config for side in sides])
    if as_json:
        click.echo(json.dumps(_object(sides, differing)))
        return
    head = ("", *(side.row.id for side in sides))
    print_table(head, [*_facts(sides), *_curve_rows(sides)])
    if differing:
        click.echo("\nwhat differs")
        print_table(head, [(name, *map(_shown, values)) for name, values in differing.items()])


def _read(folder: ExperimentFolder) -> _Side:
    from ..reading import objectives_of_row, viewed

    with viewed(folder) as store:
        row = store.experiment()
        objective = objectives_of_row(row)[0]
        trials = list(store.trials())
    return _Side(row, objective, len(trials), _curve(trials, objective))


def _curve(trials: Sequence[Trial], objective: Objective) -> list[float]:
    better = min if objective.direction == "minimize" else max
    ended = [trial for trial in trials if trial.status == "SUCCEEDED"]
    ended.sort(key=lambda trial: trial.end_time or 0.0)
    curve: list[float] = []
    for value in (trial.values[0] for trial in ended if trial.values):
        curve.append(better(value, curve[-1]) if curve else value)
    return curve


def _refuse_other_objectives(sides: Sequence[_Side]) -> None:
    first = sides[0]
    for side in sides[1:]:
        if side.objective != first.objective:
            one, other = (
                f"{s.row.id} is to {s.objective.direction} {s.objective.name}" for s in (first, side)
            )
            raise Failure(f"these experiments cannot be compared: {one}, {other}", USAGE)


def _facts(sides: Sequence[_Side]) -> list[tuple[str, ...]]:
    from ...store.reading import duration_text

    return [
        ("status", *(side.row.status for side in sides)),
        ("trials", *(str(side.trials) for side in sides)),
        ("succeeded", *(str(len(side.curve)) for side in sides)),
        ("ran for", *(duration_text(side.row.run_time) for side in sides)),
        (f"best ({sides[0].objective.direction})", *(_shown(side.best) for side in sides)),
    ]


def _curve_rows(sides: Sequence[_Side]) -> list[tuple[str, ...]]:
    return [(f"  after {count}", *map(_shown, values)) for count, values in _milestones(sides).items()]


def _milestones(sides: Sequence[_Side]) -> dict[int, list[float | None]]:
    """Return the best value of each at 1, 2, 5, 10 ... successful trials; None where it has fewer."""
    longest = max(len(side.curve) for side in sides)
    counts = [step * 10**power for power in range(len(str(longest))) for step in _STEPS]
    return {
        count: [side.curve[count - 1] if count <= len(side.curve) else None for side in sides]
        for count in counts
        if count <= longest
    }


def _differences(configs: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    from ...store.reading import flat

    kept = [{_snake(k): v for k, v in config.items() if k not in _PASSED_OVER} for config in configs]
    flattened = [flat(config) for config in kept]
    names = dict.fromkeys(name for one in flattened for name in one)
    by_field = {name: [one.get(name) for one in flattened] for name in names}
    return {name: values for name, values in by_field.items() if any(value != values[0] for value in values)}


def _snake(name: str) -> str:
    """Return a field as it is written in the config: `max_trial_number`."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def _object(sides: Sequence[_Side], differing: dict[str, list[Any]]) -> dict[str, Any]:
    return {
        "objective": {"name": sides[0].objective.name, "direction": sides[0].objective.direction},
        "experiments": [
            {
                "id": side.row.id,
                "status": side.row.status,
                "trials": side.trials,
                "succeeded": len(side.curve),
                "run_time": side.row.run_time,
                "best": side.best,
            }
            for side in sides
        ],
        "best_after": {str(count): values for count, values in _milestones(sides).items()},
        "differences": differing,
    }


def _shown(value: Any) -> str:
    from ...store.reading import number_text

    return "-" if value is None else number_text(value)
