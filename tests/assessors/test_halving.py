"""Successive halving without waiting (ASHA), and Hyperband's brackets, against their definitions."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pitchpipe.assessors import ASHAAssessor, AssessResult, HyperbandAssessor

GOOD, BAD = AssessResult.Good, AssessResult.Bad
VALUES = st.integers(-20, 20).map(float)


@settings(max_examples=40)
@given(st.lists(st.lists(VALUES, min_size=1, max_size=10), max_size=14), st.sampled_from([2, 3, 4]))
def test_verdicts_are_those_of_the_definition(trials: list[list[float]], eta: int) -> None:
    """A trial continues from a rung if it is among the best 1 / eta of those that reached it, itself included."""
    rule = ASHAAssessor("minimize", eta=eta)
    seen: dict[int, list[float]] = {eta**k: [] for k in range(4)}
    for i, results in enumerate(trials):
        for n in range(1, len(results) + 1):
            expected = GOOD
            if n in seen:
                seen[n].append(results[n - 1])
                places = max(1, len(seen[n]) // eta)
                expected = GOOD if results[n - 1] <= sorted(seen[n])[places - 1] else BAD
            assert rule.assess_trial(f"t{i}", results[:n]) is expected
            assert (rule.reason is None) == (expected is GOOD)
            if expected is BAD:
                break
        rule.trial_end(f"t{i}", False)


def levels_of(rule: Any, trial: str, most: int = 100) -> list[int]:
    """Return after how many results a trial that falls behind all others is stopped."""
    rule.assess_trial("best", [1e9] * most)
    return [n for n in range(1, most + 1) if rule.assess_trial(trial, [-float(n)] * n) is BAD]


@pytest.mark.parametrize(
    ("arguments", "levels"),
    [
        ({}, [1, 3, 9, 27, 81]),
        ({"eta": 4}, [1, 4, 16, 64]),
        ({"reduction_factor": 4, "grace_period": 3}, [3, 12, 48]),
        ({"max_t": 27}, [1, 3, 9]),
        ({"eta": 1.5, "grace_period": 2, "max_t": 10}, [2, 3, 4, 7]),
    ],
)
def test_rungs_are_where_the_arguments_say(arguments: dict[str, Any], levels: list[int]) -> None:
    assert levels_of(ASHAAssessor("maximize", **arguments), "bad") == levels


def test_reason_has_the_numbers() -> None:
    rule = ASHAAssessor("minimize")
    for i in range(8):
        rule.assess_trial(f"t{i}", [1.0, 1.0, i / 10])
    assert rule.assess_trial("x", [1.0, 1.0, 0.75]) is BAD
    assert rule.reason == "0.75 is not among the best 3 of 9 after 3 results"


def test_equal_to_the_last_that_may_continue_continues() -> None:
    rule = ASHAAssessor("maximize", eta=2)
    assert [rule.assess_trial(f"t{i}", [0.5]) for i in range(5)] == [GOOD] * 5


def test_first_at_a_rung_do_not_continue_until_more_have_come() -> None:
    rule = ASHAAssessor("maximize", eta=2, min_competitors=3)
    assert rule.assess_trial("a", [0.9]) is BAD
    assert rule.reason == "0.9 is number 1 of the 3 that must come before any continues after 1 result"
    assert rule.assess_trial("b", [0.8]) is BAD
    assert rule.assess_trial("c", [0.7]) is BAD
    assert rule.reason == "0.7 is not among the best 1 of 3 after 1 result"
    assert rule.assess_trial("d", [0.8]) is GOOD
    assert rule.assess_trial("d", [0.8, 0.9]) is BAD  # the first at the next rung


def test_nan_is_worse_than_any_number_and_alone_continues() -> None:
    rule = ASHAAssessor("minimize")
    assert rule.assess_trial("first", [math.nan]) is GOOD
    assert rule.assess_trial("second", [1e300]) is GOOD
    assert rule.assess_trial("third", [math.nan]) is BAD
    assert rule.reason == "no number is not among the best 1 of 3 after 1 result"


def test_new_attempt_takes_the_place_of_the_old_one() -> None:
    rule = ASHAAssessor("maximize", eta=2)
    rule.assess_trial("x", [0.9, 0.9])
    assert rule.assess_trial("x", [0.1]) is GOOD  # it is alone in the rung again
    assert rule.assess_trial("y", [0.2]) is GOOD
    assert rule.assess_trial("z", [0.15]) is BAD  # 1 of 3, and the old 0.9 does not count


def test_results_in_a_group_are_judged_at_every_rung_they_pass() -> None:
    rule = ASHAAssessor("maximize")
    rule.assess_trial("a", [0.5, 0.6, 0.7])
    assert rule.assess_trial("b", [0.1, 0.9, 0.9]) is BAD
    assert (rule.reason or "").endswith(" after 1 result")
    assert rule.assess_trial("c", [0.6, 0.95, 0.95]) is GOOD
    assert rule.assess_trial("d", [0.7, 0.9, 0.9]) is BAD  # b's result after 3 counts, too
    assert (rule.reason or "").endswith(" after 3 results")


def test_brackets_begin_one_rung_later_each_and_share_the_trials() -> None:
    rule = ASHAAssessor("maximize", eta=3, max_t=27, brackets=3)
    first = {}
    for i in range(130):
        for n in range(1, 28):
            if rule.assess_trial(f"t{i}", [-float(i)] * n) is BAD:
                first.setdefault(n, []).append(i)
                break
        rule.trial_end(f"t{i}", False)
    shares = {n: len(trials) for n, trials in first.items()}
    assert set(shares) == {1, 3, 9}
    assert [round(shares[n] / 130, 1) for n in (1, 3, 9)] == [0.7, 0.2, 0.1]  # 9 : 3 : 1


def test_hyperband_brackets_have_the_rungs_and_shares_of_the_paper() -> None:
    rule = HyperbandAssessor("maximize", R=81, eta=3)
    stopped_after: list[int | None] = []
    reasons: list[str] = []
    for i in range(143):  # one round of brackets: 81 + 34 + 15 + 8 + 5
        trial = f"t{i}"
        bad = (n for n in range(1, 82) if rule.assess_trial(trial, [-float(i)] * n) is BAD)
        stopped_after.append(next(bad, None))
        reasons.append(rule.reason or "")
        rule.trial_end(trial, False)
    # All but the first of each bracket are stopped at its first rung; those of the last are never judged.
    assert {reason.partition(" (")[2] for reason in reasons} - {""} == {
        f"bracket {n} of 5)" for n in range(2, 6)
    }
    counts = {n: stopped_after.count(n) for n in (1, 3, 9, 27)}
    assert counts == {1: 80, 3: 33, 9: 14, 27: 7}
    assert stopped_after.count(None) == 4 + 5


@pytest.mark.parametrize("rule", [ASHAAssessor("maximize"), HyperbandAssessor("maximize")])
def test_a_report_that_is_not_a_number_is_refused(rule: Any) -> None:
    with pytest.raises(ValueError, match="not a number"):
        rule.assess_trial("x", [0.5, "abc"])
