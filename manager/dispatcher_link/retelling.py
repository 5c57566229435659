"""What a new dispatcher is told of an experiment that an earlier one worked on."""

from __future__ import annotations

import json
from collections.abc import Iterable

from ...protocol import CommandType, dumps, parameters_of
from ...runner import SendCommand, Trial, TrialRunner
from ...store import Record

__all__ = ["history_of", "user_imports"]


def history_of(runner: TrialRunner) -> list[SendCommand]:
    """The commands that tell a dispatcher what an earlier one knew: results, and which parameter ids are taken."""
    trials = runner.get_trials()
    results = [
        {
            "parameter": parameters_of(trial.record),
            "value": trial.final,
            "trialJobId": trial.trial_id,
        }
        for trial in trials
        if trial.final is not None
    ]
    records = [json.loads(trial.record) for trial in trials]
    return [
        SendCommand(CommandType.ImportData, json.dumps(results)),
        SendCommand(CommandType.AddCustomizedTrialJob, json.dumps(records)),
    ]


def user_imports(commands: Iterable[Record], trials: Iterable[Trial]) -> list[SendCommand]:
    """Return the commands that tell a new dispatcher what users imported; results of `trials` it hears of otherwise."""
    code = CommandType.ImportData.value.decode()
    payloads = [json.loads(payload) for _, sent, payload in commands if sent == code]
    rows = [row for rows in payloads for row in rows if "trialJobId" not in row]
    if not rows:
        return []
    ended = [trial for trial in trials if trial.final is not None]
    own = {dumps([parameters_of(trial.record), trial.final]) for trial in ended}
    told = [row for row in rows if dumps([row["parameter"], row["value"]]) not in own]
    return [SendCommand(CommandType.ImportData, dumps(told))] if told else []
