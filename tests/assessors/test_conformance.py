"""The built-in assessors pass the conformance suite, and assessors with planted faults do not."""

from __future__ import annotations

from typing import Any, ClassVar

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
from pitchpipe.assessors.conformance import AssessorConformance


class TestMedianstop(AssessorConformance):
    def make(self) -> Assessor:
        return MedianstopAssessor("maximize")


class TestMedianstopWithALateStart(AssessorConformance):
    def make(self) -> Assessor:
        return MedianstopAssessor("maximize", start_step=5)


class TestASHA(AssessorConformance):
    def make(self) -> Assessor:
        return ASHAAssessor("maximize")


class TestASHAWithBrackets(AssessorConformance):
    stops: ClassVar[bool] = False  # a bracket that begins late may be empty when the bad trial comes

    def make(self) -> Assessor:
        return ASHAAssessor("maximize", reduction_factor=4, max_t=30, brackets=3)


class TestHyperband(AssessorConformance):
    stops: ClassVar[bool] = False  # the last bracket lets every trial continue

    def make(self) -> Assessor:
        return HyperbandAssessor("maximize", R=27)


class TestAuto(AssessorConformance):
    def make(self) -> Assessor:
        return AutoAssessor("maximize")


class TestAutoForHopelessTrials(AssessorConformance):
    stops: ClassVar[bool] = False  # the trials of the suite have no final results

    def make(self) -> Assessor:
        return AutoAssessor("maximize", hopeless_only=True)


class WithFinals(AutoAssessor):
    """Takes the last intermediate result of a trial for its final one."""

    def assess_trial(self, trial_job_id: str, trial_history: list[Any]) -> AssessResult:
        if trial_history:
            self.receive_trial_result(trial_job_id, trial_history[-1])
        return super().assess_trial(trial_job_id, trial_history)


class TestAutoWithFinalResults(AssessorConformance):
    many_trials: ClassVar[int] = 500

    def make(self) -> Assessor:
        return WithFinals("maximize")


class TestCurvefitting(AssessorConformance):
    many_trials: ClassVar[int] = 200

    def make(self) -> Assessor:
        return CurvefittingAssessor(epoch_num=30, gap=4)


class TestThreshold(AssessorConformance):
    def make(self) -> Assessor:
        return ThresholdAssessor(lower=0.06)


class TestPlateau(AssessorConformance):
    stops: ClassVar[bool] = False  # only those that do not improve, however bad they are

    def make(self) -> Assessor:
        return PlateauAssessor("maximize")


# A rule that judges every result, and one that judges some.
@pytest.mark.parametrize("name", ["Medianstop", "ASHA"])
class TestPatient(AssessorConformance):
    stops: ClassVar[bool] = False  # not one that improves, however little
    many_trials: ClassVar[int] = 500

    @pytest.fixture(autouse=True)
    def _takes_the_name(self, name: str) -> None:
        self.chosen = name

    def make(self) -> Assessor:
        return PatientAssessor(self.chosen, patience=2)


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


@pytest.mark.parametrize(
    ("cls", "costs"), [(ASHAAssessor, True), (MedianstopAssessor, True), (ASHAAssessor, False)]
)
class TestSeveralObjectives(AssessorConformance):
    many_trials: ClassVar[int] = 300

    @pytest.fixture(autouse=True)
    def _takes_the_rule(self, cls: Any, costs: bool) -> None:
        self.cls, self.costs = cls, costs

    def make(self) -> Assessor:
        rule = self.cls()
        if self.costs:
            return WithCosts(rule)
        rule.update_objectives(OBJECTIVES)
        return rule


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
    class Suite(AssessorConformance):
        def make(self) -> Assessor:
            return assessor()

    with pytest.raises((AssertionError, Failed, TypeError, KeyError)):
        getattr(Suite(), test)()


@pytest.mark.parametrize("stops", [True, False])
def test_a_rule_that_does_not_claim_to_stop_is_not_asked_to(stops: bool) -> None:
    suite = type("Suite", (AssessorConformance,), {"stops": stops})
    assert callable(suite.test_a_hopeless_trial_is_stopped_with_a_reason) is stops
