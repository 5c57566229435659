"""An experiment that ends when little can be gained, with the reason, killed and resumed or not."""

from __future__ import annotations

from pathlib import Path

from pitchpipe.store.reading import ExperimentView

from .experiments import comes_back_alike

SEARCH = {
    "tuner": {"name": "TPE"},
    "trial_concurrency": 2,
    "max_trial_number": 60,
    "stop_when": {"expected_gain_below": 0.5, "min_trials": 12},
}


def test_search_ends_with_the_reason_before_its_limit_killed_or_not(tmp_path: Path) -> None:
    comes_back_alike(tmp_path, [(100, True)], **SEARCH)
    with ExperimentView(tmp_path / "whole" / "exp") as view:
        summary = view.summary()
    assert summary.reason.startswith("expected gain 0.")
    assert " is below 0.5 after " in summary.reason
    assert summary.counts == {"SUCCEEDED": summary.trials}
    assert 12 <= summary.trials < 60
