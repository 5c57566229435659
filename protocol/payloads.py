"""The payloads of the commands on the pipe: the type of each, and the text of those that the manager sends.

All are JSON. `Initialize` and `UpdateSearchSpace` have the search space, `RequestTrialJobs` a number, `NewTrialJob` and
`NoMoreTrialJobs` a `ParameterRecord`, `AddCustomizedTrialJob` a list of them, `Terminate` and `Ping` nothing.

A result needs several of these texts, so they are formatted: JSON text is not parsed and dumped again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from json.encoder import encode_basestring_ascii as quoted
from typing import Literal, NotRequired, TypedDict

from .json_types import Json, Parameters
from .record import parameters_of


class MetricMessage(TypedDict):
    """ReportMetricData: a result of a trial; `value` is its JSON text, as in NNI."""

    parameter_id: int | str | None
    trial_job_id: str
    type: Literal["PERIODICAL", "FINAL"]
    sequence: int
    value: str
    parameters: NotRequired[Json]  # a manager of NNI sends those that a user has added
    repeat: NotRequired[int]  # of one repeat of a family
    repeats: NotRequired[list[Json]]  # the results of all repeats, whose mean is the `value`
    imported: NotRequired[bool]  # of a starting point, for the assessor alone: the tuner has it by ImportData
    spared: NotRequired[bool]  # of the defaults: the assessor learns from it, and does not end the trial


class ImportItem(TypedDict):
    """ImportData has a list of these; without a value, the parameters are a starting point that runs already."""

    parameter: Parameters
    value: NotRequired[Json]  # or its JSON text
    source: NotRequired[int]  # the number of an earlier search, whose losses are on another scale
    trialJobId: NotRequired[str]


class TrialEndMessage(TypedDict):
    """TrialEnd: the status with which a trial ended, its parameter record as JSON text, and the kind of failure."""

    trial_job_id: str
    event: str
    hyper_params: str
    failure_kind: NotRequired[str]
    repeat: NotRequired[int]


class InitializedMessage(TypedDict):
    """Initialized: the version of the protocol, and what the dispatcher wants of the results."""

    protocol: int
    periodical_queues: list[str]
    any_results: list[str]
    learns: bool


class VerdictMessage(TypedDict):
    """KillTrialJob and Pause; to a manager of NNI, KillTrialJob has the id of the trial alone."""

    trial_job_id: str
    reason: str
    by: NotRequired[Literal["tuner"]]


class ResumeMessage(TypedDict):
    """Resume: a paused trial continues, with other parameters or from another trial's checkpoint if they are given."""

    trial_job_id: str
    parameters: Mapping[str, Json] | None
    checkpoint_of: str | None
    budget: float | None
    pauses_at_budget: NotRequired[bool]


class ProcessedMessage(TypedDict):
    """Processed: a queue has handled all commands up to number `n`."""

    queue: str
    n: int


class CheckpointMessage(TypedDict, total=False):
    """Checkpoint: after command `n` a queue has saved its half, or the file is complete; or why one is unusable."""

    queue: str
    path: str
    n: int
    unusable: str


class ErrorMessage(TypedDict):
    """Error: whose fault it is, what happened and where, and at which command."""

    plugin: str
    type: str
    message: str
    where: str
    traceback: str
    command: int | None


def metric_payload(
    parameter_id: int | str | None,
    trial_id: str,
    kind: str,
    sequence: int,
    value: str,
    *,
    repeat: int | None = None,
    repeats: Sequence[str] = (),
    is_imported: bool = False,
    is_spared: bool = False,
) -> str:
    """Return a `MetricMessage`; `repeats` are JSON texts.

    >>> metric_payload(3, "AbCdE", "FINAL", 0, "0.5")
    '{"parameter_id": 3, "trial_job_id": "AbCdE", "type": "FINAL", "sequence": 0, "value": "0.5"}'
    >>> metric_payload(3, "AbCdE", "FINAL", 0, "0.4", repeats=["0.5", "0.3"])[-29:]
    '"0.4", "repeats": [0.5, 0.3]}'
    """
    more = "" if repeat is None else f', "repeat": {repeat}'
    if repeats:
        more += f', "repeats": [{", ".join(repeats)}]'
    if is_imported:
        more += ', "imported": true'
    if is_spared:
        more += ', "spared": true'
    return (
        f'{{"parameter_id": {_id(parameter_id)}, "trial_job_id": "{trial_id}", '
        f'"type": "{kind}", "sequence": {sequence}, "value": {quoted(value)}{more}}}'
    )


def trial_end_payload(
    trial_id: str, status: str, record: str, *, kind: str | None = None, repeat: int | None = None
) -> str:
    """Return a `TrialEndMessage`; `kind` is that of a failure.

    >>> trial_end_payload("AbCdE", "SUCCEEDED", '{"parameter_id": 0}')
    '{"trial_job_id": "AbCdE", "event": "SUCCEEDED", "hyper_params": "{\\\\"parameter_id\\\\": 0}"}'
    """
    more = "" if kind is None else f', "failure_kind": "{kind}"'
    if repeat is not None:
        more += f', "repeat": {repeat}'
    return f'{{"trial_job_id": "{trial_id}", "event": "{status}", "hyper_params": {quoted(record)}{more}}}'


def import_payload(record: str, value: str | None = None) -> str:
    """Return the list of one `ImportItem`: that of a parameter record, which has no value while it runs.

    >>> import_payload('{"parameter_id": 0, "parameters": {"x": 1}}', "0.5")
    '[{"parameter": {"x": 1}, "value": "0.5"}]'
    >>> import_payload('{"parameter_id": null, "parameters": {"x": 1}}')
    '[{"parameter": {"x": 1}}]'
    """
    result = ImportItem(parameter=parameters_of(record))
    if value is not None:
        result["value"] = value
    return json.dumps([result])


def _id(parameter_id: int | str | None) -> str:
    if parameter_id is None:
        return "null"
    return quoted(parameter_id) if isinstance(parameter_id, str) else str(parameter_id)
