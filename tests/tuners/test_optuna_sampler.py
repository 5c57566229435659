"""Samplers of Optuna as tuners: they conform, the study holds what it should, and wrong arguments are refused."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from pitchpipe import tuners
from pitchpipe.protocol import MissingExtraError
from pitchpipe.tuners import OptunaTuner

from .searches import started, suite

TREE: dict[str, Any] = {
    "m": {
        "_type": "choice",
        "_value": [{"_name": "a", "n": {"_type": "randint", "_value": [3, 9]}}, {"_name": "b"}],
    },
    "x": {"_type": "loguniform", "_value": [1e-3, 1]},
}


TestOptuna = suite(
    lambda seed, _: OptunaTuner("TPESampler", {"n_startup_trials": 5, "n_ei_candidates": 4}, seed=seed),
    lambda seed, mode: OptunaTuner("NSGAIISampler", {"population_size": 4}, mode, seed),
    trials=9,
    many_results=50,
)


def test_the_study_has_every_result_once() -> None:
    tuner = started(OptunaTuner("RandomSampler", optimize_mode="maximize", seed=0), TREE)
    points = tuner.generate_multiple_parameters(list(range(4)))
    tuner.receive_trial_result(0, points[0], 2.0)
    tuner.receive_trial_result(0, points[0], 7.0)
    tuner.receive_trial_result(1, points[1], float("nan"))
    tuner.trial_end(2, False)
    tuner.import_data([{"parameter": {"m": {"_name": "a", "n": 8}, "x": 0.1}, "value": 5}])
    trials = tuner._study.trials
    states = [trial.state.name for trial in trials]
    assert states == ["COMPLETE", "FAIL", "FAIL", "RUNNING", "COMPLETE"]
    assert (trials[0].value, trials[4].value) == (-2.0, -5.0)
    assert trials[4].params == {"m": 0, "m.0.n": 5, "x": pytest.approx(2 / 3)}


def test_it_is_asked_only_for_what_is_active() -> None:
    tuner = started(OptunaTuner("RandomSampler", seed=0), TREE)
    for i in range(20):
        point = tuner.generate_parameters(i)
        asked = tuner._study.trials[-1].params
        assert ("m.0.n" in asked) == (point["m"]["_name"] == "a")


def test_a_point_in_the_place_of_a_repeated_one_runs_in_the_study() -> None:
    space = {"x": {"_type": "choice", "_value": ["a", "b", "c"]}}
    tuner = started(OptunaTuner("RandomSampler", seed=0), space)
    points = [tuner.generate_parameters(i)["x"] for i in range(3)]
    running = [trial for trial in tuner._study.trials if trial.state.name == "RUNNING"]
    assert sorted(points) == ["a", "b", "c"]
    assert [["a", "b", "c"][trial.params["x"]] for trial in running] == points


def test_unknown_sampler_shows_those_that_are_known() -> None:
    with pytest.raises(ValueError, match=r'sampler must be .*"TPESampler"'):
        OptunaTuner("TPE")


def test_without_optuna_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingExtraError, match=r"the extra optuna: pip install 'optuna>=[\d.]+'$"):
        OptunaTuner()
    assert "pip install" in tuners.check(OptunaTuner, {})[0].message  # a problem of the config, not a crash


def test_sampler_without_its_library_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pitchpipe.tuners.optuna_sampler.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"^Optuna's GPSampler needs torch: pip install torch$"):
        OptunaTuner("GPSampler")
