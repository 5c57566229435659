"""Several objectives and limits: ranks, and one loss for each trial that follows them."""

from __future__ import annotations

import numpy as np
import pytest

from pitchpipe.protocol import MetricError, Objective
from pitchpipe.tuners.base.outcomes import Outcomes

COST = Objective(name="cost")
GAIN = Objective(name="gain", direction="maximize")
LATENCY = Objective(name="ms", direction=None, at_most=20.0)
SIZE = Objective(name="size", direction=None, at_most=1.0)


def ranked(objectives: list[Objective], *reports: tuple[float, ...]) -> list[int]:
    """Return the places of reports, best first; their numbers are in the order of the objectives."""
    outcomes = Outcomes(objectives)
    for row, report in enumerate(reports):
        assert outcomes.note(row, {one.name: value for one, value in zip(objectives, report, strict=True)})
    rows, losses = outcomes.ranking()
    return rows[np.argsort(losses, kind="stable")].tolist()


def test_feasible_trials_come_first_and_then_those_that_violate_least() -> None:
    assert ranked([COST, LATENCY], (1.0, 30.0), (9.0, 20.0), (0.0, 21.0), (5.0, 3.0)) == [3, 1, 2, 0]


def test_one_objective_keeps_its_scale_among_feasible_trials() -> None:
    outcomes = Outcomes([COST, LATENCY])
    for row, cost in enumerate((3.0, 7.0)):
        outcomes.note(row, {"cost": cost, "ms": 1.0})
    assert outcomes.ranking()[1].tolist() == [3.0, 7.0]


def test_violations_are_shares_of_their_limits() -> None:
    reports = [(0.0, 120.0, 1.0), (0.0, 220.0, 1.0), (0.0, 320.0, 1.0), (0.0, 20.0, 7.0)]
    assert ranked([COST, LATENCY, SIZE], *reports) == [0, 3, 1, 2]


def test_front_comes_first_and_its_extremes_before_its_middle() -> None:
    assert ranked([COST, GAIN], (2.0, 2.0), (1.0, 1.0), (3.0, 3.0), (3.0, 1.0)) == [1, 2, 0, 3]


def test_a_repeat_of_a_point_comes_after_the_other_points_of_its_front() -> None:
    assert ranked([COST, GAIN], (0.0, 0.0), (0.0, 0.0), (2.0, 2.0), (2.0, 2.0), (1.0, 1.0)) == [0, 2, 4, 1, 3]


def test_trial_leads_if_it_is_feasible_and_none_dominates_it() -> None:
    outcomes = Outcomes([COST, LATENCY])
    outcomes.note(0, {"cost": 1.0, "ms": 30.0})
    outcomes.note(1, {"cost": 2.0, "ms": 3.0})
    outcomes.note(2, {"cost": 4.0, "ms": 3.0})
    assert [outcomes.leads(row) for row in range(4)] == [False, True, False, False]


def test_trial_without_numbers_is_not_recorded_and_has_the_worst_of_the_others() -> None:
    outcomes = Outcomes([COST, LATENCY])
    assert outcomes.note(0, {"cost": 1.0, "ms": 30.0})
    assert not outcomes.note(1, {"cost": float("nan"), "ms": 3.0})
    with pytest.raises(MetricError, match="without 'ms'"):
        outcomes.note(2, {"cost": 1.0})
    losses, excesses = outcomes.tables(np.array([0, 1]))
    assert losses.tolist() == [[1.0], [1.0]]
    assert excesses.tolist() == [[10.0], [10.0]]


def test_what_an_intermediate_report_lacks_is_not_known() -> None:
    outcomes = Outcomes([COST, LATENCY])
    for report in ({"cost": 1.0}, {"cost": 1.0, "ms": None}):
        np.testing.assert_array_equal(outcomes.partial(report), [1.0, np.nan])


def test_later_result_replaces_the_first() -> None:
    outcomes = Outcomes([COST, LATENCY])
    outcomes.note(0, {"cost": 1.0, "ms": 30.0})
    outcomes.note(0, {"cost": 2.0, "ms": 3.0})
    assert outcomes.leads(0)
    assert not outcomes.note(0, {"cost": 2.0, "ms": float("inf")})
    assert 0 not in outcomes


def test_some_rows_are_ranked_among_themselves() -> None:
    outcomes = Outcomes([COST, GAIN])
    for row, (cost, gain) in enumerate([(0.0, 9.0), (2.0, 8.0), (1.0, 7.0)]):
        outcomes.note(row, {"cost": cost, "gain": gain})
    rows, losses = outcomes.ranking(np.array([2, 1]))
    assert rows.tolist() == [2, 1]
    assert losses.max() < 1  # both are on the front of the two
