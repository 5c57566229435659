"""An experiment that ends when little can be gained, with the reason, killed and resumed or not."""

from __future__ import annotations

from pathlib import Path

from pitchpipe.executors.simulated import VirtualClock
from pitchpipe.runner.experiment_status import ExperimentStatus
from pitchpipe.store.reading import ExperimentView

from .experiments import bowl, resumed, run, run_with_crash, simulated, story

SEARCH = {
    "tuner": {"name": "TPE"},
    "trial_concurrency": 2,
    "max_trial_number": 60,
    "stop_when": {"expected_gain_below": 0.5, "min_trials": 12},
}


def test_search_ends_with_the_reason_before_its_limit_killed_or_not(tmp_path: Path) -> None:
    assert run(simulated(tmp_path / "whole", **SEARCH)) is ExperimentStatus.DONE
    with ExperimentView(tmp_path / "whole" / "exp") as view:
        summary = view.summary()
    assert summary["reason"].startswith("expected gain 0.")
    assert " is below 0.5 after " in summary["reason"]
    assert summary["counts"] == {"SUCCEEDED": summary["trials"]}
    assert 12 <= summary["trials"] < 60

    clock = VirtualClock(1000.0)
    killed = simulated(tmp_path / "killed", clock=clock, **SEARCH)
    assert run_with_crash(killed, 100, after=True)
    assert run(resumed(tmp_path / "killed", bowl, clock)) is ExperimentStatus.DONE
    assert story(tmp_path / "killed") == story(tmp_path / "whole")
    with ExperimentView(tmp_path / "killed" / "exp") as view:
        assert view.summary()["reason"] == summary["reason"]
