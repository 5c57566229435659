"""The texts of the limits: what is wrong is said with the label of its field."""

from __future__ import annotations

import re

import pytest

from pitchpipe.server.ui.limits import changes_of


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("max_trial_number", "some", "Number of trials must be a whole number from 1 on, not 'some'"),
        ("trial_concurrency", "0", "Trials at a time must be a whole number from 1 on, not '0'"),
        ("trial_concurrency", "", "Trials at a time cannot be empty"),
        (
            "max_experiment_duration",
            "2 hours",
            "Duration of the experiment must be a time such as 90m, 12h or 2d, not '2 hours'",
        ),
        (
            "max_experiment_duration",
            "0",
            "Duration of the experiment must be a time such as 90m, 12h or 2d, not '0'",
        ),
    ],
)
def test_problem_of_a_limit_names_its_field(name: str, text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        changes_of({name: text}, {name: "7"})


@pytest.mark.parametrize(("text", "seconds"), [("2h", 7200.0), ("1.5h", 5400.0), ("90", 90.0)])
def test_duration_is_read_with_its_unit_or_as_seconds(text: str, seconds: float) -> None:
    assert changes_of({"max_experiment_duration": text}, {}) == {"max_experiment_duration": seconds}
