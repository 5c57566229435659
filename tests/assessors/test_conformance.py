"""The built-in assessors pass the conformance suite, and assessors with planted faults do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from _pytest.outcomes import Failed

from pitchpipe.assessors import (
    ASHAAssessor,
    Assessor,
    AssessResult,
    AutoAssessor,
    CurvefittingAssessor,
    HyperbandAssessor,
    MedianstopAssessor,
    PatientAssessor,
    PlateauAssessor,
    ThresholdAssessor,
)
from pitchpipe.testing import AssessorConformance


class WithFinals(AutoAssessor):
    """Takes the last intermediate result of a trial for its final one."""

    def assess_trial(self, trial_job_id: str, trial_history: list[Any]) -> AssessResult:
        if trial_history:
            self.receive_trial_result(trial_job_id, trial_history[-1])
        return super().assess_trial(trial_job_id, trial_history)


def suite(make: Callable[[], Assessor], **attributes: Any) -> type[AssessorConformance]:
    """Return the suite of the assessors that a function makes."""
    return type("Suite", (AssessorConformance,), {"make": lambda self: make(), **attributes})


TestMedianstop = suite(lambda: MedianstopAssessor("maximize"))
TestMedianstopWithALateStart = suite(lambda: MedianstopAssessor("maximize", start_step=5))
TestASHA = suite(lambda: ASHAAssessor("maximize"))
# A bracket that begins late may be empty when the bad trial comes.
TestASHAWithBrackets = suite(
    lambda: ASHAAssessor("maximize", reduction_factor=4, max_t=30, brackets=3), stops=False
)
# The last bracket lets every trial continue.
TestHyperband = suite(lambda: HyperbandAssessor("maximize", R=27), stops=False)
TestAuto = suite(lambda: AutoAssessor("maximize"))
# The trials of the suite have no final results.
TestAutoForHopelessTrials = suite(lambda: AutoAssessor("maximize", hopeless_only=True), stops=False)
TestAutoWithFinalResults = suite(lambda: WithFinals("maximize"), many_trials=500)
TestCurvefitting = suite(lambda: CurvefittingAssessor(epoch_num=30, gap=4), many_trials=200)
TestThreshold = suite(lambda: ThresholdAssessor(lower=0.06))
# Only those that do not improve are stopped, however bad they are.
TestPlateau = suite(lambda: PlateauAssessor("maximize"), stops=False)


# A rule that judges every result, and one that judges some; they let be what improves, however little.
TestPatientMedianstop = suite(lambda: PatientAssessor("Medianstop", patience=2), stops=False, many_trials=500)
TestPatientASHA = suite(lambda: PatientAssessor("ASHA", patience=2), stops=False, many_trials=500)

OBJECTIVES = [{"direction": "maximize"}, {"name": "cost", "direction": "minimize"}]


class WithCosts(Assessor):
    """Gives a rule for several objectives reports whose cost is the better, the better their number."""

    def __init__(self, rule: Any) -> None:
        self.rule = rule
        rule.update_objectives(OBJECTIVES)

    def assess_trial(self, trial_job_id: str, trial_history: list[Any]) -> Any:
        dicts = [value if isinstance(value, dict) else {"default": value} for value in trial_history]
        verdict = self.rule.assess_trial(trial_job_id, [each | {"cost": -each["default"]} for each in dicts])
        self.reason = self.rule.reason
        return verdict

    def trial_end(self, trial_job_id: str, success: bool) -> None:
        self.rule.trial_end(trial_job_id, success)


def without_costs() -> Assessor:
    rule = ASHAAssessor()
    rule.update_objectives(OBJECTIVES)
    return rule


TestASHAWithSeveralObjectives = suite(lambda: WithCosts(ASHAAssessor()), many_trials=300)
TestMedianstopWithSeveralObjectives = suite(lambda: WithCosts(MedianstopAssessor()), many_trials=300)
TestObjectivesThatAreNotReported = suite(without_costs, many_trials=300)


class Mutates(MedianstopAssessor):
    def assess_trial(self, trial_job_id: str, trial_history: list[Any]) -> Any:
        trial_history[:] = [0.0]
        return True


class KeepsTheList(Assessor):
    def __init__(self) -> None:
        self.histories: dict[str, list[Any]] = {}

    def assess_trial(self, trial_job_id: str, trial_history: list[Any]) -> Any:
        return self.histories.setdefault(trial_job_id, trial_history) != []


class Silent(MedianstopAssessor):
    def assess_trial(self, trial_job_id: str, trial_history: list[Any]) -> Any:
        verdict = super().assess_trial(trial_job_id, trial_history)
        self.reason = None
        return verdict


class Lenient(Assessor):
    def assess_trial(self, trial_job_id: str, trial_history: list[Any]) -> Any:
        return True


class WrongWayRound(MedianstopAssessor):
    def __init__(self) -> None:
        super().__init__("minimize")


class NumbersOnly(MedianstopAssessor):
    def assess_trial(self, trial_job_id: str, trial_history: list[Any]) -> Any:
        return super().assess_trial(trial_job_id, [float(value) for value in trial_history])


class Forgets(MedianstopAssessor):
    def __setstate__(self, state: Any) -> None:
        self.__init__()


class CrashesOnUnknownEnds(MedianstopAssessor):
    def trial_end(self, trial_job_id: str, success: bool) -> None:
        del self._running[trial_job_id]


@pytest.mark.parametrize(
    ("assessor", "test"),
    [
        (Mutates, "test_the_history_is_not_changed"),
        (KeepsTheList, "test_later_changes_of_the_history_do_not_matter"),
        (Silent, "test_a_hopeless_trial_is_stopped_with_a_reason"),
        (Lenient, "test_a_hopeless_trial_is_stopped_with_a_reason"),
        (WrongWayRound, "test_the_best_trial_is_never_stopped"),
        (NumbersOnly, "test_dicts_with_a_default_count_as_their_number"),
        (Forgets, "test_a_pickled_assessor_continues_as_the_original"),
        (CrashesOnUnknownEnds, "test_unknown_and_repeated_ends_are_survived"),
    ],
)
def test_a_planted_fault_fails(assessor: type[Assessor], test: str) -> None:
    with pytest.raises((AssertionError, Failed, TypeError, KeyError)):
        getattr(suite(assessor)(), test)()


@pytest.mark.parametrize("stops", [True, False])
def test_a_rule_that_does_not_claim_to_stop_is_not_asked_to(stops: bool) -> None:
    modest = suite(MedianstopAssessor, stops=stops)
    marks = getattr(modest.test_a_hopeless_trial_is_stopped_with_a_reason, "pytestmark", [])
    assert [mark.name for mark in marks] == ([] if stops else ["skip"])
