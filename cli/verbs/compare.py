"""`pitchpipe compare`: the results of experiments after the same number of trials, and the differing settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from ...protocol import Config, Json, snake_case
from ...store import ExperimentFolder
from ...store.reading import ExperimentView, Goal, Summary, flat, to_json
from ...telling import duration_text, experiment_text, number_text
from ..failures import Failure
from ..lookup import chosen_experiment
from ..printing import print_table
from ..verb import complete_experiment, directory_option, verb

_STEPS = (1, 2, 5)
_ABSENT = object()  # in place of a setting that an experiment does not have
# These differ between any two experiments.
_PASSED_OVER = ("experimentId", "experimentName", "seed")
# Fields whose inner names are the user's: of parameters, variables, resources.
_OWN_NAMES = ("searchSpace", "defaults", "priors", "trialEnvironment", "trialResources", "trackers")


@dataclass(frozen=True, slots=True)
class _Side:
    """One of the compared experiments; `curve` has the best value after each finished trial, or family of repeats."""

    summary: Summary
    config: Config
    objective: Goal
    curve: list[float | None]

    @property
    def best(self) -> float | None:
        return self.curve[-1] if self.curve else None

    @property
    def has_families(self) -> bool:
        return (self.config.get("repeats") or {}).get("count", 1) > 1

    @property
    def succeeded(self) -> int:
        return int(self.summary.counts.get("SUCCEEDED", 0))


@verb("compare", "pitchpipe compare k3x9a2bq nightly", "pitchpipe compare k3x9a2bq nightly --json")
@click.argument(
    "experiments", nargs=-1, required=True, metavar="ID ID...", shell_complete=complete_experiment
)
@directory_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def compare(experiments: tuple[str, ...], directory: Path | None, as_json: bool) -> None:
    """Compare the best values after the same number of finished trials, and the configs.

    They must have the same first objective. Trials are counted in the order in which they ended. Repeats of one
    configuration count as one trial, with their mean.
    """
    if len(experiments) < 2:
        raise Failure("give at least two experiments to compare")
    sides = [_read(chosen_experiment(name, None, directory)) for name in experiments]
    _refuse_other_objectives(sides)
    differing = _differences([side.config for side in sides])
    if as_json:
        click.echo(to_json(_object(sides, differing)).decode())
        return
    head = ("", *(side.summary.id for side in sides))
    milestones = _milestones(sides).items()
    print_table(head, [*_facts(sides), *((f"  after {n}", *map(_shown, values)) for n, values in milestones)])
    if any(len(side.summary.objectives) > 1 for side in sides):
        click.echo(f"compared by the first objective, {sides[0].objective.name}, alone", err=True)
    if len({side.has_families for side in sides}) > 1:
        click.echo("this compares means of repeats with single runs, whose best is partly luck", err=True)
    if differing:
        click.echo("\nwhat differs")
        print_table(head, [(name, *map(_setting, values)) for name, values in differing.items()])


def _read(folder: ExperimentFolder) -> _Side:
    with ExperimentView(folder) as view:
        summary = view.summary()
        curve = [entry.best for entry in view.history()]
        return _Side(summary, view.config(), summary.objectives[0], curve)


def _refuse_other_objectives(sides: Sequence[_Side]) -> None:
    first = sides[0]
    for side in sides[1:]:
        if side.objective != first.objective:
            one, other = (
                f"{s.summary.id} is to {s.objective.direction} {s.objective.name}" for s in (first, side)
            )
            raise Failure(f"these experiments cannot be compared: {one}, {other}")


def _facts(sides: Sequence[_Side]) -> list[tuple[str, ...]]:
    objective = sides[0].objective
    best = "best" if objective.name == "default" else f"best {objective.name}"
    families = [str(len(side.curve)) if side.has_families else "-" for side in sides]
    return [
        ("status", *(experiment_text(side.summary.status, side.summary.has_program) for side in sides)),
        ("trials", *(str(side.summary.trials) for side in sides)),
        ("succeeded", *(str(side.succeeded) for side in sides)),
        *([("families", *families)] if any(side.has_families for side in sides) else []),
        ("ran for", *(duration_text(side.summary.run_time) for side in sides)),
        (f"{best} ({objective.direction})", *(_shown(side.best) for side in sides)),
    ]


def _milestones(sides: Sequence[_Side]) -> dict[int, list[float | None]]:
    """Return the best values after 1, 2, 5, 10 ... successful trials; None for an experiment that has fewer."""
    longest = max(len(side.curve) for side in sides)
    counts = [step * 10**power for power in range(len(str(longest))) for step in _STEPS]
    return {
        count: [side.curve[count - 1] if count <= len(side.curve) else None for side in sides]
        for count in counts
        if count <= longest
    }


def _differences(configs: Sequence[Config]) -> dict[str, list[Json]]:
    settings = [
        flat(
            {
                snake_case(name): _written(name, value)
                for name, value in config.items()
                if name not in _PASSED_OVER
            }
        )
        for config in configs
    ]
    names = dict.fromkeys(name for fields in settings for name in fields)
    by_field = {name: [fields.get(name, _ABSENT) for fields in settings] for name in names}
    return {name: values for name, values in by_field.items() if any(value != values[0] for value in values)}


def _written(name: str, value: Json) -> Json:
    """Return the value of a field with the names of the fields in it as users write them."""
    is_section = isinstance(value, dict) and name not in _OWN_NAMES
    return {snake_case(inner): each for inner, each in value.items()} if is_section else value


def _object(sides: Sequence[_Side], differing: Mapping[str, Sequence[Json]]) -> Mapping[str, object]:
    return {
        "objective": sides[0].objective,
        "experiments": [
            {
                "id": side.summary.id,
                "status": side.summary.status,
                "trials": side.summary.trials,
                "run_time": side.summary.run_time,
                "succeeded": side.succeeded,
                **({"families": len(side.curve)} if side.has_families else {}),
                "best": side.best,
            }
            for side in sides
        ],
        "best_after": {str(count): values for count, values in _milestones(sides).items()},
        "differences": {
            name: [None if value is _ABSENT else value for value in values]
            for name, values in differing.items()
        },
    }


def _shown(value: float | None) -> str:
    return "-" if value is None else number_text(value)


def _setting(value: Json) -> str:
    """Return a setting as the config has it; of a list, one item after the other.

    >>> _setting([{"name": "ms", "direction": "minimize"}, {"name": "mb", "constraint": "<= 9"}]), _setting([1, 2])
    ('ms minimize, mb <= 9', '1, 2')
    """
    if not isinstance(value, list):
        return "-" if value is _ABSENT else number_text(value)
    return ", ".join(
        " ".join(number_text(inner) for inner in item.values() if inner is not None)
        if isinstance(item, dict)
        else number_text(item)
        for item in value
    )
