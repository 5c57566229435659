"""What is known before trials end: their pace, the time that is left, and the best intermediate result."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.store.reading.pace import Pace, read_best_intermediate, read_pace
from pitchpipe.store.reading.read_model import BestIntermediate
from pitchpipe.store.reading.view import ExperimentView

from ...stored import MadeExperiment, a_config, a_trial, results

# `results` dates the first one at 101 and each further one a second later.
AT_100 = {"start_time": 100.0}


@pytest.fixture
def made(tmp_path: Path) -> Iterator[MadeExperiment]:
    made = MadeExperiment(tmp_path / "exps" / "young", a_config(max_trial_number=10), "RUNNING")
    yield made
    made.store.close()


def a_running(number: int, count: int, **fields: Any) -> Any:
    """Return a trial that has made so many results since second 100, and these."""
    trial = a_trial(number, "RUNNING", **{**AT_100, **fields})
    return trial, results(trial, [0.5] * count, trial.first_sequence, trial.attempt)


def commit(made: MadeExperiment, *running: Any, more: Any = ()) -> None:
    made.commit(*more, *(trial for trial, _ in running), metrics=[row for _, rows in running for row in rows])


def pace_of(made: MadeExperiment, now: float) -> Pace:
    with ExperimentView(made.folder) as view:
        return read_pace(view.database, now)


def test_pace_is_that_of_all_running_trials(made: MadeExperiment) -> None:
    assert pace_of(made, 110.0) == Pace()
    commit(made, a_running(0, 10), a_running(1, 5), a_running(2, 0))
    pace = pace_of(made, 110.0)
    assert pace.results_per_minute == pytest.approx(120.0)  # a result a second each; one has none yet
    assert (pace.new, pace.left, pace.remaining(7)) == (None, (), None)


def test_time_left_follows_from_the_length_of_trials_that_have_ended(made: MadeExperiment) -> None:
    full, stopped = a_trial(7, value=0.5), a_trial(8, "EARLY_STOPPED")
    full.next_sequence, stopped.next_sequence = 100, 20
    commit(made, a_running(0, 10), a_running(1, 30), more=(full, stopped))
    pace = pace_of(made, 110.0)  # trial 0 reported at 110, trial 1 at 130
    assert pace.left == pytest.approx([90.0, 90.0])  # 100 results; a time to come does not count as over
    assert pace.new == pytest.approx(60.0)  # some are stopped early
    assert pace.remaining(0) == pytest.approx(90.0)
    assert pace.remaining(6) == pytest.approx((180.0 + 6 * 60.0) / 2)
    assert pace_of(made, 140.0).left == pytest.approx([60.0, 60.0])


def test_budget_is_the_length_of_its_trial(made: MadeExperiment) -> None:
    commit(made, a_running(0, 10, budget=30.0), a_running(1, 10, budget=10.0))
    pace = pace_of(made, 110.0)
    assert (pace.left, pace.new) == (pytest.approx([20.0, 0.0]), pytest.approx(20.0))
    commit(made, a_running(2, 10))
    assert pace_of(made, 110.0).left == ()  # of that one nothing is known


def test_pace_is_that_of_this_attempt(made: MadeExperiment) -> None:
    commit(made, a_running(0, 5, attempt=2, first_sequence=1000))
    assert pace_of(made, 110.0).results_per_minute == pytest.approx(60.0)


@pytest.mark.parametrize(
    ("objective", "best"),
    [
        ({"name": "default", "direction": "maximize"}, BestIntermediate(1, 1, 0.9)),
        ({"name": "default", "direction": "minimize"}, BestIntermediate(0, 0, 0.2)),
        ({"name": "accuracy", "direction": "maximize"}, BestIntermediate(1, 2, 0.8)),
    ],
)
def test_best_intermediate_result_is_a_finite_one_of_a_trial_that_has_not_failed(
    tmp_path: Path, objective: dict[str, str], best: BestIntermediate
) -> None:
    made = MadeExperiment(tmp_path / "exps" / "young", a_config(objectives=[objective]), "RUNNING")
    trials = [a_trial(0, "RUNNING"), a_trial(1, "RUNNING"), a_trial(2, "FAILED")]
    values: list[list[Any]] = [[0.2, 0.3], [0.4, 0.9, {"accuracy": 0.8}], [99.0, -99.0]]
    if objective["name"] == "accuracy":
        values[:2] = [[{"accuracy": 0.2}], [{"accuracy": float("nan")}, {"loss": 9.0}, {"accuracy": 0.8}]]
    rows = [row for trial, each in zip(trials, values, strict=True) for row in results(trial, each)]
    made.commit(*trials, metrics=rows)
    with ExperimentView(made.folder) as view:
        assert read_best_intermediate(view.database) == best
    made.store.close()


def test_summary_of_long_trials_estimates_by_their_curves(made: MadeExperiment) -> None:
    ended = a_trial(0, value=0.5)
    ended.next_sequence = 1000
    commit(made, a_running(1, 10), more=(ended,))
    made.folder.own()
    with ExperimentView(made.folder) as view:
        summary = view.summary()
        made.folder.disown()
        assert (view.summary().results_per_minute, view.summary().remaining) == (0.0, None)
    assert summary.results_per_minute == pytest.approx(60.0)
    # The running one should have ended long ago, 8 others take 1000 s each.
    assert summary.remaining == pytest.approx(8000.0)
    assert summary.best_intermediate is None  # there is a better word: the best result


def test_summary_before_the_first_end_has_the_best_intermediate_result(made: MadeExperiment) -> None:
    commit(made, a_running(0, 3))
    made.folder.own()
    with ExperimentView(made.folder) as view:
        assert view.summary().best_intermediate == BestIntermediate(0, 0, 0.5)
    made.folder.disown()
