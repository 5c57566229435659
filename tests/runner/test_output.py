"""The output of the runner: effects in order, changes since the last commit."""

from __future__ import annotations

from pitchpipe.protocol import CommandType
from pitchpipe.runner.changes import Changes
from pitchpipe.runner.effects import SendCommand
from pitchpipe.runner.output import Output
from pitchpipe.runner.trial import Trial


def test_commands_become_effects_in_order() -> None:
    output = Output()
    output.send(CommandType.RequestTrialJobs, "2")
    output.send(CommandType.ReportMetricData, "{}", is_periodical=True)
    assert output.effects == [
        SendCommand(CommandType.RequestTrialJobs, "2"),
        SendCommand(CommandType.ReportMetricData, "{}", True),
    ]


def test_changes_are_taken_once() -> None:
    output = Output()
    trial = Trial(trial_id="AbCdE", sequence_id=0, parameter_id=0, record="{}", created=0.0)
    output.note(trial)
    output.note(trial)
    assert output.take_changes() == Changes(trials={"AbCdE": trial})
    assert output.take_changes() == Changes()
