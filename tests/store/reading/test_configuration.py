"""The stored configuration: the objectives that it names, and what is wrong with a forged one."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.store.folder import ExperimentFolder
from pitchpipe.store.reading.view import ExperimentView
from pitchpipe.store.schema import MIGRATIONS, SCHEMA_VERSION


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[Any]:
    """Return a function that opens an experiment with a stored configuration (JSON text)."""
    opened: list[ExperimentView] = []

    def view(config: str) -> ExperimentView:
        with closing(sqlite3.connect(tmp_path / "experiment.db")) as db:
            db.executescript("".join(MIGRATIONS))
            db.execute(
                "INSERT INTO experiment (id, status, config, token, created) VALUES ('x', 'DONE', ?, 't', 1.0)",
                (config,),
            )
            db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            db.commit()
        opened.append(ExperimentView(ExperimentFolder(tmp_path)))
        return opened[0]

    yield view
    for each in opened:
        each.close()


def test_objectives_have_directions_and_limits(stored: Any) -> None:
    given = [{"name": "ms", "constraint": "<= 20"}, {"name": "f1", "direction": "maximize"}]
    database = stored(json.dumps({"objectives": given})).database
    limit, goal = database.objectives()
    assert (limit.direction, limit.at_most) == (None, 20.0)
    assert (goal.name, goal.direction) == ("f1", "maximize")
    assert database.main_objective() == "f1"


def test_configuration_without_objectives_has_one(stored: Any) -> None:
    database = stored("{}").database
    assert database.config() == {}
    assert [(one.name, one.direction) for one in database.objectives()] == [("default", "minimize")]
