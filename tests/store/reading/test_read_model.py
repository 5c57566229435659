"""What follows from the fields of a summary; tests/test_json_keys.py has what is written of all dataclasses."""

from __future__ import annotations

from typing import Any

import pytest

from pitchpipe.store.reading import Goal

from ...stored import a_summary


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"status": "RUNNING"}, True),
        ({"status": "RUNNING", "is_running": True}, False),
        ({"status": "RUNNING", "is_search": True}, False),
        ({"status": "DONE"}, False),
    ],
    ids=str,
)
def test_experiment_that_should_run_without_a_manager_is_abandoned(
    fields: dict[str, Any], expected: bool
) -> None:
    assert a_summary(**fields).is_abandoned is expected


def test_metrics_are_those_that_are_optimised_and_those_that_are_limited() -> None:
    goals = [Goal("loss", "minimize"), Goal("f1", "maximize")]
    limits = {"ms": "<= 20", "f1": ">= 0.5"}
    assert a_summary(objectives=goals, outcome_limits=limits).metrics == ["loss", "f1", "ms"]
