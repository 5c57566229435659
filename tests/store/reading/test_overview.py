"""An experiment as a whole: counts, totals, limits and the estimated rest."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from pitchpipe.store.errors import StoreError
from pitchpipe.store.reading.json_values import to_json
from pitchpipe.store.reading.view import ExperimentView

from ...stored import MadeExperiment, a_config, a_trial


def test_summary_counts_and_names_the_best(filled: MadeExperiment, view: ExperimentView) -> None:
    found = view.summary()
    assert found.counts == {"SUCCEEDED": 3, "FAILED": 1, "RUNNING": 1}
    assert (found.trials, found.intermediate_results, found.is_running) == (5, 4, False)
    assert found.best[0].sequence_id == 1
    assert found.limits["trial_concurrency"] == 1
    to_json(found)


LIMITS = {"max_trial_number": 10, "max_experiment_duration": "1h", "trial_concurrency": 1}


@pytest.mark.parametrize(
    ("run_time", "remaining"),
    [(0.0, 120.0), (3500.0, 100.0), (4000.0, 0.0)],  # 4 trials a minute; 6 new ones and 2 open ones
)
def test_remaining_time_is_that_to_the_first_limit(tmp_path: Path, run_time: float, remaining: float) -> None:
    made = MadeExperiment(tmp_path / "exps" / "limited", a_config(**LIMITS))
    ended = [a_trial(number, end_time=970.0) for number in range(2)]
    made.commit(*ended, a_trial(2, "RUNNING"), a_trial(3, "WAITING"), run_time=run_time, end_time=1000.0)
    made.folder.own()
    with ExperimentView(made.folder) as view:
        found = view.summary()
    assert (found.is_running, found.trials_per_minute) == (True, 4.0)
    assert found.remaining == pytest.approx(remaining)
    made.folder.disown()
    made.store.close()


def test_check_reads_every_trial(filled: MadeExperiment, view: ExperimentView) -> None:
    view.check()
    with closing(sqlite3.connect(filled.folder.database)) as db, db:
        db.execute("UPDATE metrics SET value = 'no JSON' WHERE sequence_id = 4")
    view.summary()  # needs no results
    with pytest.raises(StoreError, match="is damaged"):
        view.check()
