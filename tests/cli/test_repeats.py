"""Repeats on the command line: families in tables, the best mean with its margin, exports."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from typing import Any

import pytest

from pitchpipe.protocol import repeated, with_family_end

HEAD = ["#", "id", "family", "status", "result", "took", "parameters", "reason"]


@pytest.fixture
def repeating(stored: Callable[..., Any], trial_of: Callable[..., Any]) -> None:
    """Store two families that have ended: the mean of the second is the best, the first has the best run."""
    trials = []
    plan = [(0, 0, 0.9, "raced"), (0, 1, 0.1, ""), (2, 0, 0.6, "complete"), (2, 1, 0.7, ""), (2, 2, None, "")]
    for number, (family, repeat, value, end) in enumerate(plan):
        trial = trial_of(number, "SUCCEEDED" if value is not None else "FAILED", {"lr": family / 10}, value)
        trial.record = repeated(trial.record, family, repeat, 40 + repeat)
        trial.record = with_family_end(trial.record, end) if end else trial.record
        trials.append(trial)
    stored(more={"trialCommand": "true", "repeats": {"count": 3}}).write("e", trials)


def test_status_names_the_family_with_the_best_mean(repeating: None, call: Callable[..., Any]) -> None:
    assert "best: 0.65 ± 0.64 (mean of 2 of 3 repeats, family 2)" in call("status", "e").out
    best = json.loads(call("status", "e", "--json").out)["best"]
    assert (best["sequence_id"], best["value"]) == (2, pytest.approx(0.65))
    assert (best["repeats"]["trials"], best["repeats"]["count"]) == ([2, 3, 4], 2)


def test_trials_are_shown_with_their_family_or_as_families(repeating: None, call: Callable[..., Any]) -> None:
    lines = call("trials", "e").out.splitlines()
    assert lines[0].split() == HEAD
    assert "2, repeat 1" in lines[4]
    lines = call("trials", "e", "--families", "--sort", "best").out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["2", "0"]
    assert "mean of 2 of 3 repeats" in lines[1]
    assert "0.65 ± 0.64" in lines[1]
    assert lines[1].endswith("1 repeat has no result")
    assert "clearly worse than the best: it got no further repeats" in lines[2]
    for order, numbers in (("value.default", ["0", "2"]), ("-value.default", ["2", "0"])):
        lines = call("trials", "e", "--families", "--sort", order).out.splitlines()
        assert [line.split()[0] for line in lines[1:]] == numbers
    lines = call("trials", "e", "--families", "--limit", "1").out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["2"]
    found = json.loads(call("trials", "e", "--families", "--sort", "best", "--json").out)
    assert [(one["sequence_id"], one["repeats"]["trials"]) for one in found] == [(2, [2, 3, 4]), (0, [0, 1])]


def test_family_that_was_cut_off_comes_after_whole_ones(
    stored: Callable[..., Any], trial_of: Callable[..., Any], call: Callable[..., Any]
) -> None:
    trials = []
    plan = [(0, 0.9, "complete"), (1, 0.8, "raced"), (2, 0.7, ""), (3, 0.1, "complete"), (4, 0.2, "complete")]
    for number, value, end in plan:
        trial = trial_of(number, "SUCCEEDED", None, value)
        trial.record = repeated(trial.record, number, 0, 40)
        trial.record = with_family_end(trial.record, end) if end else trial.record
        trials.append(trial)
    stored(more={"trialCommand": "true", "repeats": {"count": 3}}).write("e", trials)
    lines = call("trials", "e", "--families", "--sort", "best").out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["0", "4", "3", "1", "2"]


def test_single_repeat_names_its_family_and_is_never_ranked_among_means(
    repeating: None, call: Callable[..., Any]
) -> None:
    shown = call("trial", "show", "e", 3).out.splitlines()
    assert "repeat        1 of family 2" in shown
    assert "family        trials 2, 3, 4; mean of 2 of 3 repeats 0.65 ± 0.64" in shown
    assert "seed          41" in shown
    why = "It is repeat {} of family {}, mean of 2 of 3 repeats {}, {} of 2 families; {}."
    said = call("trial", "show", "e", 0, "--why").out.splitlines()
    raced = why.format(0, 0, "0.5 ± 5.1", "rank 2", "clearly worse than the best: it got no further repeats")
    assert said[1:] == ["  Its result is 0.9.", "  " + raced]
    best = ("0.65 ± 0.64", "the best", "1 repeat has no result")
    assert why.format(1, 2, *best) in call("trial", "show", "e", 3, "--why").out
    assert why.format(2, 2, *best) in call("trial", "show", "e", 4, "--why").out  # which has failed


def test_family_that_the_end_of_the_experiment_cut_short_is_cancelled(
    stored: Callable[..., Any], trial_of: Callable[..., Any], call: Callable[..., Any]
) -> None:
    alone = trial_of(0, "SUCCEEDED", None, 0.5)
    alone.record = repeated(alone.record, 0, 0, 40)
    stored(more={"trialCommand": "true", "repeats": {"count": 3}}).write("e", [alone])
    (_, family) = call("trials", "e", "--families").out.splitlines()
    assert "SYS_CANCELED" in family
    assert family.endswith("the experiment ended before its other repeats")


def test_why_of_a_repeat_with_several_objectives_places_its_family(
    stored: Callable[..., Any], trial_of: Callable[..., Any], call: Callable[..., Any]
) -> None:
    trials = []
    for number, values in enumerate([(0.9, 9.0), (0.7, 7.0), (0.6, 8.0), (0.6, 8.0)]):
        family = number // 2 * 2
        trial = trial_of(number, "SUCCEEDED", None, dict(zip(("a", "ms"), values, strict=True)))
        trial.record = with_family_end(repeated(trial.record, family, number % 2, 40), "complete")
        trials.append(trial)
    objectives = [{"name": "a", "direction": "maximize"}, {"name": "ms", "direction": "minimize"}]
    stored(objectives=objectives, more={"trialCommand": "true", "repeats": {"count": 2}}).write("e", trials)
    said = [line.strip() for line in call("trial", "show", "e", 0, "--why").out.splitlines()]
    assert said[1:] == [
        "Its results are a 0.9, ms 9.",
        "It is repeat 0 of family 0, mean of 2 repeats a 0.8 ± 1.3, ms 8 ± 13.",
        "Its family is on the Pareto front of 1 family: no other is as good in every objective.",
    ]
    place = "Its family is not on the Pareto front: family 0 is better in at least one objective and no worse in any."
    assert place in call("trial", "show", "e", 2, "--why").out


def test_families_of_an_experiment_without_repeats_are_an_error(
    stored: Callable[..., Any], trial_of: Callable[..., Any], call: Callable[..., Any]
) -> None:
    stored().write("e", [trial_of(0, "SUCCEEDED", None, 0.5)])
    failed = call("trials", "e", "--families")
    assert failed.code == 2
    assert "the configurations of this experiment run once: it has no repeats" in failed.err
    assert "family" not in call("export", "e", "--format", "csv").out


def test_compare_counts_families_beside_trials(
    repeating: None, stored: Callable[..., Any], trial_of: Callable[..., Any], call: Callable[..., Any]
) -> None:
    stored().write("once", [trial_of(0, "SUCCEEDED", None, 0.5)])
    called = call("compare", "e", "once")
    assert "this compares means of repeats with single runs" in called.err
    rows = {line.split()[0]: line.split()[1:] for line in called.out.splitlines()[1:] if line}
    assert (rows["succeeded"], rows["families"]) == (["4", "1"], ["2", "-"])
    sides = json.loads(call("compare", "e", "once", "--json").out)["experiments"]
    assert [(side["succeeded"], side.get("families")) for side in sides] == [(4, 2), (1, None)]


def test_exports_have_the_repeats(repeating: None, call: Callable[..., Any]) -> None:
    rows = list(csv.DictReader(io.StringIO(call("export", "e", "--format", "csv").out)))
    assert list(rows[0])[-3:] == ["family", "repeat", "seed"]
    assert [(row["family"], row["repeat"], row["seed"]) for row in rows[2:]] == [
        ("2", "0", "40"),
        ("2", "1", "41"),
        ("2", "2", "42"),
    ]
    whole = json.loads(call("export", "e").out)
    assert [one["sequence_id"] for one in whole["experiment"]["families"]] == [0, 2]
    assert (whole["trials"][3]["family"], whole["trials"][3]["repeat"]) == (2, 1)
