"""The figures of an experiment, drawn as methods: before, while and after it runs, and from its folder alone."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from pitchpipe import Experiment, ExperimentResult
from pitchpipe.results import result_of
from pitchpipe.store.store import StoreError

from .stored import MadeExperiment, a_config, a_trial, results

SPACE = {
    "x": {"_type": "uniform", "_value": [0, 1]},
    "y": {"_type": "choice", "_value": [1, 2]},
}
EVERY = ["history", "curves", "parallel", "importance", "slice", "timeline", "schedule", "pareto", "edf"]


def line(parameters: dict[str, Any]) -> float:
    return parameters["x"] * parameters["y"]


def experiment(directory: Path) -> Experiment:
    more: dict[str, Any] = {"tuner": {"name": "Random"}, "max_trial_number": 3, "seed": 1}
    return Experiment(line, SPACE, platform="local", directory=directory, **more)


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> ExperimentResult:
    return experiment(tmp_path_factory.mktemp("plots")).run()


@pytest.mark.parametrize("name", EVERY)
def test_figure_of_a_result_is_drawn_in_its_theme(result: ExperimentResult, name: str) -> None:
    figure = getattr(result, f"plot_{name}")(theme="dark")
    assert figure.layout.template.layout.paper_bgcolor == "#14171b"
    assert figure.data or figure.layout.annotations


def test_figures_have_what_the_experiment_found(result: ExperimentResult) -> None:
    values = [row["value"] for row in result.trials]
    assert list(result.plot_history().data[0].y) == values
    assert list(result.plot_slice(parameters=["x"]).data[0].y) == values
    assert sum(len(bars.x) for bars in result.plot_timeline().data) == 3
    assert result.plot_contour("x", "y").layout.title.text == "Contour: x and y"
    assert [trace.y[-1] for trace in result.plot_edf(result, result.folder).data[::2]] == [1.0] * 3
    assert result.plot_history(log=True).layout.yaxis.type == "log"
    assert result.plot_slice(log=True, show_all=True).layout.yaxis.type == "log"


def test_unknown_parameter_is_answered_with_those_there_are(result: ExperimentResult) -> None:
    with pytest.raises(KeyError, match=r"no parameter 'z': \['x', 'y'\]"):
        result.plot_slice(parameters=["z"])


@pytest.fixture(scope="module")
def reporting(tmp_path_factory: pytest.TempPathFactory) -> ExperimentResult:
    """Return a search whose trials reported a loss beside their result; four of eight were stopped after two."""
    made = MadeExperiment(
        tmp_path_factory.mktemp("reporting") / "made1234", a_config(search_space=SPACE), "DONE"
    )
    for number in range(8):
        point = {"x": number / 8, "y": 1 + number % 2}
        value = line(point)
        is_stopped = value < 0.6
        trial = a_trial(
            number,
            "EARLY_STOPPED" if is_stopped else "SUCCEEDED",
            None if is_stopped else value,
            parameters=point,
        )
        reports = [
            {"default": value, "loss": {"train": 9.0 - step}} for step in range(2 if is_stopped else 3)
        ]
        made.commit(trial, metrics=results(trial, reports))
    made.store.close()
    return result_of(made.folder.path)


def test_stopped_trials_and_other_metrics_are_drawn(reporting: ExperimentResult) -> None:
    stopped = sum(row["status"] == "EARLY_STOPPED" for row in reporting.trials)
    assert stopped == 4
    points = {trace.name: len(trace.x) for trace in reporting.plot_history().data if trace.mode == "markers"}
    assert points == {"succeeded": 8 - stopped, "stopped early": stopped}
    ended = reporting.plot_slice("loss.train", ["x"], stopped=False)
    assert (len(ended.data[0].y), set(ended.data[0].y)) == (8 - stopped, {7.0})
    every = reporting.plot_slice("loss.train", ["x"]).data
    assert sorted(y for trace in every for y in trace.y if y is not None) == [7.0] * 4 + [8.0] * 4
    assert set(reporting.plot_slice("loss.train", ["x"], step=1).data[0].y) == {9.0}
    assert reporting.plot_curves("loss.train").layout.yaxis.title.text == "loss.train"
    assert reporting.plot_contour().layout.title.text.startswith("Contour: ")
    assert reporting.plot_parallel("loss.train").data[0].dimensions[-1].label == "loss.train"
    texts = [one.text for one in reporting.plot_importance().layout.annotations]
    assert f"8 trials, {stopped} of them stopped early" in texts[-1]
    for draw in (reporting.plot_history, reporting.plot_curves, reporting.plot_importance):
        with pytest.raises(KeyError, match=r"no metric 'acc': \['default', 'loss.train'\]"):
            draw("acc")
    with pytest.raises(ValueError, match="step has to be at least 1"):
        reporting.plot_history(step=0)


def test_experiment_has_figures_before_it_runs(tmp_path: Path) -> None:
    figure = experiment(tmp_path).plot_history()
    assert figure.layout.annotations[0].text == "No trial has ended yet."


def test_figures_of_a_folder_that_is_gone_say_so(result: ExperimentResult, tmp_path: Path) -> None:
    shutil.copytree(result.folder, tmp_path / "copy")
    copy = ExperimentResult(id="copy", status="DONE", folder=tmp_path / "copy", counts={}, best=None)
    assert copy.plot_history().data
    shutil.rmtree(tmp_path / "copy")
    with pytest.raises(StoreError, match=r"does not exist|cannot be read"):
        copy.plot_history()
