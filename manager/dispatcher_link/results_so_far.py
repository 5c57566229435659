"""The commands by which a new dispatcher learns what an earlier one knew."""

from __future__ import annotations

import json
from collections.abc import Iterable

from ...protocol import CommandType, dumps, parameters_of
from ...runner import SendCommand, Trial, TrialRunner
from ...store import RecordRow


def history_of(runner: TrialRunner) -> list[SendCommand]:
    """Return the commands that pass on all results and the parameter ids in use."""
    results = [
        {"parameter": parameters_of(trial.record), "value": value, "trialJobId": trial.trial_id}
        for trial, value in runner.results()
    ]
    records = [json.loads(trial.record) for trial in runner.get_trials()]
    return [
        SendCommand(CommandType.ImportData, json.dumps(results)),
        SendCommand(CommandType.AddCustomizedTrialJob, json.dumps(records)),
    ]


def user_imports(commands: Iterable[RecordRow], results: Iterable[tuple[Trial, str]]) -> list[SendCommand]:
    """Return the commands that pass on what users imported, except the `results` of trials themselves."""
    code = CommandType.ImportData.code
    payloads = [json.loads(payload) for _, sent, payload in commands if sent == code]
    rows = [row for rows in payloads for row in rows if "trialJobId" not in row]
    if not rows:
        return []
    own = {dumps([parameters_of(trial.record), value]) for trial, value in results}
    imported = [row for row in rows if dumps([row["parameter"], row.get("value")]) not in own]
    return [SendCommand(CommandType.ImportData, dumps(imported))] if imported else []
