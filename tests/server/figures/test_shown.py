"""Which trials a figure shows of a metric, and how it tells apart those that were stopped or violate a limit."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pitchpipe.server import figures
from pitchpipe.server.figures import Curve, ExperimentTable, Objective, TrialRecord, dimensions_of, shown_of

SPACE = {"x": {"_type": "uniform", "_value": [0, 1]}, "act": {"_type": "choice", "_value": ["relu", "tanh"]}}
LIMIT = Objective(name="ms", direction=None, at_most=20.0)
ODD = "a\"b'; DROP TABLE trials; --"
DRAWN: dict[str, Callable[..., Any]] = {
    "history": figures.plot_history,
    "slice": figures.plot_slice,
    "contour": figures.plot_contour,
    "parallel": figures.plot_parallel,
    "importance": figures.plot_importance,
}


def trial(
    number: int, status: str = "SUCCEEDED", value: float = 0.0, ms: float = 10.0, **more: Any
) -> TrialRecord:
    """Return a trial that succeeded, or one that reported the value last, after `number` results and one."""
    reported = {"loss": value, "ms": ms, "train.loss": value / 2, ODD: value * 2}
    given: dict[str, Any] = {
        "parameters": {"x": number / 40, "act": ["relu", "tanh"][number % 2]},
        "values": {"loss": value, "ms": ms} if status == "SUCCEEDED" else {},
        "reported": reported,
        "reports": number + 1,
        **more,
    }
    return TrialRecord(number, status, **given)


def table(trials: list[TrialRecord], **more: Any) -> ExperimentTable:
    return ExperimentTable.of(
        "shown", [Objective(name="loss")], trials, dimensions_of(SPACE), limits=[LIMIT], **more
    )


@pytest.fixture
def mixed() -> ExperimentTable:
    """Return ten trials that succeeded, two of them too slow, twenty stopped ones, a failed one and a running one."""
    ended = [trial(n, value=n / 10, ms=30.0 if n < 2 else 10.0) for n in range(10)]
    stopped = [trial(n, "EARLY_STOPPED", value=2.0 + n / 10) for n in range(10, 30)]
    return table([*ended, *stopped, trial(30, "FAILED", value=9.0), trial(31, "RUNNING", value=0.0)])


def names_of(figure: Any) -> dict[str, int]:
    """Return the number of points of each name."""
    found: dict[str, int] = {}
    for trace in figure.data:
        if trace.type.startswith("scatter") and trace.mode == "markers" and trace.x[0] is not None:
            found[trace.name] = found.get(trace.name, 0) + len(trace.x)
    return found


def test_stopped_trials_stand_at_their_last_result_and_what_violates_a_limit_stands_apart(
    mixed: ExperimentTable,
) -> None:
    shown = shown_of(mixed, mixed.objective())
    groups = {look.name: shown.numbers[mask].tolist() for look, mask in shown.groups.items()}
    assert groups == {
        "succeeded": [*range(2, 10)],
        "stopped early": [*range(10, 30)],
        "violates a limit": [0, 1],
    }
    assert shown.values[12] == pytest.approx(3.2)
    assert shown_of(mixed, mixed.objective(), stopped=False).numbers.tolist() == [*range(10)]


def test_each_figure_of_single_trials_tells_them_apart(mixed: ExperimentTable) -> None:
    counts = {"succeeded": 8, "stopped early": 20, "violates a limit": 2}
    history = names_of(figures.plot_history(mixed))
    assert history == {**counts, "failed": 1}
    assert names_of(figures.plot_slice(mixed, parameters=["x"])) == counts
    contour = figures.plot_contour(mixed, "x", "act")
    assert names_of(contour) == counts
    assert (
        len({json.dumps(one.marker.to_plotly_json()) for one in contour.data if one.type == "scatter"}) == 3
    )
    axes = {axis.label: axis for axis in figures.plot_parallel(mixed).data[0].dimensions}
    assert list(axes) == ["x", "act", "how it ended", "ms", "loss"]
    ended = axes["how it ended"]
    assert [ended.ticktext[int(place)] for place in ended.values] == [
        *["violates a limit"] * 2,
        *["succeeded"] * 8,
        *["stopped early"] * 20,
    ]


@pytest.mark.parametrize("name", DRAWN)
def test_stopped_trials_are_left_out_on_request(name: str, mixed: ExperimentTable) -> None:
    every, ended = DRAWN[name](mixed), DRAWN[name](mixed, stopped=False)
    texts = [" ".join(one.text for one in figure.layout.annotations) for figure in (every, ended)]
    if name == "importance":
        assert "30 trials, 20 of them stopped early" in texts[0]
        assert ">10 trials<br>" in texts[1]
        return
    assert "early-stopped trials are at their last result" in texts[0]
    assert "early-stopped" not in texts[1]


def test_stopped_trials_without_a_result_stay_along_the_bottom_of_the_history() -> None:
    silent = trial(5, "EARLY_STOPPED", reported={}, reports=0)
    loud = trial(6, "EARLY_STOPPED", value=4.0)
    made = table([trial(1, value=1.0), silent, loud])
    drawn = [one for one in figures.plot_history(made).data if one.mode == "markers"]
    traces = [(one.name, list(one.customdata), one.yaxis) for one in drawn]
    assert ("stopped early", [6], "y") in traces
    assert ("stopped early", [5], "y2") in traces
    named = [one.name for one in figures.plot_history(made).data if one.showlegend]
    assert named.count("stopped early") == 1
    hidden = figures.plot_history(made, stopped=False).data
    assert [list(one.customdata) for one in hidden if one.name == "stopped early"] == [[5, 6]]


def test_best_line_has_neither_stopped_trials_nor_those_that_violate_a_limit() -> None:
    trials = [trial(0, value=5.0), trial(1, value=1.0, ms=99.0), trial(2, "EARLY_STOPPED", value=0.0)]
    (line,) = (one for one in figures.plot_history(table(trials)).data if one.mode == "lines")
    assert (list(line.x), list(line.y)) == ([0], [5.0])


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize("metric", ["train.loss", ODD, "ms"])
def test_any_metric_that_trials_report_is_an_axis(name: str, metric: str, mixed: ExperimentTable) -> None:
    arguments = ("x", "act", metric) if name == "contour" else (metric,)
    figure = DRAWN[name](mixed, *arguments)
    assert figure.data
    json.loads(figure.to_json(), parse_constant=pytest.fail)
    if name == "history":
        assert figure.layout.yaxis.title.text == metric  # no way is better
        assert "best so far" not in [one.name for one in figure.data]


def test_unknown_metric_is_answered_with_those_there_are(mixed: ExperimentTable) -> None:
    for draw in DRAWN.values():
        with pytest.raises(KeyError, match=r"no metric .*acc.*loss.*ms.*DROP TABLE.*train.loss"):
            draw(mixed, objective="acc")


def test_at_a_step_every_trial_counts_that_came_so_far(mixed: ExperimentTable) -> None:
    at_step = replace(mixed, step=3)
    shown = shown_of(at_step, at_step.objective())
    assert len(shown.trials) == 32
    counts = {look.name: int(mask.sum()) for look, mask in shown.groups.items()}
    assert counts == {"succeeded": 8, "stopped early": 20, "failed": 1, "running": 1, "violates a limit": 2}
    figure = figures.plot_history(at_step)
    assert "every trial at its intermediate result 3" in figure.layout.annotations[0].text
    assert min(next(one for one in figure.data if one.name == "best so far").y) == 0.0  # of the running one


def test_no_trial_at_a_step_is_said() -> None:
    made = replace(table([trial(0, reported={}), trial(1, "RUNNING", reported={})]), step=7)
    for draw in (figures.plot_history, figures.plot_slice, figures.plot_parallel):
        assert draw(made).layout.annotations[0].text == "No trial has reported its intermediate result 7."


@pytest.mark.parametrize("name", DRAWN)
def test_figures_are_sound_whatever_the_trials_were_like(name: str) -> None:
    nan, inf = math.nan, math.inf
    stopped = [trial(n, "EARLY_STOPPED", value=1.0 + n) for n in range(12)]
    one = {"parameters": {"x": 0.5, "act": "relu"}}
    cases = {
        "no trial": [],
        "all stopped": stopped,
        "all stopped without a result": [replace(each, reported={}, reports=0) for each in stopped],
        "all run": [trial(n, "RUNNING", value=1.0) for n in range(3)],
        "one value": [trial(n, value=1.0) for n in range(12)],
        "one stopped value": [trial(n, "EARLY_STOPPED", value=1.0) for n in range(12)],
        "not finite": [trial(n, "EARLY_STOPPED", value=[nan, inf, 2.0][n % 3]) for n in range(12)],
        "constant parameters": [trial(n, "EARLY_STOPPED", value=float(n), **one) for n in range(12)],
        "far apart": [
            trial(n, "EARLY_STOPPED" if n % 2 else "SUCCEEDED", value=10.0 ** (n - 6)) for n in range(12)
        ],
        "ends of floats": [
            trial(n, "EARLY_STOPPED", value=[1e300, -1e300, 1e-300][n % 3]) for n in range(12)
        ],
        "too slow": [trial(n, value=float(n), ms=99.0) for n in range(12)],
    }
    for case, trials in cases.items():
        for made in (table(trials), replace(table(trials), step=2)):
            figure = DRAWN[name](made)
            made_json = json.loads(figure.to_json(), parse_constant=pytest.fail)
            assert made_json["data"] or made_json["layout"]["annotations"], case


@pytest.mark.parametrize("name", DRAWN)
def test_figure_of_five_thousand_trials_of_which_most_were_stopped_is_small(name: str) -> None:
    draws = np.random.default_rng(0).random((5_000, 2)).tolist()
    trials = [
        trial(
            n,
            "SUCCEEDED" if n % 20 == 0 else "EARLY_STOPPED",
            value=x + y,
            parameters={"x": x, "act": ["relu", "tanh"][n % 2]},
        )
        for n, (x, y) in enumerate(draws)
    ]
    assert len(DRAWN[name](table(trials)).to_json()) < 700_000


def test_family_is_called_one_under_the_pointer() -> None:
    repeats = [trial(n, value=float(n)) for n in range(4)]
    family = replace(trial(0, value=1.5), repeats=4)
    made = table(repeats, families=[family])
    (text,) = figures.plot_history(made).data[0].text
    assert text.startswith("<b>family 0</b>, mean of 4 repeats<br>loss: <b>1.5</b>")


def test_curves_of_another_metric_have_its_name_and_no_better_way() -> None:
    made = table([trial(n, value=float(n)) for n in range(3)])
    curves = [Curve(n, [0, 1], [5.0, 4.0 - n]) for n in range(3)]
    figure = figures.plot_curves(made.with_curves(curves, "train.loss"))
    assert figure.layout.yaxis.title.text == "train.loss"
    assert figure.data[-1].name == "best: trial 0"  # by the objective
