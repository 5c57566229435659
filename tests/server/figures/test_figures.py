"""Every figure: what it shows, and that no table, however poor or hostile, breaks it."""

import json
import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from pitchpipe.server import figures
from pitchpipe.server.figures import (
    Curve,
    ExperimentTable,
    Objective,
    Span,
    TrialRecord,
    dimensions_of,
    example_table,
)
from pitchpipe.server.figures.figure_parts import note
from pitchpipe.store.reading import HistoryEntry, ParetoFront, Schedule, ScheduleStep, VolumeEntry

Plot = Callable[..., Any]


def contour_of_the_first_two(table: ExperimentTable, **more: Any) -> Any:
    names = [dimension.name for dimension in table.dimensions]
    return figures.plot_contour(table, names[0], names[1], **more)


def schedules_of_a_population(table: ExperimentTable, **more: Any) -> Any:
    """Draw the first hundred trials as if each had copied a checkpoint of the one before, and kept its parameters."""
    schedules = []
    for one in table.trials[:100]:
        first = ScheduleStep(begin=0, parameters=dict(one.parameters), trial=one.number, first=0)
        copied = replace(first, begin=5, first=5, copied_from=max(one.number - 1, 0), copied_at=5)
        steps = [first, copied]
        schedules.append(Schedule(sequence_id=one.number, results=9, steps=steps, own=steps, own_results=9))
    return figures.plot_schedule(replace(table, schedules=tuple(schedules)), **more)


PLOTS: dict[str, Plot] = {
    "contour": contour_of_the_first_two,
    "curves": figures.plot_curves,
    "edf": figures.plot_edf,
    "history": figures.plot_history,
    "importance": figures.plot_importance,
    "parallel": figures.plot_parallel,
    "pareto": figures.plot_pareto,
    "schedule": schedules_of_a_population,
    "slice": figures.plot_slice,
    "timeline": figures.plot_timeline,
}
MARKUP = "</script><b>%{x}</b>"


def trial(number: int, status: str = "SUCCEEDED", **more: Any) -> TrialRecord:
    given = {
        "parameters": {"x": number / 7, "act": ["relu", "tanh"][number % 2], "k": number % 3},
        "values": {"default": float((number * 5) % 7), "size": float(number)},
        "start_time": 1e9 + number,
        "end_time": 1e9 + number + 1.5,
        **more,
    }
    return TrialRecord(number=number, status=status, **given)


def table(trials: list[TrialRecord], **more: Any) -> ExperimentTable:
    objectives = [Objective(name="default"), Objective(name="size", direction="maximize")]
    return ExperimentTable.of("one", objectives, trials, **more)


@cache
def cases() -> dict[str, ExperimentTable]:
    """Poor, odd and hostile tables."""
    nan, inf = math.nan, math.inf
    failed = [trial(n, "FAILED", values={}, reason=MARKUP) for n in range(5)]
    options = [trial(n, parameters={"a": ["p", "q"][n % 2], "b": [[1], {"c": 2}][n % 2]}) for n in range(9)]
    broken = [trial(n, values={"default": [nan, inf, -inf, 1.0][n % 4], "size": inf}) for n in range(12)]
    huge = [
        trial(n, parameters={"x": 10 ** (n * 40), "y": n}, values={"default": 10.0**n}) for n in range(10)
    ]
    hostile = [trial(n, parameters={MARKUP: n, "b": MARKUP}, reason=MARKUP) for n in range(9)]
    mixed = [trial(n, parameters={"x": [1, "one", None, True, nan][n % 5], "y": 2.0 * n}) for n in range(10)]
    running = [trial(0, "RUNNING", values={}, end_time=None), trial(1, "WAITING", values={}, start_time=None)]
    extreme = [
        trial(n, values={"default": [1e300, 5e-324, -1e308, 2.0][n % 4], "size": 1e17 + n}) for n in range(9)
    ]
    same = [trial(n, parameters={"x": 1.0, "y": 2}, values={"default": 3.0, "size": 3.0}) for n in range(9)]
    return {
        "nothing": table([]),
        "one trial": table([trial(0)]),
        "two trials": table([trial(0), trial(1)]),
        "all failed": table(failed, curves=[Curve(0, [0.0], [nan])]),
        "only options": table(options),
        "nan and infinities": table(broken, curves=[Curve(0, [0, 1, 2], [nan, inf, 1.0])]),
        "huge numbers": table(huge),
        "extreme results": table(extreme, curves=[Curve(0, [0.0, 1.0], [1e300, -1e300])]),
        "markup": table(hostile, curves=[Curve(1, [0.0, 1.0], [1.0, 2.0])]),
        "mixed types": table(mixed),
        "not over": table(
            running, spans=[Span(number=0, worker="w", start=1e9, end=1e9 + 1, status="FAILED")], now=1e9 + 9
        ),
        "all the same": table(same),
        "no parameters": table([trial(n, parameters={}) for n in range(9)]),
    }


def read_as_markup(made: Any) -> Iterator[str]:
    """All texts of a figure, less line breaks, but not the ticks of parallel coordinates, which are plain text."""
    if isinstance(made, str):
        yield made.replace("<br>", " ").replace("</b>", "").replace("<extra></extra>", "")
    elif isinstance(made, dict):
        for key, inner in made.items():
            yield from () if key == "ticktext" and "label" in made else read_as_markup(inner)
    elif isinstance(made, list):
        for inner in made:
            yield from read_as_markup(inner)


@pytest.mark.parametrize("plot", PLOTS)
def test_figure_of_a_poor_table_is_sound(plot: str) -> None:
    for case, poor in cases().items():
        if plot == "contour" and len(poor.dimensions) < 2:
            continue
        made = json.loads(PLOTS[plot](poor).to_json(), parse_constant=pytest.fail)  # NaN is not JSON
        assert made["data"] or made["layout"]["annotations"], case
        markup = (text.replace("<b>", "") for text in read_as_markup(made) if "script" in text)
        assert [text for text in markup if "<" in text] == [], case


@pytest.mark.parametrize("plot", PLOTS)
def test_figure_of_the_example_turns_dark_by_its_template_alone(plot: str) -> None:
    light, dark = (PLOTS[plot](example_table(), theme=theme) for theme in ("light", "dark"))
    assert light.data
    assert light.layout.title.text
    assert light.layout.template != dark.layout.template
    assert light.update_layout(template=dark.layout.template) == dark


def test_unknown_theme_objective_or_parameter_says_which_there_are() -> None:
    with pytest.raises(ValueError, match="no theme 'sepia': light or dark"):
        figures.plot_history(example_table(), theme="sepia")  # type: ignore[arg-type]
    with pytest.raises(KeyError, match=r"no metric 'acc': \['loss', 'seconds'\]"):
        figures.plot_history(example_table(), "acc")
    with pytest.raises(KeyError, match=r"no objective 'acc': \['loss', 'seconds'\]"):
        figures.plot_edf(example_table(), "acc")
    with pytest.raises(KeyError, match="no parameter 'z'"):
        figures.plot_contour(example_table(), "lr", "z")
    with pytest.raises(ValueError, match="two parameters"):
        figures.plot_contour(example_table(), "lr", "lr")


def test_history_draws_the_best_so_far_both_ways() -> None:
    figure = figures.plot_history(table([trial(n) for n in range(5)]))
    best = [list(trace.y) for trace in figure.data if trace.name == "best so far"]
    assert best == [[0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 2.0, 3.0, 4.0]]
    results = [list(trace.y) for trace in figure.data if trace.name == "succeeded"]
    assert results[0] == [0.0, 5.0, 3.0, 1.0, 6.0]


def test_history_marks_what_has_no_place() -> None:
    trials = [trial(0), trial(1, "FAILED", values={}), trial(2, values={"default": math.inf})]
    names = [trace.name for trace in figures.plot_history(table(trials), "default").data]
    assert names == ["succeeded", "best so far", "failed", "no finite result"]


def test_history_marks_where_the_code_changed_and_the_pointer_shows_which_code_it_was() -> None:
    goals = [Objective(name="loss"), Objective(name="ms")]
    trials = [
        TrialRecord(n, "SUCCEEDED", {"x": n}, {"loss": n, "ms": n}, code="0a" if n < 2 else "1b")
        for n in range(4)
    ]
    changed = {2: "<b>.py from trial 2 on"}
    figure = figures.plot_history(ExperimentTable.of("demo", goals, trials, code_changes=changed))
    lines = [trace for trace in figure.data if trace.name == "code changed"]
    assert [(line.x, line.y, line.showlegend) for line in lines] == [
        ((1.5, 1.5, None), (0, 1, None), True),
        ((1.5, 1.5, None), (0, 1, None), False),
    ]
    assert lines[0].text[0] == "code changed: &lt;b&gt;.py from trial 2 on"
    assert ["code: 0a" in text for text in figure.data[0].text] == [True, True, False, False]
    figure = figures.plot_history(ExperimentTable.of("demo", goals, trials))
    assert "code" not in str(figure)


def test_lines_below_a_figure_are_as_wide_as_a_phone() -> None:
    figure = figures.plot_contour(example_table(), "lr", "dropout")
    note(figure, "a word " * 20)
    lines = figure.layout.annotations[-1].text.split("<br>")
    assert len(lines) > 2
    assert max(map(len, lines)) <= 50
    assert figure.layout.margin.b == 66 + 18 * len(lines)


def test_history_is_logarithmic_when_results_lie_far_apart() -> None:
    trials = [trial(n, values={"default": 10.0**-n}) for n in range(6)]
    assert figures.plot_history(table(trials), "default").layout.yaxis.type == "log"


def test_one_result_far_off_does_not_flatten_the_others() -> None:
    trials = [trial(n, values={"default": 1.0 + n / 10}) for n in range(9)]
    trials.append(trial(9, values={"default": 500.0}))
    low, high = figures.plot_history(table(trials), "default").layout.yaxis.range
    assert 0.5 < low < 1.0
    assert 1.8 < high < 3.0


def test_axis_says_how_many_results_it_leaves_out() -> None:
    trials = [trial(n, values={"default": 1.0 + n / 10}) for n in range(9)]
    far = [trial(n, values={"default": 500.0 + n}) for n in (9, 10)]
    title = figures.plot_history(table(trials + far), "default").layout.yaxis.title.text
    assert title == "result (lower is better; 2 outside)"
    assert "outside" not in figures.plot_history(table(trials), "default").layout.yaxis.title.text


def test_front_is_drawn_however_bad_one_objective_of_it_is() -> None:
    trials = [trial(n, values={"default": -1.0 + n / 10, "size": 1.0 + n / 10}) for n in range(9)]
    trials.append(trial(9, values={"default": 500.0, "size": 9.0}))  # the largest: nothing dominates it
    trials.append(trial(10, values={"default": 900.0, "size": 0.0}))
    figure = figures.plot_pareto(table(trials))
    low, high = figure.layout.xaxis.range
    assert low < -1.0
    assert 500.0 < high < 900.0
    assert "1 outside" in figure.layout.xaxis.title.text


def test_overview_draws_the_front_among_many_results() -> None:
    from pitchpipe.server.pages.figure_view import progress_figure

    values = [float(n % 3) - 1.0 for n in range(3000)]
    values[1000], values[1007] = 700.0, 500.0
    history = [HistoryEntry(n, 1e9 + n, value, -1.0) for n, value in enumerate(values)]
    volumes = [VolumeEntry(n, 1e9 + n, float(n)) for n in (1003, 1007)]
    front = ParetoFront(trials=[1003, 1007], history=volumes, infeasible=[], limits={})
    figure = progress_figure(history, Objective(), front=front)
    assert {1003, 1007} <= set(figure.data[0].customdata)
    assert 500.0 < figure.layout.yaxis.range[1] < 700.0
    assert "1 outside" in figure.layout.yaxis.title.text
    assert (figure.data[1].name, list(figure.data[1].y)) == ("hypervolume", [1003.0, 1007.0])


def test_overview_has_a_corner_where_the_best_changed() -> None:
    from pitchpipe.server.pages.figure_view import progress_figure

    best = [None, 3.0, 3.0, 1.0, 1.0]
    history = [HistoryEntry(n, 1e9 + n, 5.0, one) for n, one in enumerate(best)]
    line = progress_figure(history, Objective()).data[1]
    assert (list(line.customdata), list(line.y)) == ([1, 3, 4], [3.0, 1.0, 1.0])


def test_trials_that_violate_a_limit_are_neither_best_nor_on_the_front() -> None:
    trials = [trial(n, values={"default": n, "size": n**0.5, "ms": 30.0 - n}) for n in range(5)]
    limited = table(trials, limits=[Objective(name="ms", direction=None, at_most=28.0)])
    kept, broken, best = figures.plot_history(limited, "default").data
    assert [(one.name, list(one.x)) for one in (kept, broken)] == [
        ("succeeded", [2, 3, 4]),
        ("violates a limit", [0, 1]),
    ]
    assert (list(best.x), list(best.y)) == ([2, 3, 4], [2.0, 2.0, 2.0])
    drawn = {one.name: len(one.x) for one in figures.plot_pareto(limited).data}
    assert drawn == {"violates a limit": 2, "on the front": 2, "knee": 1}


@pytest.mark.parametrize("values", [[1e308, -1e308, 1.0], [1.7e308] * 3, [5e-324, 0.0, 1e-308]])
def test_overview_survives_results_at_the_ends_of_floats(values: list[float]) -> None:
    from pitchpipe.server.pages.figure_view import progress_figure

    history = [HistoryEntry(n, 1e9 + n, values[n % 3], values[0]) for n in range(30)]
    json.loads(progress_figure(history, Objective()).to_json(), parse_constant=pytest.fail)


def test_hover_has_number_result_and_parameters_escaped() -> None:
    figure = figures.plot_history(table([trial(3, parameters={"<lr>": 0.12345678, "act": "a&b"})]), "default")
    (text,) = figure.data[0].text
    for part in ("trial 3", "result: <b>1</b>", "size: <b>3</b>", "&lt;lr&gt; = 0.123457", "act = a&amp;b"):
        assert part in text


def test_curves_grey_what_was_stopped_and_raise_the_best() -> None:
    trials = [trial(0), trial(1, "EARLY_STOPPED", values={}), trial(2, values={"default": 0.5})]
    curves = [Curve(n, [0, 1, 2], [3.0, 2.0, 1.0 + n]) for n in range(3)]
    figure = figures.plot_curves(table(trials, curves=curves))
    by_name = {trace.name: trace for trace in figure.data}
    assert list(by_name) == ["stopped early", "top 10", "best: trial 0"]
    assert by_name["stopped early"].line.dash == "dot"
    assert by_name["best: trial 0"].line.width > by_name["top 10"].line.width
    assert by_name["top 10"].meta == 2


def test_results_outside_the_axis_are_shown_on_request_and_logarithms_too() -> None:
    trials = [trial(n, values={"default": 1.0 + n % 3}) for n in range(30)]
    trials.append(trial(30, values={"default": 900.0}))
    for draw in (figures.plot_history, figures.plot_slice):
        axis = draw(table(trials), "default").layout.yaxis
        assert "1 outside" in axis.title.text
        assert axis.range[1] < 900.0
        assert draw(table(trials), "default", show_all=True).layout.yaxis.range[1] > 900.0
        assert draw(table(trials), "default", log=True).layout.yaxis.type == "log"
        assert draw(table(trials), "default", log=False).layout.yaxis.type == "linear"


def test_curves_are_smoothed_without_a_pull_to_zero() -> None:
    curves = [Curve(0, [0, 1, 2, 3], [4.0, 2.0, 4.0, 2.0])]
    figure = figures.plot_curves(table([trial(0)], curves=curves), smoothing=0.9)
    assert figure.data[0].y[0] == 4.0
    assert np.ptp(figure.data[0].y[1:]) < 0.5
    with pytest.raises(ValueError, match="at least 0 and less than 1"):
        figures.plot_curves(table([trial(0)], curves=curves), smoothing=1.0)


def test_very_many_results_become_a_small_figure() -> None:
    trials = [trial(n, values={"default": float(n)}, parameters={"x": n}) for n in range(2_000)]
    steps = np.arange(500.0)
    curves = [Curve(n, steps, np.cos(steps / (n + 1))) for n in range(2_000)]
    figure = figures.plot_curves(table(trials, curves=curves))
    assert sum(len(trace.x) for trace in figure.data) <= 20_000
    assert len(figure.data) == 200
    assert "200 of 2,000 trials" in figure.layout.annotations[0].text
    assert len(figure.to_json()) < 1_500_000


@pytest.fixture(scope="module")
def thousands() -> ExperimentTable:
    draws = np.random.default_rng(0).random((5_000, 3)).tolist()
    return table(
        [
            trial(n, values={"default": x + y}, parameters={"x": x, "y": y, "z": z}, worker=f"w{n % 8}")
            for n, (x, y, z) in enumerate(draws)
        ]
    )


@pytest.mark.parametrize("plot", ["history", "parallel", "slice", "timeline", "edf", "contour"])
def test_figure_of_thousands_of_trials_is_small(plot: str, thousands: ExperimentTable) -> None:
    assert len(PLOTS[plot](thousands).to_json()) < 600_000


@cache
def ten_thousands(count: int) -> ExperimentTable:
    """Return a table of so many trials, of which three failed; worker w1 pauses for a tenth of the time."""
    draws = np.random.default_rng(0).random((count, 2)).tolist()
    pause = [0.1 * count * (n % 8 == 1 and n > count // 2) for n in range(count)]
    return table(
        [
            trial(
                n,
                "FAILED" if n in (71, 5_003, 9_010) else "SUCCEEDED",
                values={"default": (x - 0.3) ** 2 + y, "size": x - y},
                parameters={"x": x, "y": y},
                worker=f"w{n % 8}",
                start_time=1e9 + n + pause[n],
                end_time=1e9 + n + pause[n] + 7.9,
            )
            for n, (x, y) in enumerate(draws)
        ]
    )


def results_of(count: int) -> Any:
    x, y = np.random.default_rng(0).random((count, 2)).T
    return np.delete((x - 0.3) ** 2 + y, [71, 5_003, 9_010])


@pytest.mark.parametrize("plot", [name for name in PLOTS if name != "curves"])
def test_figure_of_any_number_of_trials_has_a_fixed_number_of_points(plot: str) -> None:
    points = []
    for count in (12_000, 24_000):
        figure = PLOTS[plot](ten_thousands(count))
        points.append(sum(len(x) for trace in figure.data if (x := getattr(trace, "x", None)) is not None))
        assert len(figure.to_json()) < 700_000
    assert points[1] <= 1.05 * points[0] + 100 <= 15_000


def test_history_of_many_trials_shows_what_all_of_them_show() -> None:
    figure = figures.plot_history(ten_thousands(12_000), "default")
    drawn = {trace.name: trace for trace in figure.data}
    values = results_of(12_000)
    assert list(drawn["failed"].customdata) == [71, 5_003, 9_010]
    assert (min(drawn["succeeded"].y), max(drawn["succeeded"].y)) == (values.min(), values.max())
    assert sorted(drawn["succeeded"].y)[:100] == sorted(values)[:100]
    steps = np.delete(np.arange(12_000), [71, 5_003, 9_010])
    line = drawn["best so far"]
    assert np.array_equal(
        np.minimum.accumulate(values), line.y[np.searchsorted(line.x, steps, side="right") - 1]
    )
    assert line.x[-1] == 11_999
    assert "of 12,000 trials are shown" in figure.layout.annotations[0].text


def test_distribution_of_many_trials_is_that_of_all() -> None:
    share = figures.plot_edf(ten_thousands(12_000)).data[0]
    values = np.sort(results_of(12_000))
    for level in (0.01, 0.25, 0.5, 0.9):
        x = values[int(level * len(values))]
        drawn = share.y[np.searchsorted(share.x, x, side="right") - 1]
        assert drawn == pytest.approx(level, abs=0.001)
    assert len(share.x) <= 2_010


def test_front_of_many_trials_is_that_of_all() -> None:
    drawn = {trace.name: trace for trace in figures.plot_pareto(ten_thousands(12_000)).data}
    x, y = np.delete(np.random.default_rng(0).random((12_000, 2)), [71, 5_003, 9_010], axis=0).T
    best, found = -math.inf, []
    for loss, size in sorted(zip((x - 0.3) ** 2 + y, x - y, strict=True), key=lambda one: (one[0], -one[1])):
        if size > best:
            best = size
            found.append(loss)
    assert sorted([*drawn["on the front"].x, *drawn["knee"].x]) == found


def test_timeline_of_many_trials_shows_who_worked_when() -> None:
    made = ten_thousands(12_000)
    figure = figures.plot_timeline(made)
    busy = sorted(
        (one.start, one.end or 0.0) for one in made.spans if one.worker == "w1" and one.status == "SUCCEEDED"
    )
    gaps = [start - end for (_, end), (start, _) in pairwise(busy)]
    assert max(gaps) == pytest.approx(0.1 * 12_000, abs=20)
    assert sorted(gaps)[-2] < 12
    assert sum(one.count for one in made.spans) == 12_000
    assert {trace.name for trace in figure.data} == {"new best", "succeeded", "failed"}
    bests = next(trace for trace in figure.data if trace.name == "new best")
    values = np.where(np.isin(np.arange(12_000), [71, 5_003, 9_010]), np.inf, 0.0)
    x, y = np.random.default_rng(0).random((12_000, 2)).T
    best = np.minimum.accumulate(values + (x - 0.3) ** 2 + y)
    assert len(set(bests.customdata)) == len(set(best.tolist()))
    assert "12,000 attempts are drawn as" in figure.layout.annotations[0].text


def test_parallel_has_an_axis_for_each_nested_parameter() -> None:
    figure = figures.plot_parallel(example_table(), "loss")
    axes = {axis.label: axis for axis in figure.data[0].dimensions}
    assert list(axes)[-1] == "loss"
    momentum, optimizer = axes["optimizer.momentum"], axes["optimizer"]
    assert momentum.ticktext[0] == "not chosen"
    inactive = np.asarray(momentum.values) == momentum.tickvals[0]
    assert (inactive == (np.asarray(optimizer.values) == 0)).all()  # adam has no momentum
    assert inactive.any()
    assert list(axes["lr"].ticktext) == ["1e-05", "0.0001", "0.001", "0.01", "0.1"]


def test_slice_has_logarithmic_axes_and_leaves_out_the_inactive() -> None:
    figure = figures.plot_slice(example_table(), "loss", parameters=["lr", "optimizer.momentum"])
    assert figure.layout.xaxis.type == "log"
    with_it = [
        one for one in example_table().finished("loss")[0] if "momentum" in one.parameters["optimizer"]
    ]
    assert len(next(one for one in figure.data if one.xaxis == "x2").x) == len(with_it)


def test_long_options_are_shorter_where_there_is_room_for_few() -> None:
    options = ["relu", "a_rather_long_activation"]
    space = {"f": {"_type": "choice", "_value": options}, "x": {"_type": "uniform", "_value": [0, 1]}}
    trials = [
        trial(n, parameters={"f": options[n % 2], "x": n / 8}, values={"default": float(n)}) for n in range(8)
    ]
    made = table(trials, dimensions=dimensions_of(space))
    assert figures.plot_slice(made).layout.xaxis.ticktext == ("relu", "a_ra…ation")
    assert figures.plot_contour(made, "f", "x").layout.xaxis.ticktext == ("relu", "a_rather…ctivation")


def test_options_and_names_that_differ_in_the_middle_are_told_apart() -> None:
    options = [
        f"/data/projects/vision/{model}/best_model_state_dict.pt" for model in ("resnet50", "resnet34")
    ]
    names = [f"encoder.transformer.{layer}.attention.dropout" for layer in ("first", "last")]
    space = {
        names[0]: {"_type": "choice", "_value": options},
        names[1]: {"_type": "uniform", "_value": [0, 1]},
    }
    trials = [
        trial(n, parameters={names[0]: options[n % 2], names[1]: n / 8}, values={"default": float(n)})
        for n in range(8)
    ]
    made = table(trials, dimensions=dimensions_of(space))
    contour = figures.plot_contour(made, *names)
    axis, other = contour.layout.xaxis, contour.layout.yaxis
    assert (list(axis.ticktext), axis.title.text, other.title.text) == (options, *names)
    (parallel, *_) = figures.plot_parallel(made).data[0].dimensions
    assert list(parallel.ticktext) == options
    hovers = [
        text for trace in figures.plot_slice(made).data if trace.text is not None for text in trace.text
    ]
    assert {option for option in options if any(option in text for text in hovers)} == set(options)


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (16, 256, ["16", "20", "50", "100", "200", "256"]),
        (8, 512, ["8", "20", "50", "100", "200", "512"]),
        (2, 5, ["2", "5"]),
        (1e-5, 0.1, ["1e-05", "0.0001", "0.001", "0.01", "0.1"]),
    ],
)
def test_logarithmic_axes_have_whole_numbers(low: float, high: float, ticks: list[str]) -> None:
    space = {"n": {"_type": "loguniform", "_value": [low, high]}, "x": {"_type": "uniform", "_value": [0, 1]}}
    trials = [trial(n, parameters={"n": low * (high / low) ** (n / 8), "x": n / 8}) for n in range(9)]
    made = table(trials, dimensions=dimensions_of(space))
    assert list(figures.plot_parallel(made, parameters=["n"]).data[0].dimensions[0].ticktext) == ticks
    for axis in (
        figures.plot_contour(made, "n", "x").layout.xaxis,
        figures.plot_slice(made, parameters=["n"]).layout.xaxis,
    ):
        # With a format of its own, plotly writes the whole number at each tick.
        assert (axis.type, axis.tickformat) == ("log", ".6~g")
        assert (axis.dtick == "D2") == (10 <= high / low < 100)


def test_contour_starts_with_what_matters_most() -> None:
    draws = np.random.default_rng(0).random((60, 3)).tolist()
    trials = [
        trial(n, parameters=dict(zip("abc", row, strict=True)), values={"default": 9 * row[2] + 3 * row[1]})
        for n, row in enumerate(draws)
    ]
    space = {name: {"_type": "uniform", "_value": [0, 1]} for name in "abc"}
    made = table(trials, dimensions=dimensions_of(space))
    assert figures.contour_axes(made, "default") == ("c", "b")
    assert figures.plot_contour(made, objective="default").layout.title.text == "Contour: c and b"
    assert figures.plot_contour(made, y="a", objective="default").layout.title.text == "Contour: c and a"
    alone = table(trials, dimensions=dimensions_of({"a": space["a"]}))
    why = figures.plot_contour(alone).layout.annotations[0].text
    assert why == "A contour needs two parameters that vary."


def test_contour_clips_what_would_flatten_the_others() -> None:
    draws = np.random.default_rng(0).random((60, 2)).tolist()
    values = [-1.0 + x for x, _ in draws[:-1]] + [500.0]
    trials = [
        trial(n, parameters={"x": x, "y": y}, values={"default": value})
        for n, ((x, y), value) in enumerate(zip(draws, values, strict=True))
    ]
    made = table(trials)
    clipped = figures.plot_contour(made, "x", "y", "default")
    assert np.nanmax(np.asarray(clipped.data[0].z, dtype=float)) < 0.0
    title = clipped.layout.coloraxis.colorbar.title.text
    assert title == "result (lower is better; 1 outside)"
    every = figures.plot_contour(made, "x", "y", "default", show_all=True)
    assert np.nanmax(np.asarray(every.data[0].z, dtype=float)) > 10.0


def test_contour_finds_the_valley_and_leaves_the_unknown_blank() -> None:
    draws = np.random.default_rng(0).random((80, 2)) * [1.0, 0.4]
    trials = [
        trial(n, parameters={"x": x, "y": y}, values={"default": (x - 0.3) ** 2})
        for n, (x, y) in enumerate(draws.tolist())
    ]
    space = {name: {"_type": "uniform", "_value": [0, 1]} for name in "xy"}
    surface = figures.plot_contour(table(trials, dimensions=dimensions_of(space)), "x", "y").data[0]
    assert surface.opacity is None  # it has the colours of its bar
    heights = np.asarray(surface.z, dtype=float)
    lowest = np.nanargmin(heights) % heights.shape[1]
    assert abs(surface.x[lowest] - 0.3) < 0.12
    assert np.isnan(heights[-1]).all()


@pytest.mark.parametrize(("count", "trials"), [(2, 12), (4, 60), (8, 300), (30, 300)])
@pytest.mark.parametrize("is_up", [False, True])
def test_contour_gives_each_option_the_mean_of_its_own_trials(count: int, trials: int, is_up: bool) -> None:
    rng = np.random.default_rng(0)
    picks = [*range(count), *rng.integers(count, size=trials - count).tolist()]
    names = [f"option {place}" for place in range(count)]
    records = [
        trial(
            number,
            parameters={"act": names[pick], "x": float(rng.random()), "other": names[number % 2]},
            values={"default": 100.0 * (pick == count // 2)},
        )
        for number, pick in enumerate(picks)
    ]
    act = {"_type": "choice", "_value": names}
    space = {"act": act, "x": {"_type": "uniform", "_value": [0, 1]}, "other": act}
    made = table(records, dimensions=dimensions_of(space))
    for other in ("x", "other"):
        axes = (other, "act") if is_up else ("act", other)
        heights = np.asarray(figures.plot_contour(made, *axes).data[0].z, dtype=float)
        columns = heights.T if not is_up else heights
        for place, column in enumerate(columns):
            known = column[np.isfinite(column)]
            assert known.size
            assert known == pytest.approx(100.0 * (place == count // 2))


def test_pareto_says_how_many_trials_have_no_place() -> None:
    results = [(1.0, 2.0), (2.0, 1.0), (-math.inf, 5.0), (0.5, math.inf)]
    trials = [trial(n, values={"default": a, "size": b}) for n, (a, b) in enumerate(results)]
    trials.append(trial(4, "FAILED", values={}))
    texts = [one.text for one in figures.plot_pareto(table(trials)).layout.annotations]
    assert [text.partition(" ")[0] for text in texts] == ["2"]
    assert not figures.plot_pareto(table(trials[:2])).layout.annotations


def test_timeline_draws_every_attempt_where_it_ran() -> None:
    trials = [trial(0, worker="b"), trial(1, "RUNNING", values={}, worker="a", end_time=None)]
    spans = [Span(number=0, worker="a", start=1e9 - 9, end=1e9 - 2, status="FAILED")]
    figure = figures.plot_timeline(table(trials, spans=spans, now=1e9 + 11))
    bars = {trace.name: (list(trace.y), [float(one) for one in trace.x]) for trace in figure.data}
    assert bars == {
        "new best": (["b"], [1500.0]),
        "failed": (["a"], [7000.0]),
        "running": (["a"], [10_000.0]),
    }


def test_timeline_marks_results_better_than_all_before() -> None:
    values = [3.0, 5.0, 2.0, 2.0, 1.0]
    trials = [trial(n, values={"default": value}, end_time=1e9 - n) for n, value in enumerate(values)]
    marked = {trace.name: trace.customdata.tolist() for trace in figures.plot_timeline(table(trials)).data}
    assert marked == {"new best": [4], "succeeded": [0, 1, 2, 3]}
    trials = [trial(n, values={"default": value}, end_time=1e9 + n) for n, value in enumerate(values)]
    marked = {trace.name: trace.customdata.tolist() for trace in figures.plot_timeline(table(trials)).data}
    assert marked == {"new best": [0, 2, 4], "succeeded": [1, 3]}


def test_pareto_of_three_objectives_has_a_panel_for_each_pair() -> None:
    objectives = [Objective(name="a"), Objective(name="b"), Objective(name="c", direction="maximize")]
    values = [(1.0, 1.0, 0.0), (2.0, 2.0, 5.0), (3.0, 3.0, 1.0)]
    trials = [
        TrialRecord(number=n, status="SUCCEEDED", parameters={}, values=dict(zip("abc", row, strict=True)))
        for n, row in enumerate(values)
    ]
    figure = figures.plot_pareto(ExperimentTable.of("one", objectives, trials))
    assert len(figure.data) == 6
    assert sorted(set(figure.data[1].x)) == [1.0, 2.0]
    assert len({axis.domain for axis in figure.select_xaxes()}) == 3
    narrow = figures.plot_pareto(ExperimentTable.of("one", objectives, trials), columns=1)
    assert {axis.domain for axis in narrow.select_xaxes()} == {(0.0, 1.0)}


def test_edf_tells_experiments_of_one_name_apart() -> None:
    tables = [replace(figures.example_table(seed=seed), experiment_id=f"id{seed}") for seed in (1, 2)]
    assert [trace.name for trace in figures.plot_edf(tables).data if trace.showlegend] == [
        "example id1 (47)",
        "example id2 (44)",
    ]


def test_edf_compares_experiments_by_how_often_and_how_soon_they_are_good() -> None:
    good = table([trial(n, values={"default": float(n)}) for n in range(4)])
    bad = table([trial(n, values={"default": float(n + 4)}) for n in range(2)])
    first, best, second, _ = figures.plot_edf([good, bad]).data
    assert list(best.y) == [0.0] * 4
    assert list(first.x) == [0.0, 0.0, 1.0, 2.0, 3.0, 5.0]
    assert list(first.y) == [0.0, 0.25, 0.5, 0.75, 1.0, 1.0]
    assert list(second.y) == [0.0, 0.5, 1.0, 1.0]
    assert (first.line.color, first.line.dash) != (second.line.color, second.line.dash)


def test_edf_and_overview_count_the_trials_that_got_no_result() -> None:
    ends = ["EARLY_STOPPED", "SUCCEEDED", "FAILED", "SUCCEEDED", "EARLY_STOPPED", "RUNNING"]
    trials = [trial(n, status, values={"default": 9.0 - n}) for n, status in enumerate(ends)]
    _, best = figures.plot_edf(table(trials)).data
    assert (list(best.x), list(best.y)) == ([2, 4, 5], [8.0, 6.0, 6.0])


def test_overview_has_open_circles_for_stopped_trials_and_counts_them() -> None:
    from pitchpipe.server.pages.figure_view import StoppedTrial, progress_figure

    history = [HistoryEntry(1, 11.0, 8.0, 8.0), HistoryEntry(3, 13.0, 6.0, 6.0)]
    ends, stopped = [10.0, 11.0, 12.0, 13.0, 14.0], [StoppedTrial(0, 10.0, 9.5), StoppedTrial(4, 14.0, 7.0)]
    figure = progress_figure(history, Objective(), by="trials", ends=ends, stopped=stopped)
    results, circles, best = figure.data
    assert (list(results.x), list(circles.x), list(circles.y)) == ([2, 4], [1, 5], [9.5, 7.0])
    assert (list(best.x), list(best.y)) == ([2, 4, 5], [8.0, 6.0, 6.0])
    assert circles.marker.symbol == "circle-open"
    assert circles.marker.size < results.marker.size  # its edge lies outside
    assert figure.layout.yaxis.range[1] > 9.5


def test_edf_leaves_out_experiments_that_go_for_something_else_and_names_them() -> None:
    trials = [trial(n, values={"default": float(n)}) for n in range(4)]
    here = table(trials)
    there = ExperimentTable.of("elsewhere", [Objective(direction="maximize")], trials)
    figure = figures.plot_edf([here, there])
    assert len(figure.data) == len(figures.plot_edf(here).data)
    assert "left out, since not to minimize default: elsewhere" in [
        one.text for one in figure.layout.annotations
    ]
    assert not figures.plot_edf(here).layout.annotations


def test_drawing_is_what_imports_plotly() -> None:
    code = "import sys, pitchpipe.server.figures as f; f.example_table(3); print('plotly' in sys.modules)"
    shown = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "False"
