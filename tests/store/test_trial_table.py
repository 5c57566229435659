"""The row of a trial, and the trial of a row."""

from __future__ import annotations

from typing import Any

import pytest

from pitchpipe.runner import Cause, FailureKind, Trial, TrialStatus, Verdict
from pitchpipe.store.trial_table import row_to_trial, trial_to_row


def a_trial(**values: Any) -> Trial:
    return Trial(trial_id="AbCdE", sequence_id=7, parameter_id=3, record="{}", created=12.5, **values)


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"status": TrialStatus.FAILED, "kind": FailureKind.OOM, "failed": {"OOM": 2}},
        {"gpus": (0, 2), "slot": 1, "agent": "1-0", "pid": 4711},
        {"verdict": Verdict(Cause.PAUSED, "rung 0", None)},
        {"verdict": Verdict(Cause.ENDED_BADLY, "", FailureKind.KILLED)},
        {
            "checkpoint": "trials/7/checkpoints/1-1",
            "checkpoint_sequence": 3,
            "copy_of": "trials/0/checkpoints/1-4",
        },
    ],
)
def test_trial_is_the_same_after_its_row(values: dict[str, Any]) -> None:
    trial = a_trial(**values)
    assert row_to_trial(trial_to_row(trial)) == trial


@pytest.mark.parametrize("parameter_id", [0, 12, "2_0_1", "7", None])
def test_parameter_id_keeps_its_type(parameter_id: int | str | None) -> None:
    trial = a_trial()
    trial.parameter_id = parameter_id
    assert row_to_trial(trial_to_row(trial)).parameter_id == parameter_id


def test_values_are_not_in_the_row() -> None:
    assert row_to_trial(trial_to_row(a_trial(values=(0.5,)))).values is None
