"""Rules that compare trials, with several objectives and with limits: against the definitions, written the slow way."""

from __future__ import annotations

import math
from typing import Any

import cloudpickle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pitchpipe.assessors import ASHAAssessor, AssessResult, HyperbandAssessor, MedianstopAssessor
from pitchpipe.assessors.outcomes import Outcome, OutcomeReader, Standing
from pitchpipe.protocol import MetricError, objectives_of

GOOD, BAD = AssessResult.Good, AssessResult.Bad
TWO = [{"name": "accuracy", "direction": "maximize"}, {"name": "ms", "direction": "minimize"}]
LIMITED = [{"name": "accuracy", "direction": "maximize"}, {"name": "ms", "constraint": "<= 20"}]
LOSSES = st.tuples(*[st.integers(0, 4).map(float)] * 3)
OUTCOMES = st.builds(Outcome, LOSSES, st.sampled_from([0.0, 0.0, 0.0, 0.5, 1.5, math.inf]))


def report(accuracy: float, ms: float) -> dict[str, float]:
    return {"accuracy": accuracy, "ms": ms}


def made(rule: Any, objectives: list[dict[str, Any]]) -> Any:
    rule.update_objectives(objectives)
    return rule


def dominates(a: Outcome, b: Outcome) -> bool:
    if a.violation or b.violation:
        return a.violation < b.violation
    return a != b and all(x <= y for x, y in zip(a.losses, b.losses, strict=True))


def ranks_of(outcomes: list[Outcome]) -> list[int]:
    """Return the fronts by their definition: one after the other is removed."""
    ranks: list[int | None] = [None] * len(outcomes)
    while None in ranks:
        left = [i for i, rank in enumerate(ranks) if rank is None]
        rank = 1 + max((each for each in ranks if each is not None), default=-1)
        for i in left:
            if not any(dominates(outcomes[j], outcomes[i]) for j in left):
                ranks[i] = rank
    return [rank for rank in ranks if rank is not None]


@settings(max_examples=40)
@given(st.lists(OUTCOMES, min_size=1, max_size=14), st.data())
def test_ranks_are_those_of_the_definition(outcomes: list[Outcome], data: st.DataObject) -> None:
    standing, kept = Standing(3), list[Outcome]()
    for outcome in outcomes:
        standing.add(outcome)
        kept.append(outcome)
        if len(kept) > 1 and data.draw(st.booleans()):
            standing.remove(kept.pop(data.draw(st.integers(0, len(kept) - 1))))
        ranks = ranks_of(kept)
        for one, rank in zip(kept, ranks, strict=True):
            assert standing.ahead(one) == sum(each < rank for each in ranks)
            mates = sum(each == rank for each in ranks)
            assert standing.ahead(one) <= standing.better(one) < standing.ahead(one) + mates
    assert len(standing) == len(kept)


def test_the_more_isolated_are_better_in_all_fronts_but_the_first() -> None:
    standing = Standing(2)
    line = [Outcome((x, 10.0 - x)) for x in (0.0, 1.0, 5.0, 9.0, 10.0)]
    for outcome in line:
        standing.add(outcome)
    assert [standing.better(outcome) for outcome in line] == [0] * 5
    standing.add(Outcome((-1.0, -1.0)))
    assert [standing.better(outcome) for outcome in line] == [1, 4, 3, 4, 1]


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=12))
def test_asha_with_one_useful_objective_judges_as_with_one(values: list[tuple[int, int]]) -> None:
    """An objective that is the same for all changes no verdict."""
    one, two = ASHAAssessor("maximize", eta=2), made(ASHAAssessor("maximize", eta=2), TWO)
    for i, value in enumerate(values):
        history = [float(each) for each in value]
        assert two.assess_trial(str(i), [report(each, 3.0) for each in history]) is one.assess_trial(
            str(i), history
        )


def test_asha_stops_dominated_trials_with_a_reason() -> None:
    rule = made(ASHAAssessor("maximize"), TWO)
    assert rule.assess_trial("exact", [report(0.9, 30.0)]) is GOOD
    assert rule.assess_trial("fast", [report(0.6, 5.0)]) is GOOD
    assert rule.assess_trial("neither", [report(0.5, 31.0)]) is BAD
    assert rule.reason == "accuracy 0.5, ms 31 is not among the best 1 of 3 after 1 result"


def test_hyperband_stops_dominated_trials() -> None:
    rule = made(HyperbandAssessor("maximize", R=3), TWO)
    assert rule.assess_trial("a", [report(0.9, 30.0)]) is GOOD
    assert rule.assess_trial("never judged", [report(0.1, 99.0)]) is GOOD
    assert rule.assess_trial("b", [report(0.8, 31.0)]) is BAD


def test_infeasible_follow_feasible_by_their_violation() -> None:
    rule = made(ASHAAssessor("maximize", eta=2), LIMITED)
    assert rule.assess_trial("far off", [report(0.9, 60.0)]) is GOOD  # alone
    assert rule.assess_trial("near", [report(0.1, 21.0)]) is GOOD
    assert rule.assess_trial("feasible", [report(0.2, 20.0)]) is GOOD
    assert rule.assess_trial("farther off", [report(0.99, 70.0)]) is BAD
    assert (rule.reason or "").startswith("accuracy 0.99 (a limit is broken) is not among the best 2 of 4")
    assert rule.assess_trial("feasible and better", [report(0.3, 1.0)]) is GOOD


def test_nan_in_one_objective_is_the_worst() -> None:
    rule = made(ASHAAssessor("maximize"), TWO)
    assert rule.assess_trial("a", [report(0.1, 90.0)]) is GOOD
    assert rule.assess_trial("diverged", [report(math.nan, 1.0)]) is BAD
    assert (rule.reason or "").startswith("no finite number is not among the best 1 of 2")


def test_an_objective_known_only_at_the_end_is_left_out() -> None:
    rule = made(ASHAAssessor("maximize"), TWO)
    assert rule.assess_trial("a", [{"accuracy": 0.9}]) is GOOD
    assert rule.assess_trial("b", [{"accuracy": 0.8}]) is BAD
    assert rule.reason == "accuracy 0.8 is not among the best 1 of 2 after 1 result"


def test_an_objective_that_some_lack_is_left_out_at_their_rung() -> None:
    rule = made(ASHAAssessor("maximize"), TWO)
    assert rule.assess_trial("exact", [report(0.9, 30.0)]) is GOOD
    assert rule.assess_trial("fast", [report(0.6, 5.0)]) is GOOD
    assert rule.assess_trial("unknown", [{"accuracy": 0.7}]) is BAD
    assert rule.assess_trial("faster", [report(0.5, 1.0)]) is BAD


def test_an_objective_that_is_reported_now_and_then_keeps_its_value() -> None:
    reader = OutcomeReader(objectives_of(TWO))
    history: list[Any] = [report(0.5, 7.0), {"accuracy": 0.6}, {"ms": 6.0}, {"accuracy": 0.7, "ms": None}]
    assert [reader.read(history, i) for i in range(4)] == [
        Outcome((-0.5, 7.0)),
        Outcome((-0.6, 7.0)),
        Outcome((-0.6, 6.0)),
        Outcome((-0.7, 6.0)),
    ]


@pytest.mark.parametrize("rule", [ASHAAssessor("maximize"), MedianstopAssessor("maximize")])
@pytest.mark.parametrize(
    ("value", "message"),
    [({"loss": 1.0}, "none of the objectives 'accuracy', 'ms'"), ({"accuracy": "x"}, "not a number")],
)
def test_a_report_that_cannot_be_compared_is_refused(rule: Any, value: Any, message: str) -> None:
    with pytest.raises(MetricError, match=message):
        made(rule, TWO).assess_trial("t", [value])


def test_a_new_attempt_replaces_the_outcomes_of_the_old_one() -> None:
    rule = made(ASHAAssessor("maximize", eta=2), TWO)
    rule.assess_trial("x", [report(0.9, 1.0), report(0.9, 1.0)])
    assert rule.assess_trial("x", [report(0.1, 9.0)]) is GOOD  # alone again
    assert rule.assess_trial("y", [report(0.2, 8.0)]) is GOOD  # the old outcome would dominate it


def finished(rule: Any, *reports: Any) -> Any:
    for i, one in enumerate(reports):
        rule.assess_trial(f"old{i}", [one] * 3)
        rule.trial_end(f"old{i}", True)
    return rule


def test_medianstop_stops_what_more_than_half_outrank() -> None:
    rule = finished(
        made(MedianstopAssessor("maximize"), TWO), report(0.9, 30.0), report(0.8, 20.0), report(0.1, 40.0)
    )
    assert rule.assess_trial("best", [report(0.95, 10.0)]) is GOOD
    assert rule.assess_trial("of the first front", [report(0.5, 10.0)]) is GOOD
    assert rule.assess_trial("of the second", [report(0.7, 50.0)]) is BAD
    assert rule.reason == "accuracy 0.7, ms 50 is ranked behind 2 of 3 trials after 1 result"


def test_medianstop_compares_the_best_of_each_objective_with_averages() -> None:
    rule = finished(made(MedianstopAssessor("maximize"), TWO), report(0.9, 30.0))
    history = [report(0.95, 50.0), report(0.1, 20.0)]
    assert rule.assess_trial("x", history[:1]) is GOOD
    assert rule.assess_trial("x", history) is GOOD
    assert rule.assess_trial("y", [report(0.8, 50.0), report(0.8, 31.0)]) is BAD


def test_medianstop_ranks_infeasible_trials_after_feasible_ones() -> None:
    rule = finished(made(MedianstopAssessor("maximize"), LIMITED), report(0.1, 10.0))
    assert rule.assess_trial("x", [report(0.9, 30.0)]) is BAD
    assert rule.reason == "accuracy 0.9 (a limit is broken) is ranked behind 1 of 1 trial after 1 result"
    assert rule.assess_trial("y", [report(0.2, 20.0)]) is GOOD


def test_medianstop_counts_nan_as_the_worst() -> None:
    rule = finished(made(MedianstopAssessor("maximize"), TWO), report(0.1, 90.0))
    assert rule.assess_trial("x", [report(0.9, math.nan)]) is BAD
    assert rule.assess_trial("x", [report(0.9, math.nan), report(0.9, 3.0)]) is GOOD


@pytest.mark.parametrize("rule", [ASHAAssessor("maximize", eta=2), MedianstopAssessor("maximize")])
def test_a_single_objective_is_read_by_its_name(rule: Any) -> None:
    made(rule, [{"name": "loss", "direction": "minimize"}])
    rule.assess_trial("good", [{"loss": 0.1, "default": 5.0}])
    rule.trial_end("good", True)
    assert rule.assess_trial("bad", [{"loss": 0.2, "default": 9.0}]) is BAD


@pytest.mark.parametrize("rule", [ASHAAssessor("maximize"), MedianstopAssessor("maximize")])
def test_a_pickled_rule_continues_as_the_original(rule: Any) -> None:
    finished(made(rule, TWO), report(0.9, 30.0), report(0.6, 5.0), report(0.5, 50.0))
    copy = cloudpickle.loads(cloudpickle.dumps(rule))
    for i, one in enumerate([report(0.7, 20.0), report(0.5, 31.0), {"accuracy": 0.95}]):
        assert copy.assess_trial(str(i), [one]) is rule.assess_trial(str(i), [one])
        assert copy.reason == rule.reason
