"""The best trials, and how the best value came to be."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from pitchpipe.results import result_of
from pitchpipe.runner.trial import Trial
from pitchpipe.store.reading import Goal, QueryError, TrialQuery
from pitchpipe.store.reading.view import ExperimentView

from ...stored import MadeExperiment, a_trial, results

Viewing = Callable[..., ExperimentView]


def with_values(*values: tuple[float, ...]) -> list[Trial]:
    """Return a trial with each of these values of the objectives."""
    return [a_trial(number, final="{}", values=each) for number, each in enumerate(values)]


def test_best_of_several_objectives_is_the_front(view_of: Viewing) -> None:
    objectives = [{"name": "default", "direction": "minimize"}, {"name": "speed", "direction": "maximize"}]
    trials = with_values((1.0, 1.0), (2.0, 2.0), (2.0, 1.0), (1.0, 1.0), (3.0, 2.0))
    view = view_of(*trials, objectives=objectives)
    assert [trial.sequence_id for trial in view.best()] == [0, 3, 1]
    assert view.best()[2].values == {"default": 2.0, "speed": 2.0}


def test_history_has_the_best_so_far(filled: MadeExperiment, view: ExperimentView) -> None:
    assert [(row.sequence_id, row.best) for row in view.history()] == [(0, 0.5), (1, 0.1), (3, 0.1)]


def test_infinite_best_is_the_same_everywhere(view_of: Viewing) -> None:
    view = view_of(a_trial(0, value=math.inf), a_trial(1, value=-math.inf), a_trial(2, value=0.5))
    best = result_of(view.folder.path).best
    assert best is not None
    assert (best.sequence_id, best.value) == (1, -math.inf)  # type: ignore[union-attr]
    assert view.best()[0].value == -math.inf


OBJECTIVES = [
    {"name": "loss", "direction": "minimize", "reference": 5.0},
    {"name": "f1", "direction": "maximize"},
    {"name": "ms", "constraint": "<= 20"},
]


def test_front_keeps_the_limits_and_has_a_volume_and_a_knee(view_of: Viewing) -> None:
    values = [(4.0, 0.9, 5.0), (0.0, 1.0, 21.0), (2.0, 0.8, 20.0), (1.0, 0.1, 1.0), (4.5, 0.2, 1.0)]
    view = view_of(*with_values(*values), objectives=OBJECTIVES)
    found, summary = view.front(), view.summary()
    assert (found.trials, [one.sequence_id for one in view.best()]) == ([0, 2, 3], [3, 2, 0])
    for number, order, expected in ((5, "f1", [0, 2, 3]), (1, "loss", [3]), (1, "knee", [2])):
        assert [trial.sequence_id for trial in view.best(number, order)] == expected
    with pytest.raises(QueryError, match=r"'ms' is not an objective .*: use loss or f1 or knee"):
        view.best(1, "ms")
    assert (found.infeasible, found.knee, found.limits) == ([1], 2, {"ms": "<= 20"})
    assert found.reference == pytest.approx({"loss": 5.0, "f1": 0.02})
    # slices of loss: 5 to 4 by 0.88, 4 to 2 by 0.78, 2 to 1 by 0.08
    assert found.hypervolume == pytest.approx(0.88 + 2 * 0.78 + 0.08)
    assert [row.sequence_id for row in found.history] == [0, 2, 3]
    assert found.history[0].hypervolume == pytest.approx(0.88)
    assert summary.objectives == [Goal("loss", "minimize"), Goal("f1", "maximize")]
    assert (summary.outcome_limits, summary.closest) == ({"ms": "<= 20"}, None)


def test_best_of_one_objective_keeps_the_limits(view_of: Viewing) -> None:
    trials = with_values((0.1, 30.0), (0.5, 20.0), (0.4, 3.0), (0.2, 20.1))
    view = view_of(*trials, objectives=[OBJECTIVES[0], OBJECTIVES[2]])
    assert [trial.sequence_id for trial in view.best(3)] == [2, 1]
    assert view.best(1)[0].value == 0.4
    assert [row.best for row in view.history()] == [None, 0.5, 0.4, 0.4]
    assert view.front().infeasible == [3, 0]
    with pytest.raises(QueryError, match="use loss"):
        view.best(1, "knee")
    result = result_of(view.folder.path)
    assert result.best is not None
    assert (result.best.value, result.directions) == (0.4, {"loss": "minimize"})  # type: ignore[union-attr]


@pytest.mark.parametrize(("last", "order"), [(0.1, [2, 3, 1, 0]), (0.05, [3, 2, 1, 0])])
def test_closest_trial_is_named_while_none_keeps_the_limits(
    last: float, order: list[int], view_of: Viewing
) -> None:
    """Of two that are as close, the better, as in the table; of two that are as good, the earlier."""
    objectives = [OBJECTIVES[0], OBJECTIVES[2], {"name": "mb", "constraint": ">= 1"}]
    trials = with_values((0.1, 40.0, 1.0), (0.1, 5.0, 0.5), (0.1, 24.0, 0.9), (last, 24.0, 0.9))
    view = view_of(*trials, objectives=objectives)
    summary = view.summary()
    assert view.front().infeasible == order
    assert [trial.sequence_id for trial in view.trials(TrialQuery(sort="best")).trials] == order
    assert (summary.best, summary.closest) == ([], order[0])


def test_default_value_and_last_mean_the_main_objective(view_of: Viewing) -> None:
    trials = [a_trial(0, value=3.0), a_trial(1, value=2.0)]
    rows = results(trials[0], [{"loss": 4.0, "default": 9}, 3.5]) + results(trials[1], [{"loss": 1.5}])
    view = view_of(*trials, metrics=rows, objectives=OBJECTIVES[:1])
    page = [(row.sequence_id, row.value, row.last) for row in view.trials(TrialQuery(sort="value")).trials]
    assert page == [(1, 2.0, 1.5), (0, 3.0, 3.5)]
    assert view.curve(0).values == view.curve(0, "loss").values == [4.0, 3.5]
    assert view.step(0) == {0: 4.0, 1: 1.5}
    assert view.main_objective() == "loss"
