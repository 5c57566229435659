"""The best of several objectives, and of those with limits, in the verbs that read."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.protocol import repeated, with_family_end
from pitchpipe.runner.trial import FailureKind

from ..server.made_stores import MadeExperiment, a_config, a_trial
from .results import FRONT


def test_status_shows_what_is_closest_to_the_defaults(directory: Path, call: Callable[..., Any]) -> None:
    defaults = {"lr": 0.5, "units": 16}
    experiment = MadeExperiment(directory / "near", a_config(defaults=defaults, keep_close=True), "DONE")
    experiment.commit(
        a_trial(0, value=1.0, parameters=defaults, source="defaults"),
        a_trial(1, value=0.01, parameters={"lr": 0.6, "units": 16}),
        a_trial(2, value=0.0, parameters={"lr": 0.1, "units": 32}),
    )
    lines = call("status", "near").out.splitlines()
    assert "closest to your defaults: trial 1, 0.01 (best: 0, trial 2); changes: lr 0.5 -> 0.6" in lines
    found = json.loads(call("status", "near", "--json").out)["closest_to_defaults"]
    assert (found["trial"]["trial_id"], found["trial"]["value"]) == ("T0001", 0.01)
    assert found["changes"] == [{"parameter": "lr", "default": 0.5, "value": 0.6}]
    assert [change["parameter"] for change in found["best_changes"]] == ["lr", "units"]


def test_best_of_several_objectives_is_a_list(
    stored: Callable[..., Any], trial_of: Callable[..., Any], call: Callable[..., Any]
) -> None:
    objectives = [{"name": "default", "direction": "maximize"}, {"name": "size", "direction": "minimize"}]
    finals = [{"default": 0.9, "size": 10.0}, {"default": 0.8, "size": 5.0}, {"default": 0.7, "size": 7.0}]
    stored(objectives=objectives).write(
        "two", [trial_of(n, "SUCCEEDED", None, final) for n, final in enumerate(finals)]
    )
    best = json.loads(call("status", "two", "--json").out)["best"]
    assert [(one["sequence_id"], one["value"]) for one in best] == [(0, finals[0]), (1, finals[1])]


def test_end_of_a_long_front_names_the_command_for_the_rest(
    stored: Callable[..., Any], trial_of: Callable[..., Any], call: Callable[..., Any]
) -> None:
    finals = [{"loss": float(n), "f1": 0.05 * n, "ms": 1.0} for n in range(12)]
    stored(objectives=FRONT).write("long", [trial_of(n, "SUCCEEDED", None, f) for n, f in enumerate(finals)])
    (line,) = (line for line in call("status", "long").out.splitlines() if " more: " in line)
    head, _, command = line.partition(": pitchpipe ")
    assert head == "  and 2 more"
    shown = call(*shlex.split(command)).out.splitlines()
    assert len(shown) == 1 + 12


def test_long_front_is_shown_with_its_knee(
    stored: Callable[..., Any], trial_of: Callable[..., Any], call: Callable[..., Any]
) -> None:
    finals = [{"loss": n, "f1": 0.9 * (n >= 11) + 0.001 * n} for n in range(14)]
    stored(objectives=FRONT[:2]).write(
        "knee", [trial_of(n, "SUCCEEDED", None, f) for n, f in enumerate(finals)]
    )
    lines = call("status", "knee").out.splitlines()
    first = lines.index("best: 14 trials on the Pareto front") + 2
    assert [line.split()[0] for line in lines[first : first + 11]] == [*map(str, range(9)), "11", "and"]
    assert "the knee is trial 11" in lines[first + 11]


def test_status_shows_the_front_its_volume_its_knee_and_the_limits(
    front: None, call: Callable[..., Any]
) -> None:
    lines = call("status", "front").out.splitlines()
    first = lines.index("best: 3 trials on the Pareto front") + 1
    assert [line.split()[:4] for line in lines[first : first + 4]] == [
        ["trial", "loss", "f1", "ms"],
        ["3", "1", "0.1", "1"],
        ["2", "2", "0.8", "20"],
        ["0", "4", "0.9", "5"],
    ]
    assert (
        "front: 3 trials, hypervolume 2.6 (from the reference point loss 5, f1 0); the knee is trial 2"
        in lines
    )
    assert "limits: ms <= 20; 1 trial violates them" in lines
    found = json.loads(call("status", "front", "--json").out)
    assert found["front"] == {
        "trials": [0, 2, 3],
        "knee": 2,
        "hypervolume": pytest.approx(2.6),
        "reference": {"loss": 5.0, "f1": 0.0},
        "infeasible": [1],
        "limits": {"ms": "<= 20"},
        "closest": None,
    }
    assert [one["value"] for one in found["best"]] == [
        {"loss": 1.0, "f1": 0.1},
        {"loss": 2.0, "f1": 0.8},
        {"loss": 4.0, "f1": 0.9},
    ]
    assert json.loads(call("export", "front").out)["experiment"]["front"]["knee"] == 2


def test_list_has_the_results_of_one_trial_of_the_front(front: None, call: Callable[..., Any]) -> None:
    assert "loss 2, f1 0.8 (one of 3 on the front)" in call("list").out
    assert json.loads(call("list", "--json").out)[0]["best"] == {"loss": 2.0, "f1": 0.8}


def test_table_of_trials_has_the_limited_metrics(front: None, call: Callable[..., Any]) -> None:
    assert any("0 1 21" in " ".join(line.split()) for line in call("trials", "front").out.splitlines())


def test_trials_are_chosen_by_a_metric_and_those_beyond_a_limit_say_so(
    front: None, call: Callable[..., Any]
) -> None:
    lines = call("trials", "front", "--where", "value.ms < 10", "--sort", "number").out.splitlines()[1:]
    assert [line.split()[0] for line in lines] == ["0", "3"]
    assert "violates" not in "".join(lines)
    (beyond,) = call("trials", "front", "--where", "value.ms > 20").out.splitlines()[1:]
    assert beyond.endswith("violates ms <= 20")
    assert (
        "no trial has a metric 'mss': did you mean ms?"
        in call("trials", "front", "--where", "value.mss < 1").err
    )


@pytest.mark.parametrize(("by", "number"), [("knee", 2), ("loss", 3), ("f1", 0)])
def test_best_by_chooses_one_trial_of_the_front(
    front: None, call: Callable[..., Any], by: str, number: int
) -> None:
    lines = call("status", "front", "--best-by", by).out.splitlines()
    (best,) = [line for line in lines if line.startswith("best:")]
    assert f"(trial {number}, " in best


def test_front_without_a_knee_is_not_taken_for_failure(directory: Path, call: Callable[..., Any]) -> None:
    made = MadeExperiment(directory / "single", a_config(objectives=FRONT[:2]), "DONE")
    made.commit(a_trial(0, final="{}", values=(1.0, 0.5)))
    made.store.close()
    lines = call("status", "single", "--best-by", "knee").out.splitlines()
    assert "best: none, the front has no knee" in lines
    assert any(line.startswith("front: 1 trial, ") for line in lines)


def test_best_by_has_the_gain_of_the_whole_front(directory: Path, call: Callable[..., Any]) -> None:
    made = MadeExperiment(
        directory / "gains", a_config(objectives=FRONT[:2], defaults={"lr": 0, "units": 16}), "DONE"
    )
    finals = [(4.0, 0.5), (2.0, 0.8), (1.0, 0.7)]
    sources = ("defaults", "algorithm", "algorithm")
    made.commit(*(a_trial(n, final="{}", values=finals[n], source=sources[n]) for n in range(3)))
    made.store.close()
    gain = "2 of the 2 best trials beat the defaults (loss 4, f1 0.5, trial 0) in every objective"
    for words in ((), ("--best-by", "loss")):
        assert gain in call("status", "gains", *words).out.splitlines()


def test_best_by_refuses_what_is_not_optimised(front: None, call: Callable[..., Any]) -> None:
    called = call("status", "front", "--best-by", "ms")
    assert called.code == 2
    assert "--best-by: 'ms' is not an objective to choose the best by: use loss or f1 or knee" in called.err


def test_trial_that_violates_a_limit_has_no_rank(
    stored: Callable[..., Any], trial_of: Callable[..., Any], call: Callable[..., Any]
) -> None:
    finals = [{"loss": 0.1, "ms": 30.0}, {"loss": 0.3, "ms": 12.0}, {"loss": 0.2, "ms": 10.0}]
    stored(objectives=[FRONT[0], FRONT[2]]).write(
        "ranked", [trial_of(n, "SUCCEEDED", None, final) for n, final in enumerate(finals)]
    )
    said = [
        [line.strip() for line in call("trial", "show", "ranked", n, "--why").out.splitlines()[1:]]
        for n in range(3)
    ]
    assert said == [
        ["Its results are loss 0.1, ms 30.", "It violates ms <= 20, and is never the best."],
        ["Its results are loss 0.3, ms 12: rank 2 of 2 that keep the limits."],
        ["Its results are loss 0.2, ms 10: the best of 2 that keep the limits."],
    ]


def test_trial_closest_to_the_limits_is_not_called_best(
    stored: Callable[..., Any], trial_of: Callable[..., Any], call: Callable[..., Any]
) -> None:
    finals = [{"loss": 0.1, "ms": 30.0}, {"loss": 0.2, "ms": 25.0}]
    stored(objectives=[FRONT[0], FRONT[2]]).write(
        "far", [trial_of(n, "SUCCEEDED", None, final) for n, final in enumerate(finals)]
    )
    lines = call("status", "far").out.splitlines()
    at = lines.index("best: none, no trial keeps the limits (closest: trial 1)")
    assert lines[at + 1] == "  trial 1 has loss 0.2, ms 25"
    assert "limits: ms <= 20; 2 trials violate them" in lines
    found = json.loads(call("status", "far", "--json").out)
    assert (found["best"], found["front"]["closest"]) == (None, 1)
    assert "  none keeps the limits  " in call("list").out
    assert json.loads(call("list", "--json").out)[0]["closest"] == 1
    assert "It violates ms <= 20, and is never the best." in call("trial", "show", "far", "0", "--why").out


def test_best_trials_keep_the_limits(
    stored: Callable[..., Any], trial_of: Callable[..., Any], call: Callable[..., Any]
) -> None:
    pairs = [(0.3, 20.0), (0.9, 30.0), (0.5, 3.0), (0.8, 21.0)]
    trials = [
        trial_of(n, "SUCCEEDED", None, dict(zip(("default", "ms"), pair, strict=True)))
        for n, pair in enumerate(pairs)
    ]
    trials.append(trial_of(4, "FAILED", None))
    limited = [{"name": "default", "direction": "maximize"}, {"name": "ms", "constraint": "<= 20"}]
    stored(objectives=limited).write("e", trials)
    lines = call("trials", "e", "--sort", "best").out.splitlines()[1:]
    assert [line.split()[0] for line in lines] == ["2", "0", "3", "1", "4"]
    best = json.loads(call("status", "e", "--json").out)["best"]
    assert (best["value"], best["values"]) == (0.5, {"default": 0.5, "ms": 3.0})


def test_best_trials_of_several_objectives_are_the_front_and_have_named_columns(
    front: None, call: Callable[..., Any], stored: Callable[..., Any], trial_of: Callable[..., Any]
) -> None:
    values = [(4.0, 0.9), (1.0, 0.5), (1.5, 0.4), (2.0, 0.8)]  # trial 2 is dominated by trial 1
    finals = [dict(zip(("loss", "f1"), each, strict=True)) for each in values]
    stored(objectives=FRONT[:2]).write("e", [trial_of(n, "SUCCEEDED", None, f) for n, f in enumerate(finals)])
    head, *lines = call("trials", "e", "--sort", "best").out.splitlines()
    assert head.split() == ["#", "id", "status", "loss", "f1", "front", "took", "parameters", "reason"]
    assert [line.split()[0] for line in lines] == ["1", "3", "0", "2"]
    assert [line.split()[5] for line in lines[:3]] == ["yes", "knee", "yes"]
    assert lines[3].split()[5:7] == ["10", "s"]  # how long the one that is not on the front took
    assert lines[0].split()[3:5] == ["1", "0.5"]

    def numbers(order: str) -> list[str]:
        return [line.split()[0] for line in call("trials", "e", "--sort", order).out.splitlines()[1:]]

    assert numbers("value.f1") == ["2", "1", "3", "0"]
    assert numbers("-value.loss") == ["0", "3", "2", "1"]
    wrong = call("trials", "e", "--sort", "value.ms")
    assert (wrong.code, wrong.out) == (2, "")
    assert "--sort: there is no objective 'ms': write value.loss or value.f1" in wrong.err
    assert "'value' is not one of" in call("trials", "e", "--sort", "value").err
    for metric in ("f1", "-f1"):
        said = call("trials", "e", "--sort", metric).err
        assert "To sort by a metric, write value.f1 or -value.f1." in said
    assert "write value.f1 for a metric, " in call("trials", "e", "--where", "f1 < 3").err


def test_best_families_of_several_objectives_are_the_front(
    stored: Callable[..., Any], trial_of: Callable[..., Any], call: Callable[..., Any]
) -> None:
    values = [(4.0, 0.9), (1.5, 0.4), (1.0, 0.5)]
    trials = [
        trial_of(n, "SUCCEEDED", None, dict(zip(("loss", "f1"), each, strict=True)))
        for n, each in enumerate(values)
    ]
    for number, trial in enumerate(trials):
        trial.record = with_family_end(repeated(trial.record, number, 0, 40), "complete")
    repeats = {"trialCommand": "true", "repeats": {"count": 2}}
    stored(objectives=FRONT[:2], more=repeats).write("e", trials)
    for words in (["--families"], []):
        lines = call("trials", "e", "--sort", "best", *words).out.splitlines()[1:]
        assert [line.split()[0] for line in lines] == ["2", "0", "1"]


def test_family_closest_to_the_limits_has_its_mean_though_its_first_trial_failed(
    stored: Callable[..., Any], trial_of: Callable[..., Any], call: Callable[..., Any]
) -> None:
    far = {"loss": 0.2, "ms": 25.0}
    trials = [trial_of(0, "FAILED", kind=FailureKind.USER_ERROR), trial_of(1, "SUCCEEDED", None, far)]
    for number, trial in enumerate(trials):
        trial.record = with_family_end(repeated(trial.record, 0, number, 40 + number), "complete")
    repeats = {"trialCommand": "true", "repeats": {"count": 2}}
    stored(objectives=[FRONT[0], FRONT[2]], more=repeats).write("e", trials)
    lines = call("status", "e").out.splitlines()
    at = lines.index("best: none, no family keeps the limits (closest: family 0)")
    assert lines[at + 1] == "  family 0 has loss 0.2, ms 25"


@pytest.mark.parametrize("words", [[], ["--families"]])
def test_best_of_those_that_violate_limits_is_the_closest_to_them(
    words: list[str], stored: Callable[..., Any], trial_of: Callable[..., Any], call: Callable[..., Any]
) -> None:
    # Two limits: the excesses are relative to each, and added.
    values = [(0.1, 40.0, 1.0), (0.2, 5.0, 0.5), (0.3, 24.0, 0.9), (0.4, 22.0, 0.5)]
    trials = [
        trial_of(n, "SUCCEEDED", None, dict(zip(("loss", "ms", "mb"), each, strict=True)))
        for n, each in enumerate(values)
    ]
    for number, trial in enumerate(trials):
        trial.record = with_family_end(repeated(trial.record, number, 0, 40), "complete")
    objectives = [FRONT[0], FRONT[2], {"name": "mb", "constraint": ">= 1"}]
    repeats = {"trialCommand": "true", "repeats": {"count": 2}}
    stored(objectives=objectives, more=repeats).write("e", trials)
    lines = call("trials", "e", "--sort", "best", *words).out.splitlines()[1:]
    assert [line.split()[0] for line in lines] == ["2", "1", "3", "0"]


def test_family_that_was_cut_off_is_listed_behind_whole_ones(
    stored: Callable[..., Any], trial_of: Callable[..., Any], call: Callable[..., Any]
) -> None:
    values = [(0.1, 600.0), (0.2, 40.0), (0.3, 5.0), (0.4, 10.0), (0.5, 30.0)]
    ends = [None, "raced", None, "complete", "complete"]
    trials = [
        trial_of(n, "SUCCEEDED", None, dict(zip(("loss", "ms"), each, strict=True)))
        for n, each in enumerate(values)
    ]
    for number, (trial, end) in enumerate(zip(trials, ends, strict=True)):
        record = repeated(trial.record, number, 0, 40)
        trial.record = record if end is None else with_family_end(record, end)
    repeats = {"trialCommand": "true", "repeats": {"count": 2}}
    stored(objectives=[FRONT[0], FRONT[2]], more=repeats).write("e", trials)
    lines = call("trials", "e", "--families", "--sort", "best").out.splitlines()[1:]
    cut = "the experiment ended before its other repeats"
    expected = {
        "3": "",
        "2": f"  {cut}",
        "4": "  violates ms <= 20",
        "1": "  violates ms <= 20; it got no further repeats",
        "0": f"  violates ms <= 20; {cut}",
    }
    assert [line.split()[0] for line in lines] == list(expected)
    assert [
        line for line, reason in zip(lines, expected.values(), strict=True) if not line.endswith(reason)
    ] == []
    assert "violates" not in "".join(lines[:2])
