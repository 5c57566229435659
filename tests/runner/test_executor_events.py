"""What attempts report: results, checkpoints, problems; also twice, or too late."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pitchpipe.protocol import CommandType
from pitchpipe.runner import events as happened
from pitchpipe.runner.effects import SendCommand, StartTrial, StopTrial
from pitchpipe.runner.experiment_state import Retries
from pitchpipe.runner.trial import FailureKind, TrialStatus

from .driver import Driver, lost_and_retried, of_type, running_trial, sent


def test_final_result_is_sent_before_the_end_of_its_trial() -> None:
    driver, trial = running_trial(trial_concurrency=1)
    driver.succeed(trial)
    commands = [effect.command for effect in of_type(driver.effects, SendCommand)]
    assert commands.index(CommandType.ReportMetricData) < commands.index(CommandType.TrialEnd)


@pytest.mark.parametrize(
    ("value", "reason"),
    [("abc", "'abc'"), ({"accuracy": 1}, "'default'"), (None, "None"), ([1], "[1]")],
)
def test_unusable_final_result_stops_its_trial(value: Any, reason: str) -> None:
    driver, trial = running_trial()
    effects = driver.report(trial, value, "final")
    assert of_type(effects, StopTrial) == [StopTrial(trial.trial_id, 1)]
    assert sent(effects, CommandType.ReportMetricData) == []
    driver.end(trial, exit_code=None, signal=15)
    assert trial.status is TrialStatus.FAILED
    assert reason in trial.reason


@pytest.mark.parametrize("value", ["abc", {"accuracy": 1}, None, [1], {"default": "high"}])
@pytest.mark.parametrize("is_judged", [True, False])
def test_intermediate_result_that_is_not_a_number_is_kept_and_judged_by_none(
    value: Any, is_judged: bool
) -> None:
    driver = Driver()
    trial = driver.running_trial(wants_periodical=is_judged)
    effects = driver.report(trial, value)
    effects += driver.report(trial, value)
    effects += driver.report(trial, 0.5)
    assert of_type(effects, StopTrial) == []
    payloads = sent(effects, CommandType.ReportMetricData)
    assert [(payload["sequence"], payload["value"]) for payload in payloads] == [(2, "0.5")] * is_judged
    warnings = list(driver.runner.warnings())
    assert len(warnings) == is_judged
    assert all("intermediate result 0 of trial 0: reported" in warning for warning in warnings)
    driver.succeed(trial)
    assert trial.status is TrialStatus.SUCCEEDED


@pytest.mark.parametrize("value", ["abc", {"accuracy": 1}, None, [1]])
@pytest.mark.parametrize("kind", ["intermediate", "final"])
def test_classes_of_the_user_get_any_result(kind: str, value: Any) -> None:
    driver = Driver()
    trial = driver.running_trial(any_results=("FINAL", "PERIODICAL"))
    effects = driver.report(trial, value, kind)
    assert of_type(effects, StopTrial) == []
    (payload,) = sent(effects, CommandType.ReportMetricData)
    assert json.loads(payload["value"]) == value
    if kind == "final":
        driver.end(trial)
        assert (trial.status, trial.final, trial.values) == (TrialStatus.SUCCEEDED, json.dumps(value), None)
        assert not driver.runner.best.front


@pytest.mark.parametrize("any_results", [(), ("FINAL", "PERIODICAL")])
@pytest.mark.parametrize("value", [float("nan"), {"default": float("nan")}])
def test_nan_as_a_final_result_fails_the_trial_of_any_tuner(value: Any, any_results: tuple[str, ...]) -> None:
    driver = Driver()
    trial = driver.running_trial(any_results=any_results)
    assert sent(driver.report(trial, value, "final"), CommandType.ReportMetricData) == []
    driver.end(trial)
    assert (trial.status, trial.kind) == (TrialStatus.FAILED, FailureKind.NAN)
    assert "NaN" in trial.reason


def test_second_final_result_is_kept_and_does_not_count() -> None:
    driver, trial = running_trial()
    driver.report(trial, 0.1, "final")
    effects = driver.report(trial, 0.2, "final")
    assert sent(effects, CommandType.ReportMetricData) == []
    driver.end(trial)
    assert (trial.status, trial.final, trial.values) == (TrialStatus.SUCCEEDED, "0.1", (0.1,))
    assert trial.reason == "reported a final result 2 times; the first counts"
    assert [row.value for row in driver.runner.take_changes().metrics] == ["0.1", "0.2"]


def test_reports_of_an_older_attempt_change_nothing() -> None:
    driver, trial = running_trial()
    trial.attempt = 2
    driver.handle(happened.Reported(driver.now, trial.trial_id, 1, kind="final", sequence=0, value="0.5"))
    driver.handle(happened.AttemptEnded(driver.now, trial.trial_id, 1, exit_code=0))
    assert (trial.status, trial.final) == (TrialStatus.RUNNING, None)


def test_repeated_results_count_once() -> None:
    driver, trial = running_trial()
    driver.report(trial, 0.5, sequence=0)
    driver.runner.take_changes()
    assert driver.report(trial, 0.5, sequence=0) == []
    assert list(driver.runner.new_results) == []
    driver.report(trial, 0.1, "final", sequence=0)
    assert driver.report(trial, 0.1, "final", sequence=0) == []
    driver.end(trial)
    assert trial.reason == ""


def test_dispatcher_gets_each_result_once_however_often_it_is_reported() -> None:
    driver, trial, _ = lost_and_retried(0.1, 0.2)
    driver.start(trial)
    for value in (0.1, 0.25, 0.3):
        driver.report(trial, value)
    driver.succeed(trial)
    received = [(m["sequence"], m["value"]) for m in sent(driver.effects, CommandType.ReportMetricData)]
    assert received == [(0, "0.1"), (1, "0.2"), (2, "0.3"), (0, "0.5")]
    assert (trial.status, trial.failed) == (TrialStatus.SUCCEEDED, {"INFRA": 1})


def test_late_events_of_a_lost_attempt_change_nothing() -> None:
    driver, trial, _ = lost_and_retried(0.1)
    driver.runner.take_changes()
    for late in (
        happened.AttemptStarted(driver.now, trial.trial_id, 1),
        happened.Reported(driver.now, trial.trial_id, 1, kind="intermediate", sequence=5, value="0.5"),
        happened.Reported(driver.now, trial.trial_id, 1, kind="final", sequence=0, value="0.5"),
        happened.CheckpointSaved(driver.now, trial.trial_id, 1, name="1-9", sequence=9),
        happened.BadReport(driver.now, trial.trial_id, 1, "not JSON"),
        happened.AttemptEnded(driver.now, trial.trial_id, 1, exit_code=0),
    ):
        assert driver.handle(late) == []
    changes = driver.runner.take_changes()
    assert (changes.trials, changes.metrics, trial.checkpoint) == ({}, [], None)


def test_unusable_final_result_does_not_hide_that_of_the_next_attempt() -> None:
    driver, trial = running_trial(trial_concurrency=1, retries=Retries(1))
    driver.report(trial, float("nan"), "final")
    driver.end(trial, exit_code=None, signal=15)
    driver.start(trial)
    driver.succeed(trial, 0.25)
    assert (trial.status, trial.values, trial.reason) == (TrialStatus.SUCCEEDED, (0.25,), "")
    assert [row.attempt for row in driver.runner.take_changes().metrics] == [1, 2]


@pytest.mark.parametrize("killed", [False, True])
def test_report_that_the_machine_spoilt_is_no_fault_of_the_trial_which_runs_again(killed: bool) -> None:
    driver, trial = running_trial(trial_concurrency=1)
    driver.handle(happened.BadReport(driver.now, trial.trial_id, 1, "not on the disk: I/O error", infra=True))
    (start,) = of_type(driver.end(trial, exit_code=None, signal=15, killed=killed), StartTrial)
    assert (start.order.attempt, trial.status, trial.failed) == (2, TrialStatus.WAITING, {"INFRA": 1})


def test_result_that_is_there_is_not_lost_with_the_spool_that_the_machine_spoilt() -> None:
    driver, trial = running_trial(trial_concurrency=1)
    driver.report(trial, 0.5, "final")
    bad = happened.BadReport(driver.now, trial.trial_id, 1, "not on the disk: I/O error", infra=True)
    assert driver.handle(bad) == []
    driver.end(trial)
    assert (trial.status, trial.values) == (TrialStatus.SUCCEEDED, (0.5,))
