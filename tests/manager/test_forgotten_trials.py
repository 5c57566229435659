"""An experiment whose database is replaced by an older copy: files of forgotten trials count for no other trial."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from pitchpipe.config import ExperimentConfig
from pitchpipe.manager.experiments import create_experiment, resume_experiment
from pitchpipe.manager.manager import Manager
from pitchpipe.runner.experiment_status import ExperimentStatus
from pitchpipe.store.store import Store

SCRIPT = """
import pitchpipe
x = pitchpipe.get_next_parameter()["x"]
pitchpipe.report_intermediate_result(x)
pitchpipe.report_final_result(x)
"""


def run(manager: Manager) -> list[float]:
    """Run an experiment to its end; returns what its tuner proposed."""
    try:
        assert asyncio.run(asyncio.wait_for(manager.run(), 60)) is ExperimentStatus.DONE
    finally:
        manager.store.close()
        manager.folder.disown()
    view = Store.view(manager.folder.database)
    trials, metrics = list(view.trials()), list(view.metrics())
    view.close()
    proposed = [json.loads(trial.record)["parameters"]["x"] for trial in trials]
    assert [json.loads(trial.final or "") for trial in trials] == proposed
    assert [json.loads(row[4]) for row in metrics] == [x for x in proposed for _ in ("intermediate", "final")]
    return proposed


def test_trials_after_an_older_copy_of_the_database_get_results_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "trial.py").write_text(SCRIPT)
    data = {
        "search_space": {"x": {"_type": "uniform", "_value": [0, 1]}},
        "tuner": {"name": "Random"},
        "seed": 3,
        "max_trial_number": 2,
        "training_service": {"platform": "local"},
        "trial_command": f"{sys.executable} trial.py",
        "trial_code_directory": str(tmp_path),
    }
    manager = create_experiment(ExperimentConfig.from_dict(data), directory=tmp_path)
    with closing(sqlite3.connect(manager.folder.database)) as db:
        db.execute("VACUUM INTO ?", (str(tmp_path / "copy.db"),))
    forgotten = run(manager)
    shutil.copy(tmp_path / "copy.db", manager.folder.database)
    with closing(sqlite3.connect(manager.folder.database, isolation_level=None)) as db:
        # With another seed the tuner proposes other parameters than those of the forgotten trials.
        db.execute("UPDATE experiment SET config = json_set(config, '$.seed', 4)")
    assert set(run(resume_experiment(manager.folder))).isdisjoint(forgotten)
