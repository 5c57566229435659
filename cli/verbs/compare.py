"""`pitchpipe compare`: the results of experiments after the same number of trials, and the differing settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from ...protocol import Json
from ...store.reading import ABSENT, ExperimentView, to_json
from ...telling import (
    ComparedExperiment,
    comparison_facts,
    comparison_notes,
    config_differences,
    milestones,
    setting_text,
    value_or_dash,
    why_not_compared,
)
from ..failures import Failure
from ..lookup import chosen_experiment
from ..printing import print_table
from ..verb import complete_experiment, directory_option, verb


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
    sides = [_read(name, directory) for name in experiments]
    if why := why_not_compared(sides):
        raise Failure(why)
    differing = config_differences([side.config for side in sides])
    if as_json:
        click.echo(to_json(_object(sides, differing)).decode())
        return
    head = ("", *(side.summary.id for side in sides))
    facts = [(name, *values) for name, values in comparison_facts(sides).items()]
    after = [(f"  after {n}", *map(value_or_dash, values)) for n, values in milestones(sides).items()]
    print_table(head, [*facts, *after])
    for note in comparison_notes(sides):
        click.echo(note, err=True)
    if differing:
        click.echo("\nwhat differs")
        print_table(head, [(name, *map(setting_text, values)) for name, values in differing.items()])


def _read(name: str, directory: Path | None) -> ComparedExperiment:
    with ExperimentView(chosen_experiment(name, None, directory)) as view:
        return ComparedExperiment.of(view)


def _object(
    sides: Sequence[ComparedExperiment], differing: Mapping[str, Sequence[Json]]
) -> Mapping[str, object]:
    return {
        "objective": sides[0].goal,
        "experiments": [
            {
                "id": side.summary.id,
                "status": side.summary.status,
                "trials": side.summary.trials,
                "run_time": side.summary.run_time,
                "succeeded": side.succeeded,
                **({"families": len(side.history)} if side.has_families else {}),
                "best": side.best,
            }
            for side in sides
        ],
        "best_after": {str(count): values for count, values in milestones(sides).items()},
        "differences": {
            name: [None if value is ABSENT else value for value in values]
            for name, values in differing.items()
        },
    }
