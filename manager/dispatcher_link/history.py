"""The commands by which a new dispatcher learns what an earlier one knew."""

from __future__ import annotations

import json
from collections.abc import Iterable

from ...protocol import CommandType, dumps, parameters_of
from ...runner import SendCommand, Trial, TrialRunner
from ...store import Record

__all__ = ["history_of", "user_imports"]


def history_of(runner: TrialRunner) -> list[SendCommand]:
    """Return the commands that pass on all results and the parameter ids in use."""
    trials = runner.get_trials()
    results = [
        {"parameter": parameters_of(trial.record), "value": trial.final, "trialJobId": trial.trial_id}
        for trial in trials
        if trial.final is not None
    ]
    records = [json.loads(trial.record) for trial in trials]
    return [
        SendCommand(CommandType.ImportData, json.dumps(results)),
        SendCommand(CommandType.AddCustomizedTrialJob, json.dumps(records)),
    ]


def user_imports(commands: Iterable[Record], trials: Iterable[Trial]) -> list[SendCommand]:
    """Return the commands that pass on what users imported, except results of `trials` themselves."""
    code = CommandType.ImportData.value.decode()
    payloads = [json.loads(payload) for _, sent, payload in commands if sent == code]
    rows = [row for rows in payloads for row in rows if "trialJobId" not in row]
    if not rows:
        return []
    own = {dumps([parameters_of(trial.record), trial.final]) for trial in trials if trial.final is not None}
    imported = [row for row in rows if dumps([row["parameter"], row["value"]]) not in own]
    return [SendCommand(CommandType.ImportData, dumps(imported))] if imported else []
