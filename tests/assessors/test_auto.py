"""The cautious rule: whom it stops, and above all whom it does not."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from scipy.stats import spearmanr

from pitchpipe.assessors import AssessResult, AutoAssessor

GOOD, BAD = AssessResult.Good, AssessResult.Bad


def curve(level: float, steps: int = 10) -> list[float]:
    return [level * (1 - 0.5 ** (n + 1)) for n in range(steps)]


def run(rule: AutoAssessor, trial: str, results: Sequence[Any], final: Any = None) -> int | None:
    """Let a trial report and end; return after how many results it was stopped, or None."""
    for n in range(1, len(results) + 1):
        if rule.assess_trial(trial, list(results[:n])) is BAD:
            rule.trial_end(trial, False)
            return n
    rule.receive_trial_result(trial, results[-1] if final is None else final)
    rule.trial_end(trial, True)
    return None


def experienced(
    mode: str = "maximize", final_of: Callable[[float], float] = lambda level: level, trials: int = 4
) -> AutoAssessor:
    rule = AutoAssessor(mode)
    for i in range(trials):
        level = 0.5 + i / 10
        assert run(rule, f"old{i}", curve(level), final_of(level)) is None
    return rule


def test_a_bad_trial_is_stopped_once_early_results_are_known_to_count() -> None:
    rule = experienced()
    assert run(rule, "bad", curve(0.1)) == 1
    assert rule.reason == (
        "0.05 is not among the best 1 of 5 after 1 result; "
        "results there foretell the final ones (rank correlation 1.00)"
    )
    assert run(rule, "best", curve(0.9)) is None


@pytest.mark.parametrize("trials", [1, 2, 3])
def test_no_trial_is_stopped_before_four_have_ended(trials: int) -> None:
    assert run(experienced(trials=trials), "bad", curve(0.01)) is None


def test_trials_that_failed_or_were_stopped_do_not_count() -> None:
    rule = experienced(trials=3)
    for n in range(1, 11):
        rule.assess_trial("failed", curve(0.9)[:n])
    rule.trial_end("failed", False)
    assert run(rule, "bad", curve(0.01)) is None


def test_no_trial_is_stopped_where_early_results_say_the_opposite() -> None:
    """Trials report a loss on their way, and an accuracy at their end."""
    rule = experienced("maximize", final_of=lambda level: 1 - level)
    assert run(rule, "low loss", curve(0.1), 0.9) is None


def test_no_trial_is_stopped_where_early_results_say_nothing() -> None:
    finals = iter([0.6, 0.4, 0.7, 0.3])
    assert run(experienced(final_of=lambda _: next(finals)), "bad", curve(0.01)) is None


def test_no_trial_is_stopped_where_early_results_are_all_equal() -> None:
    rule = AutoAssessor("maximize")
    for i in range(5):
        assert run(rule, str(i), [0.5] * 9 + [i / 10]) is None
    assert run(rule, "bad", [0.1] * 10) is None


def test_late_rungs_are_judged_where_early_ones_mislead() -> None:
    rule = AutoAssessor("maximize")
    for i in range(5):
        level = 0.5 + i / 10
        assert run(rule, str(i), [1 - level] + [level] * 9) is None
    assert run(rule, "crossing", [0.05] + [0.9] * 9) is None
    assert run(rule, "bad", [0.9] + [0.1] * 9) == 3


def test_no_trial_is_stopped_when_half_of_its_time_is_over() -> None:
    """Ten results are a full trial: nine are a rung, but there is little left to save."""
    rule = experienced()
    history = curve(0.95)
    assert run(rule, "late", history[:5] + [0.01] * 5) is None


def test_trials_of_different_lengths_are_judged_within_the_shortest() -> None:
    rule = AutoAssessor("maximize")
    for i, steps in enumerate([40, 40, 40, 2]):
        assert run(rule, str(i), curve(0.5 + i / 10, steps)) is None
    assert run(rule, "bad", [0.9] + [0.0] * 30, 0.95) is None
    assert run(rule, "bad from the start", [0.0]) == 1


def test_trials_with_one_result_or_none_are_never_stopped() -> None:
    rule = AutoAssessor("maximize")
    for i in range(20):
        assert run(rule, str(i), [0.9 - i / 100]) is None
    assert rule.assess_trial("none", []) is GOOD


def test_direction_and_name_of_the_objective_are_those_of_the_experiment() -> None:
    rule = AutoAssessor()
    rule.update_objectives([{"name": "loss", "direction": "minimize"}])
    for i in range(4):
        assert run(rule, str(i), [{"loss": value} for value in curve(0.5 - i / 10)]) is None
    assert run(rule, "high", [{"loss": 3.0}]) == 1
    assert run(rule, "low", [{"loss": value} for value in curve(0.1)]) is None


def test_with_several_objectives_no_trial_is_stopped() -> None:
    rule = AutoAssessor()
    rule.update_objectives([{"direction": "maximize"}, {"name": "ms", "direction": "minimize"}])
    for i in range(9):
        assert run(rule, str(i), [{"default": 1.0 - i, "ms": i}] * 9) is None


def test_nan_is_the_worst() -> None:
    rule = experienced()
    assert run(rule, "diverged", [math.nan] * 3) == 1
    assert (rule.reason or "").startswith("no number is not among the best 1 of 5 after 1 result")


def test_a_final_nan_is_the_worst_final_result() -> None:
    rule = experienced()
    assert run(rule, "promising", curve(0.85), math.nan) is None
    assert run(rule, "bad", curve(0.1)) is None  # what was best after one result was the worst in the end


@pytest.mark.parametrize("finals", [[0.1, 0.2, 0.2, 0.4, 0.3], [0.5, 0.4, 0.3, 0.1, 0.1]])
def test_correlation_is_spearmans(finals: list[float]) -> None:
    rule = AutoAssessor("maximize")
    for i, final in enumerate(finals):
        run(rule, str(i), [i / 10] * 4, final)
    expected = float(spearmanr(range(5), finals)[0])  # pyright: ignore[reportArgumentType]
    stopped = run(rule, "bad", [-1.0])
    assert (stopped == 1) is (expected >= 0.3)
    assert stopped is None or f"(rank correlation {expected:.2f})" in (rule.reason or "")


def test_a_new_attempt_replaces_the_results_of_the_old_one() -> None:
    rule = experienced()
    for n in range(1, 6):
        rule.assess_trial("again", curve(2.0)[:n])
    assert rule.assess_trial("again", [0.1]) is BAD
    assert "of 5 after" in (rule.reason or "")
