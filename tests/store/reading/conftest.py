"""An experiment, empty or with five trials, and a view of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pitchpipe.store.reading.view import ExperimentView

from ...stored import MadeExperiment, a_trial, results


@pytest.fixture
def view(made: MadeExperiment) -> Iterator[ExperimentView]:
    """Yield a view of the experiment."""
    with ExperimentView(made.folder) as opened:
        yield opened


@pytest.fixture
def filled(made: MadeExperiment) -> MadeExperiment:
    """Return an experiment with five trials: three succeeded, one failed, one runs."""
    fourth = a_trial(3, value=0.3, parameters={"lr": 0.05, "units": 32, "model": {"depth": 4, "a.b": 1}})
    fifth = a_trial(4, "RUNNING", parameters={"lr": 0.4, "units": 16})
    made.commit(
        a_trial(0, value=0.5),
        a_trial(1, value=0.1),
        a_trial(2, "FAILED", reason="KeyError: 'lr'", error="Traceback\nKeyError: 'lr'", exit_code=1),
        fourth,
        fifth,
        metrics=[
            *results(fourth, [0.7]),
            *results(fifth, [0.9, {"default": 0.8, "accuracy": 0.2}, float("nan")]),
        ],
    )
    return made
