"""Reads the results in the folder of an NNI experiment: `db/nni.sqlite`, of NNI 1 to 3."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

__all__ = ["decoded", "direction_of", "nni_database", "read_nni"]

_RECORDS = (
    "SELECT trialJobId, data FROM TrialJobEvent WHERE data IS NOT NULL AND trialJobId != '' ORDER BY rowid"
)
_STATUSES = "SELECT trialJobId, event FROM TrialJobEvent WHERE trialJobId != '' ORDER BY rowid"
_FINALS = "SELECT trialJobId, data FROM MetricData WHERE type = 'FINAL' ORDER BY rowid"
_PROFILE = "SELECT params FROM ExperimentProfile ORDER BY revision DESC LIMIT 1"


def nni_database(path: Path) -> Path | None:
    """Return the database in the folder of an NNI experiment; None if there is none."""
    found = path / "db" / "nni.sqlite"
    return found if found.is_file() else None


def read_nni(database: Path) -> Iterator[tuple[dict[str, Any], Any, str | None]]:
    """Yield parameters, first final result and direction (None if the config has none) of the succeeded trials.

    Raise `sqlite3.Error` or ValueError for a database that is not NNI's.
    """
    with closing(sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True)) as db:
        records: dict[str, str] = {}
        for trial, data in db.execute(_RECORDS):
            records.setdefault(trial, data)
        succeeded = {trial for trial, event in dict(db.execute(_STATUSES)).items() if event == "SUCCEEDED"}
        finals: dict[str, str] = {}
        for trial, data in db.execute(_FINALS):
            finals.setdefault(trial, data)
        profile = db.execute(_PROFILE).fetchone()
    direction = None if profile is None else direction_of(json.loads(profile[0]))
    for trial, data in finals.items():
        if trial in succeeded and trial in records:
            parameters = json.loads(records[trial])["parameters"]
            if isinstance(parameters, dict):
                yield parameters, decoded(data), direction


def decoded(data: str) -> Any:
    """Return a result, which NNI writes as JSON in JSON."""
    value = json.loads(data)
    return json.loads(value) if isinstance(value, str) else value


def direction_of(config: Mapping[str, Any]) -> str | None:
    """Return the direction of the tuner in a config of any version."""
    section = config.get("tuner") or config.get("advisor") or {}
    arguments = section.get("classArgs") or {}
    return arguments.get("optimize_mode")
