"""An experiment in the forms of NNI's REST API and command line: times in ms, records and results as JSON texts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple, NotRequired, TypedDict

from ...protocol import Json, JsonObject, Parameters
from ...store.reading import ExperimentView, TrialQuery, TrialRow

_ALL = TrialQuery(limit=None)


class NniProfile(TypedDict):
    """The config and how far the experiment is."""

    id: str
    params: JsonObject
    execDuration: int
    logDir: str
    startTime: int | None
    endTime: NotRequired[int | None]
    nextSequenceId: int
    revision: int


class NniMetadata(TypedDict):
    """A line in the list of all experiments."""

    id: str
    experimentName: str
    status: str
    platform: str
    startTime: int | None
    endTime: int | str
    logDir: str


class NniStatistic(TypedDict):
    """How many trials have a status."""

    trialJobStatus: str
    trialJobNumber: int


class NniMetric(TypedDict):
    """A result; `data` is the JSON text of a JSON text."""

    timestamp: int | None
    trialJobId: str
    parameterId: str | None
    type: str
    sequence: int
    data: str


class NniJob(TypedDict):
    """A trial; what it does not have yet is left out."""

    trialJobId: str
    status: str
    hyperParameters: list[str]
    logPath: str
    sequenceId: int
    startTime: NotRequired[int | None]
    endTime: NotRequired[int | None]
    message: NotRequired[str | None]
    finalMetricData: NotRequired[list[NniMetric] | None]


class NniExport(TypedDict):
    """A succeeded trial; results are JSON texts."""

    parameter: Parameters
    value: str
    trialJobId: str
    intermediate: NotRequired[list[str]]


class TrialReport(NamedTuple):
    """A result of a trial as it was reported; `kind` is PERIODICAL or FINAL."""

    trial: TrialRow
    kind: str
    sequence: int
    time: float | None
    value: Json


def reports_of(
    view: ExperimentView, trials: Sequence[TrialRow], *, latest: bool = False
) -> Iterator[TrialReport]:
    """Yield the results of trials, of each the intermediate ones first; with `latest` the newest of those only."""
    reported = view.reports_of([trial.sequence_id for trial in trials])
    for trial in trials:
        rows = reported.get(trial.sequence_id, [])
        for row in rows[-1:] if latest else rows:
            yield TrialReport(trial, "PERIODICAL", *row)
        yield from final_reports(trial)


def final_reports(trial: TrialRow) -> list[TrialReport]:
    """Return the final result of a trial, if it has one."""
    return [] if trial.final is None else [TrialReport(trial, "FINAL", 0, trial.end_time, trial.final)]


def nni_profile(view: ExperimentView) -> NniProfile:
    """Return the config as `params`, and how far the experiment is."""
    summary = view.summary()
    profile: NniProfile = {
        "id": summary.id,
        "params": {**view.config(), "experimentWorkingDirectory": str(view.folder.path.parent)},
        "execDuration": int(summary.run_time),
        "logDir": str(view.folder.path),
        "startTime": _ms(summary.created),
        "endTime": _ms(summary.end_time),
        "nextSequenceId": summary.trials,
        "revision": 1,
    }
    if summary.end_time is None:
        del profile["endTime"]
    return profile


def nni_metadata(view: ExperimentView) -> NniMetadata:
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


def nni_statistics(view: ExperimentView) -> list[NniStatistic]:
    """Return how many trials have each status."""
    counts = view.summary().counts.items()
    return [{"trialJobStatus": status, "trialJobNumber": number} for status, number in counts if number]


def nni_jobs(view: ExperimentView, query: TrialQuery = _ALL) -> list[NniJob]:
    """Return trials as NNI's TrialJobInfo."""
    return [nni_job(view, trial) for trial in view.trials(query).trials]


def nni_job(view: ExperimentView, trial: TrialRow) -> NniJob:
    """Return a row of `view.trials()`, or a `view.trial()`, as NNI's TrialJobInfo."""
    number = trial.sequence_id
    job: NniJob = {
        "trialJobId": trial.trial_id,
        "status": trial.status,
        "hyperParameters": [view.record(number)],
        "logPath": str(view.folder.trial(number)),
        "sequenceId": number,
        "startTime": _ms(trial.start_time),
        "endTime": _ms(trial.end_time),
        "message": trial.reason or None,
        "finalMetricData": [*map(_metric, final_reports(trial))] if trial.status == "SUCCEEDED" else None,
    }
    for key in ("startTime", "endTime", "message", "finalMetricData"):
        if job.get(key) is None:
            del job[key]
    return job


def nni_metrics(
    view: ExperimentView, name: str | None = None, *, latest: bool = False
) -> Iterator[NniMetric]:
    """Yield the results of one trial or of all, as `reports_of` does."""
    for trials in view.portions() if name is None else [[view.trial(name)]]:
        yield from map(_metric, reports_of(view, trials, latest=latest))


def nni_export(view: ExperimentView, *, intermediate: bool = False) -> Iterator[NniExport]:
    """Yield the succeeded trials, perhaps with their intermediate results."""
    for trial, results in view.with_results() if intermediate else _without_results(view):
        if trial.status != "SUCCEEDED":
            continue
        final = json.dumps(trial.final)
        row: NniExport = {"parameter": trial.parameters, "value": final, "trialJobId": trial.trial_id}
        if intermediate:
            row["intermediate"] = [*map(json.dumps, results.values()), final]
        yield row


def _without_results(view: ExperimentView) -> Iterator[tuple[TrialRow, dict[int, Json]]]:
    return ((trial, {}) for trials in view.portions() for trial in trials)


def _metric(report: TrialReport) -> NniMetric:
    return {
        "timestamp": _ms(report.time),
        "trialJobId": report.trial.trial_id,
        "parameterId": None,
        "type": report.kind,
        "sequence": report.sequence,
        "data": json.dumps(json.dumps(report.value)),
    }


def _ms(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1000)
