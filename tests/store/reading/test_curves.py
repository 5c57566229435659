"""Intermediate results: since a cursor, and thinned out."""

from __future__ import annotations

from pathlib import Path

import pytest

from pitchpipe.store.reading.json_values import numbers_in
from pitchpipe.store.reading.trial_query import QueryError
from pitchpipe.store.reading.view import ExperimentView

from ...stored import MadeExperiment, a_trial, counted_steps, results


def test_results_come_once_with_a_cursor(made: MadeExperiment, view: ExperimentView) -> None:
    trial = a_trial(0, "RUNNING")
    made.commit(trial, metrics=results(trial, [1.0, 2.0, 3.0]))
    first = view.metrics(0, limit=2)
    second = view.metrics(0, first.cursor)
    assert [row.value for row in first.results + second.results] == [1.0, 2.0, 3.0]
    assert (first.has_more, second.has_more) == (True, False)
    made.commit(trial, metrics=results(trial, [4.0], first=3))
    assert [row.sequence for row in view.metrics(0, second.cursor).results] == [3]
    with pytest.raises(QueryError):
        view.metrics(0, "nonsense")


def test_results_that_a_later_attempt_reports_again_replace_the_earlier(
    made: MadeExperiment, view: ExperimentView
) -> None:
    trial = a_trial(0, "RUNNING")
    made.commit(trial, metrics=results(trial, [1.0, 2.0, 3.0]))
    seen = view.metrics(0)
    trial.attempt, trial.next_sequence = 2, 1
    made.commit(trial, superseded=[(0, 1, 1)])
    rewound = view.metrics(0, seen.cursor)
    assert (rewound.keep_below, rewound.results) == (1, [])
    made.commit(trial, metrics=results(trial, [20.0, 30.0, 40.0], first=1, attempt=2))
    again = view.metrics(0, seen.cursor)
    assert (again.keep_below, [row.value for row in again.results]) == (1, [20.0, 30.0, 40.0])
    assert view.metrics(0, again.cursor).results == []
    assert view.curve(0).values == [1.0, 20.0, 30.0, 40.0]


def test_thinning_keeps_the_spikes_and_the_ends(made: MadeExperiment, view: ExperimentView) -> None:
    trial = a_trial(0, "RUNNING")
    values = [1.0] * 1000
    values[0], values[500], values[501], values[999] = 0.5, 99.0, -99.0, 0.7
    made.commit(trial, metrics=results(trial, values))
    curve = view.curve(0, points=20)
    assert len(curve.sequences) <= 24
    assert {0, 500, 501, 999} <= set(curve.sequences)
    assert curve.total == 1000
    assert view.curve(0).values == values


def test_metric_of_reported_dicts_and_what_is_no_number(made: MadeExperiment, view: ExperimentView) -> None:
    trial = a_trial(0, "RUNNING")
    made.commit(trial, metrics=results(trial, [{"default": 1, "loss": 3}, 2.5, float("nan"), {"default": 4}]))
    assert view.curve(0).values == [1.0, 2.5, None, 4.0]
    assert view.curve(0, "loss").values == [3.0, None, None, None]
    assert [curve.total for curve in view.curves([0, 7])] == [4, 0]


def test_step_has_the_trials_that_reported_a_number_then(
    filled: MadeExperiment, view: ExperimentView
) -> None:
    assert view.step(0) == {3: 0.7, 4: 0.9}
    assert view.step(1) == {4: 0.8}
    assert view.step(1, "accuracy") == {4: 0.2}
    assert view.step(2) == {}


def test_results_are_those_of_one_trial_or_some(filled: MadeExperiment, view: ExperimentView) -> None:
    assert view.results_of([3]) == {3: {0: 0.7}}
    assert view.results_of([4, 2, 3, 99]).keys() == {3, 4}


def test_results_of_some_trials_cost_the_same_among_many(tmp_path: Path) -> None:
    costs = []
    for count in (700, 2_800):
        made = MadeExperiment(tmp_path / f"of-{count}")
        trials = [a_trial(number, value=0.5) for number in range(count)]
        made.commit(
            *trials, metrics=[row for trial in trials for row in results(trial, [0.5, trial.sequence_id])]
        )
        made.store.close()
        with counted_steps() as steps, ExperimentView(made.folder) as view:
            found = view.results_of(range(5, 605))
        assert found == {number: {0: 0.5, 1: number} for number in range(5, 605)}
        costs.append(len(steps))
    assert costs[1] <= costs[0] + 2


ODD = "a\"b'; DROP TABLE trials; --"


def test_curve_of_a_metric_with_any_name_and_of_nested_ones(
    made: MadeExperiment, view: ExperimentView
) -> None:
    trial = a_trial(0, "RUNNING")
    reports = [
        {"default": 1, "loss": {"train": 3.0}, "loss.val": 5.0, ODD: 6.0, "SELECT": True},
        {"default": 2, "loss": {"train": float("nan")}, "loss.val": "none"},
    ]
    made.commit(trial, metrics=results(trial, reports))
    for name, value in {"loss.train": 3.0, "loss.val": 5.0, ODD: 6.0, "SELECT": 1.0}.items():
        assert view.curve(0, name).values == [value, None], name
    assert view.curve(0, "loss").values == [None, None]
    found = numbers_in(reports[0])
    assert {name: view.curve(0, name).values[0] for name in found} == found


def test_latest_numbers_are_those_that_were_reported_last(made: MadeExperiment, view: ExperimentView) -> None:
    often, rarely, none = a_trial(0, "RUNNING"), a_trial(1, "EARLY_STOPPED"), a_trial(2, "RUNNING")
    metrics = results(often, [{"default": n, "acc": {"val": n / 2}, "note": "x"} for n in range(30)])
    rare = [{"default": 1.0, **({"val": float(n)} if n % 5 == 0 else {})} for n in range(23)]
    made.commit(often, rarely, none, metrics=[*metrics, *results(rarely, rare)])
    assert view.latest([0, 1, 2]) == {
        0: {"default": 29.0, "acc.val": 14.5},
        1: {"default": 1.0, "val": 20.0},
    }
    assert view.latest([0, 1, 2], 3) == {0: {"default": 3.0, "acc.val": 1.5}, 1: {"default": 1.0}}
    assert view.latest([0], 10**30) == {}
    assert view.latest([]) == {}


def test_latest_numbers_of_a_later_attempt_replace_the_earlier(
    made: MadeExperiment, view: ExperimentView
) -> None:
    trial = a_trial(0, "RUNNING")
    made.commit(trial, metrics=results(trial, [1.0, 2.0, {"default": 3.0, "old": 9.0}]))
    trial.attempt, trial.next_sequence = 2, 1
    made.commit(trial, superseded=[(0, 1, 1)])
    made.commit(trial, metrics=results(trial, [20.0], first=1, attempt=2))
    assert view.latest([0]) == {0: {"default": 20.0}}


def test_latest_numbers_cost_as_much_for_long_trials_as_for_short_ones(made: MadeExperiment) -> None:
    costs = []
    for number, count in enumerate((20, 2_000)):
        trial = a_trial(number, "RUNNING")
        made.commit(trial, metrics=results(trial, [1.0] * count))
        with counted_steps() as steps, ExperimentView(made.folder) as view:
            assert view.latest([number]) == {number: {"default": 1.0}}
        costs.append(len(steps))
    assert costs[1] <= costs[0] + 2
