"""The best of several objectives, and of those with limits, in the verbs that read."""

import json
from pathlib import Path

import pytest

from ..stored import MadeExperiment, a_config, a_trial
from .conftest import Call, Storing, make_trial
from .results import FRONT


def test_status_shows_what_is_closest_to_the_defaults(directory: Path, call: Call) -> None:
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


def test_best_of_several_objectives_is_a_list(stored: Storing, call: Call) -> None:
    objectives = [{"name": "default", "direction": "maximize"}, {"name": "size", "direction": "minimize"}]
    finals = [{"default": 0.9, "size": 10.0}, {"default": 0.8, "size": 5.0}, {"default": 0.7, "size": 7.0}]
    stored(objectives=objectives).write(
        "two", [make_trial(n, "SUCCEEDED", None, final) for n, final in enumerate(finals)]
    )
    best = json.loads(call("status", "two", "--json").out)["best"]
    assert [(one["sequence_id"], one["value"]) for one in best] == [(0, finals[0]), (1, finals[1])]


def test_status_has_the_front_its_volume_its_knee_and_the_limits(front: None, call: Call) -> None:
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
    assert json.loads(call("list", "--json").out)[0]["best"] == {"loss": 2.0, "f1": 0.8}


def test_best_by_has_the_gain_of_the_whole_front(directory: Path, call: Call) -> None:
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


def test_trial_closest_to_the_limits_is_not_called_best(stored: Storing, call: Call) -> None:
    finals = [{"loss": 0.1, "ms": 30.0}, {"loss": 0.2, "ms": 25.0}]
    stored(objectives=[FRONT[0], FRONT[2]]).write(
        "far", [make_trial(n, "SUCCEEDED", None, final) for n, final in enumerate(finals)]
    )
    found = json.loads(call("status", "far", "--json").out)
    assert (found["best"], found["front"]["closest"]) == (None, 1)
    assert json.loads(call("list", "--json").out)[0]["closest"] == 1


def test_best_trials_keep_the_limits(stored: Storing, call: Call) -> None:
    pairs = [(0.3, 20.0), (0.9, 30.0), (0.5, 3.0), (0.8, 21.0)]
    trials = [
        make_trial(n, "SUCCEEDED", None, dict(zip(("default", "ms"), pair, strict=True)))
        for n, pair in enumerate(pairs)
    ]
    trials.append(make_trial(4, "FAILED", None))
    limited = [{"name": "default", "direction": "maximize"}, {"name": "ms", "constraint": "<= 20"}]
    stored(objectives=limited).write("e", trials)
    best = json.loads(call("status", "e", "--json").out)["best"]
    assert (best["value"], best["values"]) == (0.5, {"default": 0.5, "ms": 3.0})
