"""The figure of schedules: each trial as it was trained, its copies, and the way to the best result."""

from __future__ import annotations

from typing import Any

import pytest

from pitchpipe.server import figures
from pitchpipe.server.figures import ExperimentTable, Objective, TrialRecord, dimensions_of
from pitchpipe.store.reading import Schedule, ScheduleStep

SPACE = {
    "lr": {"_type": "loguniform", "_value": [0.001, 0.1]},
    "act": {"_type": "choice", "_value": ["relu", "tanh"]},
}


def step(begin: int, trial: int, lr: float, act: str = "relu", **more: Any) -> ScheduleStep:
    return ScheduleStep(begin=begin, parameters={"lr": lr, "act": act}, trial=trial, first=begin, **more)


@pytest.fixture
def population() -> ExperimentTable:
    """Return two trials: the second copied the first after four results, and is the best."""
    model, before = step(0, 0, 0.05), step(0, 1, 0.002, "tanh")
    copied = step(4, 1, 0.04, copied_from=0, copied_at=4)
    schedules = [
        Schedule(sequence_id=0, results=8, steps=[model], own=[model], own_results=8),
        Schedule(sequence_id=1, results=8, steps=[model, copied], own=[before, copied], own_results=8),
    ]
    trials = [
        TrialRecord(0, "SUCCEEDED", {"lr": 0.05, "act": "relu"}, {"default": 0.5}),
        TrialRecord(1, "SUCCEEDED", {"lr": 0.04, "act": "relu"}, {"default": 0.1}),
    ]
    return ExperimentTable.of("pop", [Objective()], trials, dimensions_of(SPACE), schedules=schedules)


def drawn(trace: Any) -> list[tuple[float, float]]:
    """Return the points of a trace, without the gaps between its lines."""
    return [(x, y) for x, y in zip(trace.x, trace.y, strict=True) if x is not None]


def test_each_trial_is_a_line_of_steps_and_the_thick_one_leads_to_the_best(
    population: ExperimentTable,
) -> None:
    figure = figures.plot_schedule(population, ["lr"])
    members, best, copies = figure.data
    assert drawn(members) == [(0, 0.05), (8, 0.05), (0, 0.002), (4, 0.04), (8, 0.04)]
    assert (best.name, drawn(best)) == ("best: trial 1", [(0, 0.05), (4, 0.04), (8, 0.04)])
    assert best.line.width > members.line.width
    assert (drawn(copies), list(copies.customdata)) == ([(4, 0.04)], [1])
    assert copies.text[0].endswith("continues from the checkpoint of trial 0 after 4 results")
    assert (figure.layout.yaxis.type, figure.layout.yaxis.title.text) == ("log", "lr")


def test_every_parameter_that_varies_has_a_panel_and_one_legend_serves_all(
    population: ExperimentTable,
) -> None:
    figure = figures.plot_schedule(population)
    assert [axis.title.text for axis in figure.select_yaxes()] == ["lr", "act"]
    assert sum(bool(trace.showlegend) for trace in figure.data) == 3
    assert [y for _, y in drawn(figure.data[3])] == [0.0, 0.0, 1.0, 0.0, 0.0]  # of the options
    with pytest.raises(KeyError, match="there is no parameter 'z'"):
        figures.plot_schedule(population, ["z"])


def test_values_that_no_trial_has_any_more_are_drawn() -> None:
    old = ScheduleStep(begin=0, parameters={"lr": 7.0, "act": "gelu"}, trial=0, first=0)
    new = step(4, 0, 0.05)
    schedule = Schedule(sequence_id=0, results=8, steps=[old, new], own=[old, new], own_results=8)
    trials = [TrialRecord(0, "RUNNING", {"lr": 0.05, "act": "relu"})]
    table = ExperimentTable.of("pop", [Objective()], trials, dimensions_of(SPACE), schedules=[schedule])
    figure = figures.plot_schedule(table)
    assert drawn(figure.data[0])[0] == (0, 7.0)
    assert [trace.name for trace in figure.data] == ["trials"] * 2  # no best one, and nobody copied
