"""An experiment whose database is replaced by an older copy: files of forgotten trials count for no other trial."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from pitchpipe.manager.experiment_factory import create_experiment, resume_experiment
from pitchpipe.manager.manager import Manager
from pitchpipe.runner.experiment_state import ExperimentStatus
from pitchpipe.store.store import Store

from .experiments import config, run

COMMAND = """
echo '{"intermediate": '{x}'}' >> $PITCHPIPE_REPORTS
echo '{"final": '{x}'}' >> $PITCHPIPE_REPORTS
"""


def proposed_in(manager: Manager) -> list[float]:
    """Run an experiment to its end; returns what its tuner proposed."""
    assert run(manager) is ExperimentStatus.DONE
    with closing(Store.view(manager.folder.database)) as view:
        trials, metrics = list(view.trials()), list(view.metrics())
    proposed = [json.loads(trial.record)["parameters"]["x"] for trial in trials]
    assert [json.loads(trial.final or "") for trial in trials] == proposed
    assert [json.loads(row[4]) for row in metrics] == [x for x in proposed for _ in ("intermediate", "final")]
    return proposed


@pytest.mark.usefixtures("forked_agents")
def test_trials_after_an_older_copy_of_the_database_get_results_of_their_own(tmp_path: Path) -> None:
    local = {"training_service": {"platform": "local"}, "trial_code_directory": str(tmp_path)}
    given = config(seed=3, max_trial_number=2, trial_command=COMMAND, **local)
    manager = create_experiment(given, directory=tmp_path)
    with closing(sqlite3.connect(manager.folder.database)) as db:
        db.execute("VACUUM INTO ?", (str(tmp_path / "copy.db"),))
    forgotten = proposed_in(manager)
    shutil.copy(tmp_path / "copy.db", manager.folder.database)
    with closing(sqlite3.connect(manager.folder.database, isolation_level=None)) as db:
        # With another seed the tuner proposes other parameters than those of the forgotten trials.
        db.execute("UPDATE experiment SET config = json_set(config, '$.seed', 4)")
    assert set(proposed_in(resume_experiment(manager.folder))).isdisjoint(forgotten)
