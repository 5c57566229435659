"""The conformance suite of assessors: what every rule must do, as pytest tests to inherit.

In a test file of a plug-in::

    from pitchpipe.testing import AssessorConformance
    from my_package import MyAssessor

    class TestMyAssessor(AssessorConformance):
        def make(self):
            return MyAssessor(optimize_mode="maximize")

The rule under test must maximise. The class attribute `stops` is False for a rule that need not stop a trial that is
far worse than twenty others; that test is then skipped. Lower `many_trials` for a slow rule.
"""

# ruff: noqa: D102 - the names of the tests are sentences

from __future__ import annotations

import copy
import math
import time
from typing import Any, ClassVar

import cloudpickle
import pytest

from ..assessors import Assessor, AssessResult
from .tuner_conformance import skipped

STEPS = 30
FIRST = "the first trial is not stopped, since there is nothing to compare it with"
BEST = "a trial that is better than all others is not stopped"
SAME = "the same calls give the same verdicts"


def curve(level: float, steps: int = STEPS) -> list[float]:
    """Return the intermediate results of a trial that approaches a level."""
    return [level * (1 - 0.8 ** (step + 1)) for step in range(steps)]


def feed(assessor: Assessor, trial: str, results: list[Any], success: bool = True) -> list[AssessResult]:
    """Let a trial report its results one by one and end; return the verdicts."""
    verdicts = [AssessResult(_judge(assessor, trial, results[: n + 1])) for n in range(len(results))]
    assessor.trial_end(trial, success)
    return verdicts


def _judge(assessor: Assessor, trial: str, history: list[Any]) -> Any:
    assessor.reason = None  # as the dispatcher does: an earlier one is of another verdict
    verdict = assessor.assess_trial(trial, history)
    return verdict.value if isinstance(verdict, AssessResult) else verdict


class AssessorConformance:
    """The suite: inherit it as `class Test...` and override `make`."""

    stops: ClassVar[bool] = True
    many_trials: ClassVar[int] = 4_000

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Skip the test of what the subclass does not claim."""
        super().__init_subclass__(**kwargs)
        if not cls.stops:
            reason = "the rule need not stop a trial: `stops` is False"
            setattr(cls, "test_a_hopeless_trial_is_stopped_with_a_reason", skipped(reason))  # noqa: B010

    def make(self) -> Assessor:
        """Return a new assessor that maximises."""
        raise NotImplementedError

    def experienced(self) -> Assessor:
        """Return an assessor that has seen twenty trials succeed."""
        assessor = self.make()
        for i in range(20):
            feed(assessor, f"old{i}", curve(0.8 + i / 100))
        return assessor

    def test_the_first_trial_is_good(self) -> None:
        assert set(feed(self.make(), "first", curve(0.5))) == {AssessResult.Good}, FIRST

    def test_a_verdict_is_a_bool_or_an_assess_result(self) -> None:
        assessor = self.experienced()
        for level in (0.1, 0.9):
            for n in range(1, STEPS):
                verdict = assessor.assess_trial(f"t{level}", curve(level)[:n])
                assert isinstance(verdict, bool | AssessResult), (
                    "assess_trial returns a bool or an AssessResult"
                )

    def test_the_best_trial_is_never_stopped(self) -> None:
        assert set(feed(self.experienced(), "best", curve(2.0))) == {AssessResult.Good}, BEST

    def test_a_hopeless_trial_is_stopped_with_a_reason(self) -> None:
        assessor = self.experienced()
        history: list[float] = []
        for value in curve(0.05):
            history.append(value)
            if _judge(assessor, "bad", history) is not AssessResult.Good.value:
                break
        else:
            pytest.fail(f"not stopped in {STEPS} steps")
        assert isinstance(assessor.reason, str), (
            "before it returns Bad, the assessor sets `reason` to a sentence"
        )
        assert assessor.reason.strip(), "the `reason` of a Bad verdict is not empty"

    def test_a_good_verdict_has_no_reason(self) -> None:
        assessor = self.experienced()
        for n in range(1, STEPS):
            for trial, level in (("bad", 0.05), ("best", 2.0)):
                if _judge(assessor, trial, curve(level)[:n]) is True:
                    assert assessor.reason is None, "a Good verdict has no `reason`"

    def test_a_search_space_is_taken(self) -> None:
        assessor = self.make()
        assessor.update_search_space({"x": {"_type": "uniform", "_value": [0, 1]}})
        assert set(feed(assessor, "first", curve(0.5))) == {AssessResult.Good}, FIRST

    def test_the_history_is_not_changed(self) -> None:
        assessor = self.experienced()
        history: list[Any] = [0.3, {"default": 0.2, "other": [1]}, math.nan]
        kept = copy.deepcopy(history)
        assessor.assess_trial("t", history)
        assert repr(history) == repr(kept), "the assessor does not change the history that it gets"

    def test_later_changes_of_the_history_do_not_matter(self) -> None:
        assessor, untouched = self.experienced(), self.experienced()
        history = curve(0.5, 4)
        _judge(assessor, "t", history)
        _judge(untouched, "t", list(history))
        history.clear()
        results = curve(0.5, 12)
        verdicts = [
            [_judge(each, "t", results[: n + 1]) for n in range(4, 12)] for each in (assessor, untouched)
        ]
        assert verdicts[0] == verdicts[1], SAME

    def test_dicts_with_a_default_count_as_their_number(self) -> None:
        numbers, dicts = self.experienced(), self.experienced()
        for level in (0.1, 0.7, 0.9):
            results = curve(level)
            verdicts = feed(numbers, str(level), results)
            assert feed(dicts, str(level), [{"default": value, "x": 1} for value in results]) == verdicts, (
                "a dict counts as its number `default`"
            )

    def test_nan_and_infinities_are_survived(self) -> None:
        assessor = self.experienced()
        odd = [math.nan, math.inf, -math.inf, 0.5, math.nan, 1e308, -1e308, 0]
        for i in range(6):
            feed(assessor, f"odd{i}", odd[i:] + odd[:i], success=i % 2 == 0)
        feed(assessor, "all nan", [math.nan] * STEPS)
        assert set(feed(assessor, "best", [1e308] * 8)) == {AssessResult.Good}, BEST

    def test_a_pickled_assessor_continues_as_the_original(self) -> None:
        assessor = self.experienced()
        _judge(assessor, "half way", curve(0.6)[:1])
        restored = cloudpickle.loads(cloudpickle.dumps(assessor))
        for level in (0.1, 0.6, 0.85, 0.95):
            assert feed(restored, str(level), curve(level)) == feed(assessor, str(level), curve(level)), (
                "an assessor that was pickled and restored judges as the original does"
            )
            assert restored.reason == assessor.reason, (
                "an assessor that was pickled and restored gives the same reasons"
            )
        results = curve(0.6)
        assert [_judge(each, "half way", results[:2]) for each in (assessor, restored)].count(True) in (
            0,
            2,
        ), SAME

    def test_the_same_calls_give_the_same_verdicts(self) -> None:
        verdicts = [
            [feed(assessor, str(level), curve(level)) for level in (0.3, 0.9, 0.7, 0.8)]
            for assessor in (self.experienced(), self.experienced())
        ]
        assert verdicts[0] == verdicts[1], SAME

    def test_results_that_come_in_groups(self) -> None:
        assessor = self.experienced()
        for n in (3, 4, 11, STEPS):
            assessor.assess_trial("t", curve(2.0)[:n])
        assessor.trial_end("t", True)

    def test_a_trial_that_starts_again(self) -> None:
        assessor = self.experienced()
        feed_without_end = [_judge(assessor, "t", curve(2.0)[: n + 1]) for n in range(10)]
        again = [_judge(assessor, "t", curve(2.0)[: n + 1]) for n in range(10)]
        assert again == feed_without_end, "a trial that starts again is judged as before"

    def test_parallel_trials(self) -> None:
        assessor = self.experienced()
        for n in range(1, STEPS):
            for trial, level in (("a", 1.5), ("b", 1.6), ("c", 1.7)):
                assert _judge(assessor, trial, curve(level)[:n]) is True, BEST
        for trial in "cab":
            assessor.trial_end(trial, True)

    def test_unknown_and_repeated_ends_are_survived(self) -> None:
        assessor = self.experienced()
        assessor.trial_end("never seen", True)
        assessor.trial_end("never seen", False)
        assessor.trial_end("old3", True)
        assert set(feed(assessor, "best", curve(2.0))) == {AssessResult.Good}, BEST

    def test_calls_after_a_bad_verdict_are_survived(self) -> None:
        assessor = self.experienced()
        for n in range(1, STEPS):
            assessor.assess_trial("bad", curve(0.01)[:n])
        assessor.trial_end("bad", False)
        assert set(feed(assessor, "best", curve(2.0))) == {AssessResult.Good}, BEST

    def test_many_trials_take_bounded_time(self) -> None:
        assessor = self.make()
        started = time.process_time()
        for i in range(self.many_trials):
            feed(assessor, f"t{i}", curve(1 + (i % 97) / 100, 10))
        # Generous: it tells linear from quadratic cost, not fast from slow.
        assert time.process_time() - started < 9, (
            "the assessor takes too long: the time for a result grows with the number of trials"
        )
