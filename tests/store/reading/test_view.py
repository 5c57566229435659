"""The view of one experiment: what it lets a reader see."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pitchpipe.store.reading import Condition, TrialQuery
from pitchpipe.store.reading.log_files import NoSuchFile
from pitchpipe.store.reading.view import ExperimentView

from ...stored import MadeExperiment, a_trial


def test_trial_files_are_those_that_the_trial_printed(filled: MadeExperiment, view: ExperimentView) -> None:
    folder = filled.folder.trial(1)
    folder.mkdir(parents=True)
    for name in ("stdout", "secret", "parameters.json"):
        (folder / name).write_text(name)
    assert [file.name for file in view.trial_logs(1)] == ["parameters.json", "stdout"]
    assert view.trial_log("T0001").text == "stdout"
    with pytest.raises(NoSuchFile):
        view.trial_log(1, "secret")


def test_each_attempt_has_its_own_output(made: MadeExperiment, view: ExperimentView) -> None:
    made.commit(a_trial(0, "RUNNING", attempt=3))
    folder = made.folder.trial(0)
    folder.mkdir(parents=True)
    for name in ("stdout", "stderr", "stdout-2", "stdout-3", "stdout-rank1", "model.pt", "parameters.json"):
        (folder / name).write_text(name)
    found = [file.name for file in view.trial_logs(0)]
    assert found == ["parameters.json", "stderr", "stdout", "stdout-2", "stdout-3"]
    assert view.trial_log(0, "stdout-2").text == "stdout-2"
    # Those that the page of the trial does not show are among its files.
    others = ["model.pt", "stderr", "stdout", "stdout-2", "stdout-rank1"]
    assert [file.name for file in view.outputs(0)] == others


def test_nested_choice_is_asked_for_by_its_name(view_of: Callable[..., ExperimentView]) -> None:
    models = [{"_name": "forest", "trees": 9}, {"_name": "linear"}, {"_name": "forest", "trees": 1}]
    view = view_of(*(a_trial(n, value=0.1, parameters={"model": model}) for n, model in enumerate(models)))
    for field in ("parameters.model", "parameters.model._name"):
        found = view.trials(TrialQuery(conditions=[Condition(field, "=", "forest")]))
        assert [trial.sequence_id for trial in found.trials] == [0, 2]
    ordered = view.trials(TrialQuery(sort="parameters.model", descending=True))
    assert [trial.sequence_id for trial in ordered.trials] == [1, 0, 2]
