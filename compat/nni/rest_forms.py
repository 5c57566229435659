"""An experiment in the forms of NNI's REST API and command line: times in ms, records and results as JSON texts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ...store.reading import ExperimentView, TrialQuery, TrialRow

_ALL = TrialQuery(limit=None)


def nni_profile(view: ExperimentView) -> dict[str, Any]:
    """Return the config as `params`, and how far the experiment is."""
    summary = view.summary()
    profile = {
        "id": summary.id,
        "params": {**view.config(), "experimentWorkingDirectory": str(view.folder.path.parent)},
        "execDuration": int(summary.run_time),
        "logDir": str(view.folder.path),
        "startTime": _ms(summary.created),
        "endTime": _ms(summary.end_time),
        "nextSequenceId": summary.trials,
        "revision": 1,
    }
    return {key: value for key, value in profile.items() if value is not None}


def nni_metadata(view: ExperimentView) -> dict[str, Any]:
    """Return the line of an experiment in NNI's list of all."""
    summary = view.summary()
    return {
        "id": summary.id,
        "experimentName": summary.name or "",
        "status": summary.status,
        "platform": view.config()["trainingService"]["platform"],
        "startTime": _ms(summary.created),
        "endTime": _ms(summary.end_time) or "N/A",
        "logDir": str(view.folder.path.parent),
    }


def nni_statistics(view: ExperimentView) -> list[dict[str, Any]]:
    """Return how many trials have each status."""
    counts = view.summary().counts
    return [
        {"trialJobStatus": status, "trialJobNumber": number} for status, number in counts.items() if number
    ]


def nni_jobs(view: ExperimentView, query: TrialQuery = _ALL) -> list[dict[str, Any]]:
    """Return trials as NNI's TrialJobInfo."""
    return [nni_job(view, trial) for trial in view.trials(query).trials]


def nni_job(view: ExperimentView, trial: TrialRow) -> dict[str, Any]:
    """Return a row of `view.trials()`, or a `view.trial()`, as NNI's TrialJobInfo."""
    number = trial.sequence_id
    job = {
        "trialJobId": trial.trial_id,
        "status": trial.status,
        "hyperParameters": [view.record(number)],
        "logPath": str(view.folder.trial(number)),
        "sequenceId": number,
        "startTime": _ms(trial.start_time),
        "endTime": _ms(trial.end_time),
        "message": trial.reason or None,
        "finalMetricData": _final(trial) if trial.status == "SUCCEEDED" else None,
    }
    return {key: value for key, value in job.items() if value is not None}


def nni_metrics(
    view: ExperimentView, name: str | None = None, *, latest: bool = False
) -> Iterator[dict[str, Any]]:
    """Yield the results of one trial or of all, the intermediate ones first; with `latest` the newest of those only."""
    for portion in view.portions() if name is None else [[view.trial(name)]]:
        reports = view.reports_of([trial.sequence_id for trial in portion])
        for trial in portion:
            reported = reports.get(trial.sequence_id, [])
            for row in reported[-1:] if latest else reported:
                yield _metric(trial, "PERIODICAL", *row)
            yield from _final(trial)


def nni_export(view: ExperimentView, *, intermediate: bool = False) -> Iterator[dict[str, Any]]:
    """Yield `parameter`, `value` and `trialJobId` of the succeeded trials, and perhaps `intermediate`."""
    every = view.with_results() if intermediate else ((one, {}) for some in view.portions() for one in some)
    for trial, results in every:
        if trial.status != "SUCCEEDED":
            continue
        final = json.dumps(trial.final)
        row = {"parameter": trial.parameters, "value": final, "trialJobId": trial.trial_id}
        if intermediate:
            before = [json.dumps(value) for value in results.values()]
            row["intermediate"] = [*before, final]
        yield row


def _final(trial: TrialRow) -> list[dict[str, Any]]:
    return [] if trial.final is None else [_metric(trial, "FINAL", 0, trial.end_time, trial.final)]


def _metric(trial: TrialRow, kind: str, sequence: int, time: float | None, value: Any) -> dict[str, Any]:
    return {
        "timestamp": _ms(time),
        "trialJobId": trial.trial_id,
        "parameterId": None,
        "type": kind,
        "sequence": sequence,
        "data": json.dumps(json.dumps(value)),
    }


def _ms(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1000)
