"""An experiment, empty or with five trials or others, and a view of it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.runner.effects import MetricRow
from pitchpipe.runner.trial import Trial
from pitchpipe.store.reading.view import ExperimentView

from ...stored import MadeExperiment, a_config, a_trial, results


@pytest.fixture
def view(made: MadeExperiment) -> Iterator[ExperimentView]:
    """Yield a view of the experiment."""
    with ExperimentView(made.folder) as opened:
        yield opened


@pytest.fixture
def view_of(tmp_path: Path) -> Iterator[Callable[..., ExperimentView]]:
    """Yield a function that makes an experiment of some trials, with fields of its config, and returns a view of it."""
    numbers = itertools.count()
    with ExitStack() as views:

        def made(*trials: Trial, metrics: Sequence[MetricRow] = (), **fields: Any) -> ExperimentView:
            experiment = MadeExperiment(tmp_path / f"made{next(numbers):04}", a_config(**fields))
            experiment.commit(*trials, metrics=metrics)
            experiment.store.close()
            return views.enter_context(ExperimentView(experiment.folder))

        yield made


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
