"""What a trial exports at its end is kept, and shown."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import pitchpipe
from pitchpipe.config import ExperimentConfig
from pitchpipe.manager.experiment_factory import create_experiment
from pitchpipe.runner.experiment_state import ExperimentStatus
from pitchpipe.store.reading.trial_rows import read_exports
from pitchpipe.store.reading.view import ExperimentView
from pitchpipe.store.schema import MIGRATIONS

from .conftest import Call


def make_class() -> type:
    """Pickled with its code: agents cannot import this file."""

    class Exporting(pitchpipe.Trainable):
        export_formats = ("txt", "elsewhere")

        def step(self) -> dict[str, Any]:
            return {"default": self.parameters["x"], "done": True}

        def export_model(self, formats: Any, directory: str) -> dict[str, str]:
            from pathlib import Path

            path = Path(directory, "model.txt")
            path.write_text(repr(self.parameters["x"]))
            return {"txt": str(path), "elsewhere": "/models/1"}

    Exporting.__module__ = "__main__"
    return Exporting


@pytest.mark.slow
def test_export_of_a_trial_is_kept_and_shown(tmp_path: Path, call: Call) -> None:
    data = {
        "search_space": {"x": {"_type": "uniform", "_value": [0, 1]}},
        "max_trial_number": 1,
        "seed": 1,
        "training_service": {"platform": "local"},
    }
    config = ExperimentConfig.from_dict(data, needs_command=False)
    manager = create_experiment(config, directory=tmp_path, experiment_id="exp", function=make_class())
    try:
        assert asyncio.run(manager.run()) is ExperimentStatus.DONE
    finally:
        manager.store.close()
        manager.folder.disown()
    place = ["--experiment-id", "exp", "--dir", str(tmp_path)]
    shown = json.loads(call("trial", "show", "0", *place, "--json").out)
    assert shown["exported"] == {"txt": "trials/0/export/model.txt", "elsewhere": "/models/1"}
    assert (tmp_path / "exp" / shown["exported"]["txt"]).read_text() == repr(shown["parameters"]["x"])
    lines = call("trial", "show", "0", *place).out.splitlines()
    assert "exported      elsewhere: /models/1" in lines
    assert f"exported      txt: {tmp_path}/exp/trials/0/export/model.txt" in lines


def test_database_of_a_time_before_exports_is_read(tmp_path: Path) -> None:
    import sqlite3

    path = tmp_path / "experiment.db"
    db = sqlite3.connect(path)
    db.executescript("".join(MIGRATIONS[:2]) + "PRAGMA user_version = 2;")
    db.close()
    with ExperimentView(tmp_path) as view:
        assert read_exports(view.database, 0) == {}
