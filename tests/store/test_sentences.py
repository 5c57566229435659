"""What users read about conditions and databases: each input is YAML."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import yaml
from syrupy.assertion import SnapshotAssertion

from pitchpipe.store.errors import StoreError, explain, understood
from pitchpipe.store.reading.trial_query import Condition, QueryError, TrialQuery
from pitchpipe.store.reading.view import ExperimentView

from ..sentences import SentencesFile, answered
from ..stored import MadeExperiment, a_trial


def of_sqlite(line: str) -> list[str]:
    """Return what an error of SQLite means, for who writes and for a reader."""
    Path("experiment.db").touch()
    found = [
        explain(Path("experiment.db"), sqlite3.OperationalError(line), is_view=view) for view in (False, True)
    ]
    said = [f"{type(error).__name__}: {error}" for error in found]
    return said[:1] if said[0] == said[1] else said


def of_value(line: str) -> list[str]:
    """Return what a value that is not understood says of the database."""
    with pytest.raises(StoreError) as raised, understood(Path("experiment.db"), "status"):
        raise eval(line)
    return [str(raised.value)]


def of_condition(view: ExperimentView) -> Callable[[str], list[str]]:
    def answers(line: str) -> list[str]:
        with pytest.raises(QueryError) as refused:
            view.trials(TrialQuery(conditions=[Condition.parse(line.strip('"'))]))
        return [str(refused.value)]

    return answers


def of_config(view: ExperimentView) -> Callable[[str], list[str]]:
    """Return a function that says what is wrong with a stored configuration."""

    def answers(line: str) -> list[str]:
        with closing(sqlite3.connect(view.folder.database)) as db, db:
            db.execute("UPDATE experiment SET config = ?", (json.dumps(yaml.safe_load(line)),))
        with ExperimentView(view.folder) as fresh, pytest.raises(StoreError) as raised:
            fresh.summary()
        return [str(raised.value).replace(f"{view.folder.path}/", "")]

    return answers


def test_sentences(made: MadeExperiment, snapshot: SnapshotAssertion) -> None:
    made.commit(a_trial(0, value=0.5))
    with ExperimentView(made.folder) as view:
        sections = {
            "errors of SQLite": of_sqlite,
            "values that are not understood": of_value,
            "conditions that make no sense": of_condition(view),
            "forged configurations": of_config(view),
        }
        assert answered(Path(__file__).parent, sections) == snapshot(extension_class=SentencesFile)
