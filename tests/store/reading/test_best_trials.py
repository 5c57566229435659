"""The best trials, and how the best value came to be."""

from __future__ import annotations

import math
from pathlib import Path

from pitchpipe.results import result_of
from pitchpipe.store.reading.view import ExperimentView

from ...server.made_stores import MadeExperiment, a_config, a_trial


def test_best_of_several_objectives_is_the_front(tmp_path: Path) -> None:
    objectives = [{"name": "default", "direction": "minimize"}, {"name": "speed", "direction": "maximize"}]
    made = MadeExperiment(tmp_path / "exps" / "front", a_config(objectives=objectives))
    values = [(1.0, 1.0), (2.0, 2.0), (2.0, 1.0), (1.0, 1.0), (3.0, 2.0)]
    made.commit(*(a_trial(n, final='{"default": 1}', values=pair) for n, pair in enumerate(values)))
    with ExperimentView(made.folder) as view:
        assert [trial["sequence_id"] for trial in view.best()] == [0, 1, 3]
        assert view.best()[1]["values"] == {"default": 2.0, "speed": 2.0}
    made.store.close()


def test_history_has_the_best_so_far(filled: MadeExperiment, view: ExperimentView) -> None:
    assert [(row["sequence_id"], row["best"]) for row in view.history()] == [(0, 0.5), (1, 0.1), (3, 0.1)]


def test_infinite_best_is_the_same_everywhere(made: MadeExperiment) -> None:
    made.commit(a_trial(0, value=math.inf), a_trial(1, value=-math.inf), a_trial(2, value=0.5))
    best = result_of(made.folder.path).best
    assert best is not None
    assert (best.sequence_id, best.value) == (1, -math.inf)  # type: ignore[union-attr]
    with ExperimentView(made.folder) as view:
        assert view.best()[0]["value"] == -math.inf
