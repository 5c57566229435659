"""What is said about code that changed during a search."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from pitchpipe.store.reading import ExperimentView
from pitchpipe.telling import code_note_of

from ..stored import MadeExperiment, a_config, a_trial

UP = [{"name": "default", "direction": "maximize"}, {"name": "ms", "constraint": "<= 20"}]
# The results of trials that ran the older code, and those that ran the current one; None failed.
FOUND = {
    "the older is best": ([0.5, 0.9], [0.25, 0.75, 0.5], "trial 3 with"),
    "the current is best": ([0.5], [0.9], ""),
    "none of the current succeeded": ([0.5], [None], "no trial"),
    "the best of the current violates a limit": ([0.9], [0.25, 0.8], "trial 1 with"),
    "all of the current violate a limit": ([0.9], [0.8], "no trial"),
}


@pytest.mark.parametrize(("older", "current", "said"), FOUND.values(), ids=FOUND)
def test_best_of_the_current_code_is_named_where_the_best_ran_older_code(
    tmp_path: Path, older: list[float], current: list[float | None], said: str
) -> None:
    made = MadeExperiment(tmp_path / "made", a_config(objectives=UP), "DONE")
    codes = [json.dumps({"files": {"train.py": digest}, "packages": {}}) for digest in ("01", "02")]
    for number, value in enumerate([*older, *current]):
        values = () if value is None else (value, 30.0 if value == 0.8 else 10.0)
        made_trial = a_trial(
            number, "FAILED" if value is None else "SUCCEEDED", final="{}", values=values, finals=len(values)
        )
        made.commit(replace(made_trial, code=codes[number >= len(older)]))
    made.store.close()
    with sqlite3.connect(made.folder.database) as db:
        db.executemany("INSERT INTO code_versions VALUES (?, ?)", [(text, text) for text in codes])
    db.close()
    with ExperimentView(made.folder) as view:
        note = code_note_of(view, view.summary())
    _, _, best = note.partition("ran older code: ")
    assert note.startswith("the code changed: train.py")
    assert said in best
    assert bool(said) == bool(best)
