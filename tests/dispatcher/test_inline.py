"""A dispatcher without threads or pipes."""

from __future__ import annotations

import json

import pytest

from pitchpipe.dispatcher import InlineDispatcher, PluginNotLoaded
from pitchpipe.protocol import CommandType
from pitchpipe.tuners import names

SPACE = json.dumps({"x": {"_type": "uniform", "_value": [0, 1]}})
PAUSING = {"ASHA", "BOHB", "DEHB", "Hyperband", "PB2", "PBT"}


def test_replies_come_back_at_once_and_a_verdict_with_its_report() -> None:
    assessor = {"name": "Threshold", "classArgs": {"upper": 0.5}}
    hosted = InlineDispatcher({"tuner": {"name": "Random"}, "assessor": assessor, "seed": 1})
    assert hosted.wants_periodical
    (initialized,) = hosted.handle(CommandType.Initialize, SPACE)
    assert initialized.command is CommandType.Initialized
    replies = hosted.handle(CommandType.RequestTrialJobs, "2")
    assert [reply.command for reply in replies] == [CommandType.NewTrialJob] * 2
    report = {
        "parameter_id": 0,
        "trial_job_id": "AbCdE",
        "type": "PERIODICAL",
        "sequence": 0,
        "value": "0.75",
    }
    (verdict,) = hosted.handle(CommandType.ReportMetricData, json.dumps(report))
    assert verdict.command is CommandType.KillTrialJob
    assert json.loads(verdict.payload)["reason"] == "0.75 is above 0.5 after 1 result"


@pytest.mark.parametrize("name", names())
def test_tuners_that_pause_trials_are_known(name: str) -> None:
    assert InlineDispatcher({"tuner": {"name": name}}).pauses == (name in PAUSING)


def test_plug_in_that_cannot_be_made_is_refused() -> None:
    with pytest.raises(PluginNotLoaded, match="sead"):
        InlineDispatcher({"tuner": {"name": "TPE", "classArgs": {"sead": 1}}})
