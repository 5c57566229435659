"""The payloads of commands are JSON, whatever text a trial or the tuner sends."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from pitchpipe.protocol.payloads import import_payload, metric_payload, trial_end_payload
from pitchpipe.runner.events import added_trial

IDS = st.none() | st.integers(0, 10**9) | st.text(max_size=5)


@given(IDS, st.integers(0, 10**6), st.text(max_size=20))
def test_metric_is_what_a_json_library_would_write(
    parameter_id: int | str | None, sequence: int, value: str
) -> None:
    assert json.loads(metric_payload(parameter_id, "AbCdE", "PERIODICAL", sequence, value)) == {
        "parameter_id": parameter_id,
        "trial_job_id": "AbCdE",
        "type": "PERIODICAL",
        "sequence": sequence,
        "value": value,
    }


@given(st.text(max_size=20))
def test_end_of_a_trial_has_its_parameter_record_as_text(record: str) -> None:
    payload = json.loads(trial_end_payload("AbCdE", "FAILED", record))
    assert payload == {"trial_job_id": "AbCdE", "event": "FAILED", "hyper_params": record}


def test_end_of_a_failed_trial_has_the_kind_of_failure() -> None:
    assert json.loads(trial_end_payload("AbCdE", "FAILED", "{}", kind="OOM"))["failure_kind"] == "OOM"


def test_parameters_of_an_added_trial_come_back_when_its_result_is_imported() -> None:
    event = added_trial({"x": 0.5, "name": "\u00e9"}, 12.5)
    assert json.loads(import_payload(event.record, "1")) == [
        {"parameter": {"x": 0.5, "name": "\u00e9"}, "value": "1"}
    ]
