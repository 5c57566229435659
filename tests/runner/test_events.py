"""Events as JSON: every kind comes back as it was."""

from __future__ import annotations

import json

import pytest

from pitchpipe.runner import events as happened
from pitchpipe.runner.events import event_of, recorded
from pitchpipe.runner.ledger import Totals

from .driver import EVENT_KINDS

EVENTS = [
    happened.DispatcherReady(1.0, False, ("FINAL",), False),
    happened.ParametersArrived(1.0, 0, "{}"),
    happened.NoMoreParameters(1.0),
    happened.KillVerdict(1.0, "AbCdE", "slow"),
    happened.PauseVerdict(1.0, "AbCdE", "rung 0"),
    happened.ResumeRequested(1.0, "AbCdE", parameters={"x": 1}, checkpoint_of="FgHiJ", budget=9.0),
    happened.RetryFailedRequested(1.0, False),
    happened.RetryCancelledRequested(1.0),
    happened.DispatcherAnswered(1.0),
    happened.DispatcherFailed(
        1.0, message="it raised", where="t.py:3", traceback="Traceback", command=7, died=True
    ),
    happened.RestoreNeeded(1.0, "it replied otherwise", from_results=True),
    happened.RecordBegun(1.0),
    happened.AttemptStarted(1.0, "AbCdE", 1, 4711),
    happened.Reported(1.0, "AbCdE", 1, kind="final", sequence=0, value="0.5"),
    happened.BadReport(1.0, "AbCdE", 1, "not JSON"),
    happened.CheckpointSaved(1.0, "AbCdE", 1, name="1-0", sequence=2, value=0.5),
    happened.AttemptEnded(1.0, "AbCdE", 1, exit_code=1, exported={"onnx": "model.onnx"}),
    happened.StartRefused(1.0, "AbCdE", 1, reason="busy", devices=(0, 1)),
    happened.AgentSilent(1.0, "0-0", is_over=True),
    happened.AgentLost(1.0, "0-0"),
    happened.ResourcesChanged(1.0, (0, 1)),
    happened.TotalsChanged(1.0, Totals(amounts={"CPU": 4.0}, devices=(0, 1))),
    happened.ExecutorFailed(1.0, "gone"),
    happened.TrialKillRequested(1.0, "AbCdE"),
    happened.TrialAddRequested(1.0, "{}"),
    happened.CompleteRequested(1.0, "AbCdE", "0.5", "enough"),
    happened.StopRequested(1.0, "enough"),
    happened.LimitsChanged(1.0, 2, 10, 60.0),
    happened.SearchSpaceChanged(1.0, "{}"),
    happened.DataImported(1.0, "[]"),
    happened.Tick(1.0),
]


def test_every_kind_of_event_is_in_this_test() -> None:
    assert {type(event) for event in EVENTS} == EVENT_KINDS


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_recorded_event_comes_back_equal_with_its_cause(event: happened.Event) -> None:
    event.cause = "reply 7"
    again = event_of(json.loads(json.dumps(recorded(event))))
    assert (again, again.cause) == (event, "reply 7")
