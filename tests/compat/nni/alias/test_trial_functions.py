"""NNI's functions for trials: a channel of one's own, scripts run by hand, and results that are no number."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pitchpipe import trial_agent
from pitchpipe.compat.nni.alias.trial_functions import (
    TrialCommandChannel,
    get_default_trial_command_channel,
    get_next_parameter,
    overwrite_intermediate_seq,
    report_final_result,
    report_intermediate_result,
    set_default_trial_command_channel,
)
from pitchpipe.sdk import current
from pitchpipe.sdk.current_trial import SpoolChannel


class Kept(TrialCommandChannel):
    """Keeps what it is sent."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []

    def receive_parameter(self) -> dict[str, Any]:
        return {"parameter_id": 7, "parameters": {"x": 1}}

    def send_metric(self, **fields: Any) -> None:
        self.sent.append(fields)


def test_channel_of_ones_own_gives_parameters_and_gets_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNI_TRIAL_JOB_ID", "abcde")
    monkeypatch.setenv("NNI_EXP_ID", "mine")
    channel = Kept()
    set_default_trial_command_channel(channel)
    assert get_default_trial_command_channel() is channel
    assert get_next_parameter() == {"x": 1}
    assert trial_agent.get_current_parameter("x") == 1
    assert trial_agent.get_experiment_id() == "mine"
    report_intermediate_result(0.5)
    overwrite_intermediate_seq(4)
    report_intermediate_result(np.float32(0.25))
    report_final_result({"default": 1})
    fields = [(one["type"], one["sequence"], one["value"]) for one in channel.sent]
    assert fields == [("PERIODICAL", 0, 0.5), ("PERIODICAL", 4, 0.25), ("FINAL", 0, {"default": 1})]
    assert {(one["parameter_id"], one["trial_job_id"]) for one in channel.sent} == {(7, "abcde")}


def test_script_by_hand_is_warned_and_its_results_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.warns(RuntimeWarning, match="Running trial code without runtime"):
        assert get_next_parameter() == {}
    with caplog.at_level(logging.INFO, "nni"):
        report_intermediate_result(1)
        report_intermediate_result(2)
        report_final_result(3)
    said = ["Intermediate result: 1  (Index 0)", "Intermediate result: 2  (Index 1)", "Final result: 3"]
    assert caplog.messages == said


def test_channel_can_be_put_back() -> None:
    before = get_default_trial_command_channel()
    set_default_trial_command_channel(Kept())
    set_default_trial_command_channel(before)
    assert get_default_trial_command_channel() is before


def test_trial_of_an_experiment_has_its_own_channel_and_arrays_are_reported(tmp_path: Path) -> None:
    record = tmp_path / "parameters.json"
    record.write_text('{"parameter_id": 0, "parameters": {"x": 2}}')
    spool = tmp_path / "reports.jsonl"
    names = {"PITCHPIPE_REPORTS": str(spool), "PITCHPIPE_PARAMETERS": str(record), "PITCHPIPE_BUDGET": "3.0"}
    current.enter(SpoolChannel(names))
    assert get_next_parameter() == {"x": 2, "TRIAL_BUDGET": 3}
    overwrite_intermediate_seq(9)  # the manager counts
    report_intermediate_result(np.array([1, 2]))
    own = get_default_trial_command_channel()
    assert own.receive_parameter()["parameters"]["x"] == 2
    own.send_metric(type="FINAL", parameter_id=0, trial_job_id="", sequence=0, value=0.5)
    lines = [json.loads(line) for line in spool.read_text().splitlines() if line]
    assert lines[0]["intermediate"]["__ndarray__"] == [1, 2]
    assert lines[1]["final"] == 0.5


def test_channel_has_to_override_both_methods() -> None:
    with pytest.raises(NotImplementedError, match="does not override receive_parameter"):
        TrialCommandChannel().receive_parameter()
    with pytest.raises(NotImplementedError, match="does not override send_metric"):
        TrialCommandChannel().send_metric("FINAL", 0, "", 0, 1)
