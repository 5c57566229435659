"""Experiments side by side: how far each came, and the settings in which they differ."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from ..protocol import Config, Json, snake_case
from ..store.reading import ABSENT, ExperimentView, Goal, HistoryEntry, Summary, flat
from .words import duration_text, number_text, standing_text

_STEPS = (1, 2, 5)
# These differ between any two experiments.
_PASSED_OVER = ("experimentId", "experimentName", "seed")
# Fields whose inner names are the user's: of parameters, variables, resources.
_OWN_NAMES = ("searchSpace", "defaults", "priors", "trialEnvironment", "trialResources", "trackers")


@dataclass(frozen=True, slots=True)
class ComparedExperiment:
    """An experiment of a comparison: its results, or means of families of repeats, and when all trials ended."""

    summary: Summary
    config: Config
    history: Sequence[HistoryEntry]
    ends: Sequence[float]

    @classmethod
    def of(cls, view: ExperimentView) -> ComparedExperiment:
        """Read an experiment; raise `StoreError` if it cannot be read."""
        return cls(view.summary(), view.config(), view.history(), [end.time for end in view.ends()])

    @property
    def goal(self) -> Goal:
        """The objective by which it is compared: its first one."""
        return self.summary.objectives[0]

    @property
    def curve(self) -> list[float | None]:
        """The best value after each trial that ended, however it did."""
        times = [entry.time or 0.0 for entry in self.history]
        counts = [bisect_right(times, end) for end in self.ends]
        return [self.history[count - 1].best if count else None for count in counts]

    @property
    def best(self) -> float | None:
        """The best value, if there is one."""
        return self.history[-1].best if self.history else None

    @property
    def has_families(self) -> bool:
        """Whether configurations are run several times."""
        return (self.config.get("repeats") or {}).get("count", 1) > 1

    @property
    def succeeded(self) -> int:
        """The number of trials that succeeded."""
        return int(self.summary.counts.get("SUCCEEDED", 0))


def why_not_compared(experiments: Sequence[ComparedExperiment]) -> str:
    """Return why the best values cannot be compared; empty if all have the objective of the first one."""
    first = experiments[0]
    for other in experiments[1:]:
        if other.goal != first.goal:
            words = [f"{one.summary.id} is to {one.goal.direction} {one.goal.name}" for one in (first, other)]
            return f"these experiments cannot be compared: {', '.join(words)}"
    return ""


def comparison_notes(experiments: Sequence[ComparedExperiment]) -> list[str]:
    """Return what a comparison leaves out."""
    notes = []
    if any(len(one.summary.objectives) > 1 for one in experiments):
        notes.append(f"compared by the first objective, {experiments[0].goal.name}, alone")
    if len({one.has_families for one in experiments}) > 1:
        notes.append("this compares means of repeats with single runs, whose best is partly luck")
    return notes


def comparison_facts(experiments: Sequence[ComparedExperiment]) -> dict[str, list[str]]:
    """Return the state of each experiment, by what it is."""
    goal = experiments[0].goal
    best = "best" if goal.name == "default" else f"best {goal.name}"
    families = [str(len(one.history)) if one.has_families else "-" for one in experiments]
    return {
        "status": [standing_text(one.summary) for one in experiments],
        "trials": [str(one.summary.trials) for one in experiments],
        "succeeded": [str(one.succeeded) for one in experiments],
        **({"families": families} if any(one.has_families for one in experiments) else {}),
        "ran for": [duration_text(one.summary.run_time) for one in experiments],
        f"{best} ({goal.direction})": [value_or_dash(one.best) for one in experiments],
    }


def milestones(experiments: Sequence[ComparedExperiment]) -> dict[int, list[float | None]]:
    """Return the best values after 1, 2, 5, 10 ... finished trials; None for an experiment that has fewer."""
    curves = [one.curve for one in experiments]
    longest = max(map(len, curves))
    counts = [step * 10**power for power in range(len(str(longest))) for step in _STEPS]
    return {
        count: [curve[count - 1] if count <= len(curve) else None for curve in curves]
        for count in counts
        if count <= longest
    }


def config_differences(configs: Sequence[Config]) -> dict[str, list[Json]]:
    """Return the settings in which configs differ, by their names; `ABSENT` where a config does not have one.

    >>> config_differences([{"tuner": {"name": "TPE"}, "seed": 1}, {"tuner": {"name": "GP"}, "seed": 2}])
    {'tuner.name': ['TPE', 'GP']}
    >>> config_differences([{"priors": {}}, {}])
    {}
    """
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
    # An empty setting says what an absent one does.
    settings = [
        {name: value for name, value in fields.items() if value not in ({}, [])} for fields in settings
    ]
    names = dict.fromkeys(name for fields in settings for name in fields)
    by_field = {name: [fields.get(name, ABSENT) for fields in settings] for name in names}
    return {name: values for name, values in by_field.items() if any(value != values[0] for value in values)}


def _written(name: str, value: Json) -> Json:
    """Return the value of a field with the names of the fields in it as users write them."""
    is_section = isinstance(value, dict) and name not in _OWN_NAMES
    return {snake_case(inner): each for inner, each in value.items()} if is_section else value


def value_or_dash(value: float | None) -> str:
    """Return a number, or a dash where there is none."""
    return "-" if value is None else number_text(value)


def setting_text(value: Json) -> str:
    """Return a setting as the config has it; of a list, one item after the other.

    >>> setting_text([{"name": "ms", "direction": "minimize"}, {"name": "mb", "constraint": "<= 9"}])
    'ms minimize, mb <= 9'
    >>> setting_text([1, 2]), setting_text(ABSENT)
    ('1, 2', '-')
    """
    if not isinstance(value, list):
        return "-" if value is ABSENT else number_text(value)
    return ", ".join(
        " ".join(number_text(inner) for inner in item.values() if inner is not None)
        if isinstance(item, dict)
        else number_text(item)
        for item in value
    )
