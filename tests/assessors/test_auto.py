"""The default rule: whom it stops, and above all whom it does not."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from pitchpipe.assessors import AssessResult, AutoAssessor

from ..lazy import Lazy

stats = Lazy("scipy.stats")

GOOD, BAD = AssessResult.Good, AssessResult.Bad
# What both ways of judging have in common.
both = pytest.mark.parametrize("hopeless_only", [False, True])


def curve(level: float, steps: int = 10) -> list[float]:
    return [level * (1 - 0.5 ** (n + 1)) for n in range(steps)]


def run(rule: AutoAssessor, trial: str, results: Sequence[Any], final: Any = None) -> int | None:
    """Let a trial report and end; return after how many results it was stopped, or None."""
    for n in range(1, len(results) + 1):
        if rule.assess_trial(trial, list(results[:n])) is BAD:
            rule.trial_end(trial, False)
            return n
    finish(rule, trial, results, final)
    return None


def finish(rule: AutoAssessor, trial: str, results: Sequence[Any], final: Any = None) -> None:
    """Let a trial run to its end, whatever the verdict."""
    for n in range(1, len(results) + 1):
        rule.assess_trial(trial, list(results[:n]))
    rule.receive_trial_result(trial, results[-1] if final is None else final)
    rule.trial_end(trial, True)


def experienced(
    mode: str = "maximize",
    final_of: Callable[[float], float | None] = lambda _: None,
    trials: int = 4,
    hopeless_only: bool = False,
) -> AutoAssessor:
    rule = AutoAssessor(mode, hopeless_only=hopeless_only)
    for i in range(trials):
        level = 0.5 + i / 10
        finish(rule, f"old{i}", curve(level), final_of(level))
    return rule


def test_first_trials_are_compared_once_one_has_gone_beyond_the_rung() -> None:
    rule = AutoAssessor("maximize")
    assert [rule.assess_trial(name, [value]) for name, value in (("a", 0.3), ("b", 0.5), ("c", 0.4))] == [
        GOOD
    ] * 3
    assert rule.assess_trial("c", [0.4, 0.5]) is BAD
    assert rule.reason == "0.4 is not among the best 1 of 3 after 1 result"
    assert rule.assess_trial("a", [0.3, 0.9]) is BAD
    assert rule.assess_trial("b", [0.5, 0.6]) is GOOD
    assert rule.assess_trial("d", [0.1]) is BAD  # at once


def test_a_trial_without_a_competitor_continues_until_one_comes() -> None:
    rule = AutoAssessor("maximize")
    assert all(rule.assess_trial("first", curve(0.5)[:n]) is GOOD for n in range(1, 6))
    assert rule.assess_trial("second", curve(0.8)[:1]) is GOOD
    assert rule.assess_trial("first", curve(0.5)[:6]) is BAD
    assert rule.reason == "0.25 is not among the best 1 of 2 after 1 result"


def test_first_trial_at_a_later_rung_is_stopped_unless_it_is_alone() -> None:
    rule = AutoAssessor("maximize")
    assert all(rule.assess_trial("alone", curve(0.9)[:n]) is GOOD for n in range(1, 9))
    rule.trial_end("alone", False)
    rule = AutoAssessor("maximize")
    assert rule.assess_trial("other", [0.1]) is GOOD
    assert run(rule, "first", [0.2, 0.3, 0.4, 0.5]) == 4
    assert rule.reason == "0.4 is number 1 of the 2 that must come before any continues after 3 results"
    assert run(rule, "worse", [0.2, 0.3, 0.39]) == 3
    assert run(rule, "better", [0.2, 0.3, *[0.5] * 9]) == 10
    assert rule.reason == "0.5 is number 1 of the 2 that must come before any continues after 9 results"


def test_after_twelve_trials_without_a_final_result_a_good_one_runs_to_its_end() -> None:
    rule = AutoAssessor("maximize")
    for n in range(1, 5):
        assert rule.assess_trial("best", [0.9] * n) is GOOD
    rule.trial_end("best", False)  # it failed
    for i in range(9):
        assert run(rule, str(i), [0.2 - i / 100]) == 1
    assert run(rule, "too early", curve(0.6)) == 3
    assert run(rule, "bad", curve(0.05)) == 1
    assert all(rule.assess_trial("good", curve(0.6)[:n]) is GOOD for n in range(1, 5))
    assert run(rule, "another good one", curve(0.6)) == 3  # one is enough
    rule.trial_end("good", False)  # it failed, too
    assert run(rule, "next", curve(0.6)) is None
    assert run(rule, "ordinary", [0.2, 0.2]) == 2


def test_once_a_trial_has_finished_rungs_are_nearer_and_more_continue() -> None:
    rule = experienced(trials=1)  # 0.25, 0.375, 0.4375 ...
    assert run(rule, "second", [0.3, 0.4]) == 2
    assert rule.reason == "0.4 is number 2 of the 3 that must come before any continues after 2 results"
    assert run(rule, "third, best", [0.3, 0.41, 0.41]) == 3
    assert run(rule, "fourth, second best", [0.3, 0.405, 0.5, 0.5, 0.5]) == 5
    assert run(rule, "fifth, third best", [0.3, 0.402]) == 2
    assert rule.reason == "0.402 is not among the best 2 of 5 after 2 results"


def test_different_final_results_end_the_halving_until_four_are_known() -> None:
    rule = experienced(final_of=lambda level: level + 0.1, trials=1)
    for i in range(3):
        assert run(rule, str(i), curve(0.4 - i / 10), 0.5 - i / 10) is None
    assert run(rule, "bad", curve(0.01)) == 1


@both
def test_a_bad_trial_is_stopped_once_others_have_finished(hopeless_only: bool) -> None:
    rule = experienced(hopeless_only=hopeless_only)
    assert run(rule, "bad", curve(0.1)) == (3 if hopeless_only else 1)
    assert rule.reason == (
        "0.0875 after 3 results cannot become the best, 0.799219:"
        " finished trials changed by at most 0.0992188 from there"
        if hopeless_only
        else "0.05 is not among the best 2 of 5 after 1 result"
    )
    assert run(rule, "best", curve(0.9)) is None


@pytest.mark.parametrize("trials", [1, 2, 3])
def test_no_trial_is_hopeless_before_four_have_finished(trials: int) -> None:
    assert run(experienced(trials=trials, hopeless_only=True), "bad", curve(0.01)) is None


def test_trials_that_failed_or_were_stopped_do_not_count_as_finished() -> None:
    rule = experienced(trials=3, hopeless_only=True)
    for n in range(1, 11):
        rule.assess_trial("failed", curve(0.9)[:n])
    rule.trial_end("failed", False)
    assert run(rule, "bad", curve(0.01)) is None


def test_a_trial_that_may_still_become_the_best_is_not_hopeless() -> None:
    """The largest change that any finished trial made counts, 1.3 times; and a tenth of the way to the median."""
    rule = AutoAssessor("minimize", hopeless_only=True)
    for i, early in enumerate((0.9, 1.0, 1.1, 2.0)):
        finish(rule, str(i), [early] * 3 + [0.5 + i / 10] * 7)  # falls by 1.2 at most; median 0.6
    assert run(rule, "just too high", [0.515 + 1.3 * 1.2] * 3 + [0.5] * 7) == 3
    assert run(rule, "just low enough", [0.505 + 1.3 * 1.2] * 3 + [0.5] * 7) is None


def test_a_hopeless_trial_is_stopped_between_the_rungs_too() -> None:
    rule = experienced(hopeless_only=True)
    assert run(rule, "falls back", [*curve(0.9)[:3], *[0.1] * 7]) == 4


@both
def test_no_trial_is_stopped_where_early_results_say_the_opposite(hopeless_only: bool) -> None:
    """Trials report a loss on their way, and an accuracy at their end."""
    rule = experienced("maximize", final_of=lambda level: 1 - level, hopeless_only=hopeless_only)
    assert run(rule, "low loss", curve(0.1), 0.9) is None


@both
def test_no_trial_is_stopped_where_early_results_say_nothing(hopeless_only: bool) -> None:
    finals = iter([0.6, 0.4, 0.7, 0.3])
    rule = experienced(final_of=lambda _: next(finals), hopeless_only=hopeless_only)
    assert run(rule, "bad", curve(0.01)) is None


def test_final_result_may_be_the_best_report_or_a_rounded_one() -> None:
    for final_of in (lambda level: round(level, 2), lambda level: level * (1 - 0.5**10)):
        rule = AutoAssessor("maximize", hopeless_only=True)
        for i in range(4):
            level = 0.8 - i / 10
            finish(rule, str(i), [*curve(level), level / 3], final_of(level))
        assert run(rule, "bad", curve(0.01)) == 3


def test_no_trial_is_stopped_when_most_of_its_time_is_over() -> None:
    """Ten results are a full trial: nine are a rung, but there is little left to save."""
    rule = experienced()
    history = curve(0.95)
    assert run(rule, "late", history[:5] + [0.01] * 5) is None
    rule = experienced(hopeless_only=True)
    assert run(rule, "later", history[:7] + [0.01] * 3) is None


def test_trials_of_different_lengths_are_judged_within_the_shortest() -> None:
    rule = AutoAssessor("maximize")
    for i, steps in enumerate([40, 40, 40, 2]):
        finish(rule, str(i), curve(0.5 + i / 10, steps))
    assert run(rule, "bad", [0.9] + [0.0] * 30, 0.95) is None
    assert run(rule, "bad from the start", [0.0]) == 1


@both
def test_trials_with_one_result_or_none_are_never_stopped(hopeless_only: bool) -> None:
    rule = AutoAssessor("maximize", hopeless_only=hopeless_only)
    for i in range(20):
        assert run(rule, str(i), [0.9 - i / 100]) is None
    assert rule.assess_trial("none", []) is GOOD


def test_direction_and_name_of_the_objective_are_those_of_the_experiment() -> None:
    rule = AutoAssessor()
    rule.update_objectives([{"name": "loss", "direction": "minimize"}])
    for i in range(4):
        finish(rule, str(i), [{"loss": value} for value in curve(0.5 - i / 10)])
    assert run(rule, "high", [{"loss": 3.0}]) == 1
    assert run(rule, "low", [{"loss": value} for value in curve(0.1)]) is None


@both
def test_with_several_objectives_no_trial_is_stopped(hopeless_only: bool) -> None:
    rule = AutoAssessor(hopeless_only=hopeless_only)
    rule.update_objectives([{"direction": "maximize"}, {"name": "ms", "direction": "minimize"}])
    for i in range(9):
        assert run(rule, str(i), [{"default": 1.0 - i, "ms": i}] * 9) is None


@both
def test_nan_is_the_worst(hopeless_only: bool) -> None:
    rule = experienced(hopeless_only=hopeless_only)
    assert run(rule, "diverged", [math.nan] * 3) == (3 if hopeless_only else 1)
    assert (rule.reason or "").startswith("no number ")


@both
def test_a_trial_that_ends_with_nan_teaches_nothing(hopeless_only: bool) -> None:
    rule = experienced(hopeless_only=hopeless_only)
    finish(rule, "promising", curve(0.85, 1), math.nan)
    assert run(rule, "bad", curve(0.1)) == (3 if hopeless_only else 1)


def test_trials_that_begin_with_nan_are_not_hopeless() -> None:
    rule = AutoAssessor("maximize", hopeless_only=True)
    for i in range(5):
        assert run(rule, str(i), [*[math.nan] * 3, *curve(0.5 + i / 10)]) is None


@pytest.mark.parametrize("finals", [[0.1, 0.2, 0.2, 0.4, 0.3], [0.5, 0.4, 0.3, 0.1, 0.1]])
def test_correlation_is_spearmans(finals: list[float]) -> None:
    rule = AutoAssessor("maximize")
    for i, final in enumerate(finals):
        finish(rule, str(i), [i / 10] * 4, final)
    expected = float(stats.spearmanr(range(5), finals)[0])  # pyright: ignore[reportArgumentType]
    assert (run(rule, "bad", [-1.0]) == 1) is (expected >= 0.3)


@both
def test_state_survives_a_checkpoint(hopeless_only: bool) -> None:
    rule = pickle.loads(pickle.dumps(experienced(hopeless_only=hopeless_only)))
    assert run(rule, "bad", curve(0.1)) == (3 if hopeless_only else 1)


def test_a_new_attempt_replaces_the_results_of_the_old_one() -> None:
    rule = experienced()
    for n in range(1, 6):
        rule.assess_trial("again", curve(2.0)[:n])
    assert rule.assess_trial("again", [0.1]) is BAD
    assert "of 5 after" in (rule.reason or "")
