"""The payloads of commands, formatted as text because they are needed for every result.

JSON text is not parsed and dumped again; NNI's format has a metric's value as JSON in JSON.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from json.encoder import encode_basestring_ascii as quoted

from .record import parameters_of, repeat_of

# Marks the final result of a starting point: the tuner has it by ImportData, only the assessor takes it.
IMPORTED = ', "imported": true'


def metric_payload(
    parameter_id: int | str | None, trial_id: str, kind: str, sequence: int, value: str, more: str = ""
) -> str:
    """Return the payload of ReportMetricData (PERIODICAL or FINAL).

    >>> metric_payload(3, "AbCdE", "FINAL", 0, "0.5")
    '{"parameter_id": 3, "trial_job_id": "AbCdE", "type": "FINAL", "sequence": 0, "value": "0.5"}'
    """
    return (
        f'{{"parameter_id": {_id(parameter_id)}, "trial_job_id": "{trial_id}", '
        f'"type": "{kind}", "sequence": {sequence}, "value": {quoted(value)}{more}}}'
    )


def trial_end_payload(
    trial_id: str, status: str, record: str, more: str = "", kind: str | None = None
) -> str:
    """Return the payload of TrialEnd; `kind` is that of a failure.

    >>> trial_end_payload("AbCdE", "SUCCEEDED", '{"parameter_id": 0}')
    '{"trial_job_id": "AbCdE", "event": "SUCCEEDED", "hyper_params": "{\\\\"parameter_id\\\\": 0}"}'
    """
    cause = "" if kind is None else f', "failure_kind": "{kind}"'
    return f'{{"trial_job_id": "{trial_id}", "event": "{status}", "hyper_params": {quoted(record)}{cause}{more}}}'


def of_repeat(record: str) -> str:
    """Return the field that marks a command about one repeat of a family; empty if the trial is not repeated.

    >>> of_repeat('{"parameters": {"x": 1}, "family": 7, "repeat": 2}'), of_repeat('{"parameters": {"x": 1}}')
    (', "repeat": 2', '')
    """
    place = repeat_of(record) if '"repeat"' in record else None  # most records have none
    return "" if place is None else f', "repeat": {place[1]}'


def with_results(results: Sequence[str]) -> str:
    """Return the field with the results (JSON texts) of a family's repeats.

    >>> with_results(["0.5", "0.25"])
    ', "repeats": [0.5, 0.25]'
    """
    return f', "repeats": [{", ".join(results)}]'


def import_payload(record: str, value: str) -> str:
    """Return the payload of ImportData for the result of one parameter record.

    >>> import_payload('{"parameter_id": 0, "parameters": {"x": 1}}', "0.5")
    '[{"parameter": {"x": 1}, "value": "0.5"}]'
    """
    return json.dumps([{"parameter": parameters_of(record), "value": value}])


def running_payload(record: str) -> str:
    """Return the payload of ImportData for a parameter record that has no result yet.

    >>> running_payload('{"parameter_id": null, "parameters": {"x": 1}}')
    '[{"parameter": {"x": 1}}]'
    """
    return json.dumps([{"parameter": parameters_of(record)}])


def _id(parameter_id: int | str | None) -> str:
    if parameter_id is None:
        return "null"
    return quoted(parameter_id) if isinstance(parameter_id, str) else str(parameter_id)
