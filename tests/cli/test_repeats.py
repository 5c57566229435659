"""Repeats on the command line: families in tables, the best mean with its margin, exports."""

from __future__ import annotations

import csv
import io
import json

import pytest

from pitchpipe.protocol import repeated, with_family_end

from .conftest import Call, Storing, make_trial


@pytest.fixture
def repeating(stored: Storing) -> None:
    """Store two families that have ended: the mean of the second is the best, the first has the best run."""
    trials = []
    plan = [(0, 0, 0.9, "raced"), (0, 1, 0.1, ""), (2, 0, 0.6, "complete"), (2, 1, 0.7, ""), (2, 2, None, "")]
    for number, (family, repeat, value, end) in enumerate(plan):
        trial = make_trial(number, "SUCCEEDED" if value is not None else "FAILED", {"lr": family / 10}, value)
        trial.record = repeated(trial.record, family, repeat, 40 + repeat)
        trial.record = with_family_end(trial.record, end) if end else trial.record
        trials.append(trial)
    stored(more={"trialCommand": "true", "repeats": {"count": 3}}).write("e", trials)


def test_best_of_families_is_the_one_with_the_best_mean(repeating: None, call: Call) -> None:
    best = json.loads(call("status", "e", "--json").out)["best"]
    assert (best["sequence_id"], best["value"]) == (2, pytest.approx(0.65))
    assert (best["repeats"]["trials"], best["repeats"]["count"]) == ([2, 3, 4], 2)
    found = json.loads(call("trials", "e", "--families", "--sort", "best", "--json").out)
    assert [(one["sequence_id"], one["repeats"]["trials"]) for one in found] == [(2, [2, 3, 4]), (0, [0, 1])]


def test_compare_counts_families_beside_trials(repeating: None, stored: Storing, call: Call) -> None:
    stored().write("once", [make_trial(0, "SUCCEEDED", None, 0.5)])
    assert "family" not in call("export", "once", "--format", "csv").out
    sides = json.loads(call("compare", "e", "once", "--json").out)["experiments"]
    assert [(side["succeeded"], side.get("families")) for side in sides] == [(4, 2), (1, None)]


def test_exports_have_the_repeats(repeating: None, call: Call) -> None:
    rows = list(csv.DictReader(io.StringIO(call("export", "e", "--format", "csv").out)))
    assert list(rows[0])[-4:-1] == ["family", "repeat", "seed"]
    assert [(row["family"], row["repeat"], row["seed"]) for row in rows[2:]] == [
        ("2", "0", "40"),
        ("2", "1", "41"),
        ("2", "2", "42"),
    ]
    whole = json.loads(call("export", "e").out)
    assert [one["sequence_id"] for one in whole["experiment"]["families"]] == [0, 2]
    assert (whole["trials"][3]["family"], whole["trials"][3]["repeat"]) == (2, 1)


def test_families_have_the_columns_and_orders_of_trials(repeating: None, call: Call) -> None:
    shown = call(
        "trials", "e", "--families", "--columns", "family,lr,default", "--sort", "-lr"
    ).out.splitlines()
    assert [line.split()[0] for line in shown] == ["#", "2", "0"]
    assert shown[1].split()[-4:] == ["0.2", "0.65", "±", "0.64"]
    refused = call("trials", "e", "--families", "--sort", "tags")
    assert (refused.code, "--sort: families have no tags" in refused.err) == (2, True)
